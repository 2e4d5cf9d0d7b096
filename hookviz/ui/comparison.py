"""Two layers, or one layer for two images, side by side: the same channels, in the same colours."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from torch import Tensor

from hookviz.errors import HookvizError
from hookviz.hooks.structure import leaves
from hookviz.known_layouts import known_layout
from hookviz.layer_picture import PER_PAGE, WHOLE_FIRST_ITEM, Shown, arranged
from hookviz.models import Model
from hookviz.samples import list_samples, sample_bytes
from hookviz.types import LayerInfo
from hookviz.ui import resources, state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.mosaic_figure import show_mosaic_figure
from hookviz.ui.sentences import one_sentence
from hookviz.ui.shown_layers import order_of
from hookviz.views import mosaic_picture, page_count

_IMAGE, _LAYER, _FILE = "image: ", "layer: ", "image: a file …"


@dataclass(frozen=True, slots=True)
class _Other:
    """What stands on the right: in words, and its maps."""

    title: str
    shown: Shown


@st.fragment
def show_comparison(channels: CardChannels) -> None:
    """Show this tensor beside another one; a fragment of its own, so that choosing it runs nothing else."""
    card = channels.position
    with st.container(key=f"comparison-{card}"), one_sentence():
        asked, pages = st.columns([2, 3], vertical_alignment="bottom")
        model = channels.tensor.network.model()
        with asked:
            other = _choose_other(channels, model)
        if other is None:
            return
        first, second, display = channels.shown.maps, other.shown.maps, channels.shown.display
        common = min(first.channels, second.channels)
        if not common or first.maps.shape[1] * second.maps.shape[1] == 0:
            st.info("One of the two has no channels to show.", icon=":material/info:")
            return
        with pages:
            numbers = _choose_numbers(channels, common)
        left, right = st.columns(2, gap="medium")
        with left:
            show_mosaic_figure("This one", mosaic_picture(first, order=numbers, like=second, **display), first.shows)
        with right:
            show_mosaic_figure(other.title, mosaic_picture(second, order=numbers, like=first, **display), second.shows)
    state.write_card(card)


def _choose_other(channels: CardChannels, model: Model) -> _Other | None:
    card, network, info = channels.position, channels.tensor.network, channels.tensor.info
    layers = [name for name in state.chosen_layers() if name != info.name]
    options = [*(_IMAGE + sample.name for sample in list_samples()), *(_LAYER + name for name in layers), _FILE]
    key = f"beside-{card}"
    state.settle_card_choice(key, options, options[0], parameter=f"beside{card}")
    chosen = str(st.selectbox("Beside", options, key=key, format_func=_words))
    if chosen.startswith(_LAYER):
        name = chosen.removeprefix(_LAYER)
        batch = network.batch(model)
        shape = (network.key[0], tuple(batch.shape))
        found = next(one for one in resources.get_layers(shape, model, batch) if one.name == name)
        return _shown(channels, model, network.key, batch, found, name)
    if chosen == _FILE:
        file = st.file_uploader("Another image", key=f"beside file {card}", label_visibility="collapsed")
        if file is None:
            return None
        return _of_image(channels, model, file.getvalue(), file.name)
    sample = chosen.removeprefix(_IMAGE)
    return _of_image(channels, model, sample_bytes(sample), _words(chosen).removeprefix(_IMAGE))


def _words(option: str) -> str:
    titles = {_IMAGE + sample.name: _IMAGE + sample.title for sample in list_samples()}
    return titles.get(option, option)


def _of_image(channels: CardChannels, model: Model, content: bytes, title: str) -> _Other:
    image_key = resources.digest(content)
    seen = resources.get_image(image_key, model.task in resources.MOVING, content, None)
    key = (channels.tensor.network.key[0], image_key)
    batch = resources.get_batch(key, model, seen)
    return _shown(channels, model, key, batch, channels.tensor.info, title)


def _shown(  # noqa: PLR0913, PLR0917 - what a capture is known by, and whose it is
    channels: CardChannels, model: Model, key: tuple[str, str], batch: Tensor, info: LayerInfo, title: str
) -> _Other:
    """The same call and part of a layer as on the card, or the first where it has no such one."""
    calls = resources.get_captures(key, model, batch, [info.name], "exact")[info.name].calls
    if not calls:
        raise HookvizError(f"{title} was not called for this input; choose another one.")
    call = calls[min(channels.tensor.call, len(calls) - 1)]
    tensors = dict(leaves(call.output, Tensor))
    if not tensors:
        raise HookvizError(f"{title} returned no tensor; choose another one.")
    same = info is channels.tensor.info
    path = channels.tensor.path if channels.tensor.path in tensors else next(iter(tensors))
    layout = channels.tensor.layout if same else known_layout(info, call, path)
    selection = channels.tensor.selection if same else WHOLE_FIRST_ITEM
    return _Other(title, arranged(tensors[path], layout, "index", channels.shown.display, selection))


def _choose_numbers(channels: CardChannels, common: int) -> list[int]:
    """The channels of a page, in the order of the card, of those that both have."""
    order = order_of(channels.shown)
    both = order[order < common]
    pages = page_count(len(both), PER_PAGE)
    page = 1
    if pages > 1:
        key = f"comparison-page-{channels.position}"
        state.settle_index(key, pages, channels.belongs_to, first=1)
        page = st.pagination(pages, key=key, width=min(pages, 7) * 44 + 100)
    numbers: list[int] = both[(page - 1) * PER_PAGE : page * PER_PAGE].tolist()
    return numbers
