"""One card per chosen layer: which call, which part, how true it is, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import streamlit as st
from torch import Tensor

from hookviz.describe import kind, size
from hookviz.hooks import Call, Overwrite
from hookviz.hooks.structure import leaves
from hookviz.known_layouts import known_layout
from hookviz.layer_picture import PER_PAGE, Shown, draw_figure
from hookviz.models.catalogue import model_task
from hookviz.types import LayerInfo, Layout
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channels_view import show_channels
from hookviz.ui.comparison import show_comparison
from hookviz.ui.downloads import show_downloads
from hookviz.ui.layer_views import channel_counts, show_distribution, show_figure
from hookviz.ui.layout_choice import choose_layout
from hookviz.ui.overview import show_overview
from hookviz.ui.part_choice import choose_part, taken_over
from hookviz.ui.python_code import show_code
from hookviz.ui.ranking_view import show_ranking
from hookviz.ui.resources import LayerCapture, digest
from hookviz.ui.sentences import one_sentence
from hookviz.ui.shown_layers import exact_values, get_shown, order_of
from hookviz.ui.shown_network import ShownNetwork, ShownTensor
from hookviz.ui.style import badge, escaped, show
from hookviz.views import page_count

_MOSAIC, _FIGURE, _OVERVIEW, _COMPARE = "Mosaic", "Figure", "Overview", "Compare"


@dataclass(frozen=True, slots=True)
class Card:
    """One layer of one view: its place on the page from 0, what it and its values are known by, and the values.

    ``layer_of`` is the layer of its network, whose choices outlive another image; ``view`` is that of an image;
    ``network`` is what both are of.
    """

    position: int
    layer_of: str
    view: str
    info: LayerInfo
    capture: LayerCapture
    network: ShownNetwork


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One tensor of what a call returned, as it was then or, ``naive``, as it was overwritten later."""

    call: Call
    path: str
    tensor: Tensor
    naive: bool


@st.fragment
def show_layer(card: Card) -> None:
    """Show one layer."""
    state.begin_card(card.position)
    with st.container(border=True, key=f"card-{card.position}"), one_sentence():
        title_place = st.container()
        call = _choose_call(card)
        path, tensor = ("", None) if call is None else _choose_tensor(card, call)
        with title_place:
            if call is None or tensor is None:
                why = "was not called for this input" if call is None else "returned no tensor"
                show(_title(card.info, "") + f'<p class="hv-quiet">This layer {why}.</p>')
                return
            overwrite = next(
                (one for one in card.capture.overwrites if (one.call, one.path) == (call.index, path)), None
            )
            naive = _show_title(card, tensor, overwrite)
        _show_body(card, _Part(call, path, overwrite.naive if overwrite and naive else tensor, naive))
    state.write_card(card.position)


def _choose_call(card: Card) -> Call | None:
    calls = card.capture.calls
    if len(calls) < 2:
        return calls[0] if calls else None
    key = f"call-{card.position}"
    state.settle_index(key, len(calls), card.layer_of, first=1, parameter=f"call{card.position}")
    number = st.segmented_control(
        f"Called {len(calls)} times in one forward",
        range(1, len(calls) + 1),
        default=1,
        key=key,
        required=True,
        format_func=lambda number: f"call {number}",
    )
    return calls[(number or 1) - 1]


def _choose_tensor(card: Card, call: Call) -> tuple[str, Tensor | None]:
    tensors = dict(leaves(call.output, Tensor))
    if not tensors:
        return "", None
    if len(tensors) == 1:
        return next(iter(tensors.items()))
    key, paths = f"part-{card.position}-{call.layer}-{call.index}", list(tensors)
    state.settle_card_choice(key, paths, paths[0], parameter=f"part{card.position}")
    path = st.selectbox("Part of the output", paths, key=key)
    return path, tensors[path]


def _show_title(card: Card, tensor: Tensor, overwrite: Overwrite | None) -> bool:
    """The heading with the truth badge; whether the naive values are asked for."""
    details = f"{size(tuple(tensor.shape))} · {str(tensor.dtype).removeprefix('torch.')}"
    if overwrite is None:
        show(_title(card.info, details, _exactness(card)))
        return False
    by = overwrite.by or "the network's own forward"
    with st.container(horizontal=True, vertical_alignment="center"):
        title, switch = st.container(), st.container(width="content")
    key = f"naive-{card.position}-{card.info.name}-{overwrite.call}"
    state.settle_switch(key, parameter=f"naive{card.position}")
    naive = switch.toggle(
        "Show what a naive hook shows",
        key=key,
        help=(
            "A hook that stores `output.detach()` keeps the memory, not the values. "
            f"Here {by} wrote into it before the forward ended."
        ),
    )
    truth = badge("bad", "naive: not what the layer computed") if naive else _exactness(card)
    with title:
        show(_title(card.info, details, truth, badge("warn", f"later overwritten in place by {by}")))
    return naive


def _exactness(card: Card) -> str:
    if card.capture.kept == "half":
        return badge("warn", "kept in half precision")
    return badge("good", "✓ exact")


def _title(info: LayerInfo, details: str, *badges: str) -> str:
    name = escaped(info.name or "(whole network)")
    return (
        f'<div class="hv-title"><span class="layer hv-mono">{name}</span>'
        f'<span class="hv-quiet">{escaped(kind(info))}{" · " + escaped(details) if details else ""}</span>'
        f"{''.join(badges)}</div>"
    )


def _show_body(card: Card, part: _Part) -> None:
    call, path = part.call, part.path
    belongs_to = f"{card.layer_of} {call.index} {path}"
    with st.container(horizontal=True, vertical_alignment="center"):
        view_place = st.container(width="content")
        pages_place = st.container(width="content", horizontal=True, vertical_alignment="center")
        layout_place = st.container(width="content")
    with layout_place:
        layout = choose_layout(card.position, card.layer_of, part.tensor, _layout_found(card, call, path))
    selection = choose_part(card.position, belongs_to, part.tensor, layout)
    of = f"{card.view} {card.capture.kept} {call.index} {path} {part.naive}"
    shown = get_shown(of, part.tensor, layout, state.chosen_order(), state.display(), selection)
    with view_place:
        view = _choose_view(card, shown)
    with pages_place:
        paged = view == _MOSAIC or (view == _FIGURE and shown.picture in {"maps", "lines"})
        page = _choose_page(card, belongs_to, shown) if paged else 0
    about = _about(card, shown, layout)
    pages = f"{state.chosen_order()} {page}" if view == _MOSAIC else "all"
    channels = CardChannels(
        position=card.position,
        of=digest(f"{of} {layout} {selection} {pages}".encode()),
        belongs_to=f"{belongs_to} {layout.name}",
        layer=", ".join(filter(None, [card.info.name or "the whole network", shown.part])),
        shown=shown,
        values=partial(exact_values, part.tensor, layout, selection),
        tensor=ShownTensor(card.network, card.info, call.index, path, layout, selection),
    )
    if view == _MOSAIC:
        show_channels(channels, page, about)
        show_ranking(channels)
    else:
        if view == _OVERVIEW:
            show_overview(channels)
        elif view == _COMPARE:
            show_comparison(channels)
        else:
            show_figure(card.info, shown, page)
        histogram, numbers = st.columns([2, 3], gap="medium", vertical_alignment="center")
        show_distribution(shown, about, histogram, numbers)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        show_downloads(f"{card.position}-{of}", card.info, shown, lambda: draw_figure(card.info, shown, page))
        if not part.naive:
            show_code(channels, call, len(card.capture.calls), page)


def _layout_found(card: Card, call: Call, path: str) -> Layout | None:
    """What is known of the axes; the volumes of a network that takes films have their frames along the depth."""
    found = known_layout(card.info, call, path)
    if found and "D" in found.name and not found.note and model_task(state.chosen(state.MODEL)) == "video":
        return replace(found, note="depth is time")
    return found


def _choose_view(card: Card, shown: Shown) -> str:
    """One of the views there are; the figure comes first where a mosaic would be of single values or rows."""
    if shown.picture == "number":
        return _FIGURE
    maps = shown.picture == "maps"
    key = f"view-{card.position}" if maps else f"view-{card.position}-{shown.picture}"
    default = _MOSAIC if maps else _FIGURE
    views = [_MOSAIC, _FIGURE, _OVERVIEW, _COMPARE] if maps and shown.maps.maps.size else [_MOSAIC, _FIGURE]
    state.settle_card_choice(key, views, default, parameter=f"view{card.position}")
    view = st.segmented_control("View", views, default=default, required=True, key=key, label_visibility="collapsed")
    return view or default


def _about(card: Card, shown: Shown, layout: Layout) -> dict[str, str]:
    over = taken_over(shown.tensor, layout)
    return ({"taken over": over} if over else {}) | channel_counts(card.info, shown.statistics)


def _choose_page(card: Card, belongs_to: str, shown: Shown) -> int:
    channels = shown.maps.channels
    pages = page_count(channels, PER_PAGE)
    key = f"page-{card.position}"
    _take_step(card, key, shown)
    state.settle_index(key, pages, belongs_to, first=1, parameter=f"p{card.position}")
    if pages == 1:
        return 0
    page = st.pagination(pages, key=key, width=min(pages, 7) * 44 + 100) - 1
    first = page * PER_PAGE
    st.caption(f"{first + 1}–{min(first + PER_PAGE, channels)} of {channels} channels", width="content")
    return page


def _take_step(card: Card, key: str, shown: Shown) -> None:
    """Turn to the page that the keys walked to."""
    step = state.step_taken(card.position)
    if step is None or not shown.maps.channels:
        return
    order = order_of(shown).tolist()
    place = order.index(step["channel"]) if step.get("channel") in order else int(step.get("place", 0))
    place = min(max(place, 0), len(order) - 1)
    state.turn_to(key, place // PER_PAGE + 1)
    if step.get("open"):
        state.open_channel(card.position, order[place])
