"""Everything the page remembers: its session keys, its defaults, and the address that restores a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypedDict, get_args

import streamlit as st

from hookviz.layer_picture import Display
from hookviz.models import list_models, own
from hookviz.samples import list_samples
from hookviz.types import ChannelOrder, Scale
from hookviz.ui.start_options import start_options
from hookviz.views import COLORMAPS

MODEL, WEIGHTS, SAMPLE, UPLOAD, CAMERA = "model", "weights", "sample", "upload", "camera"
LAYERS, TREE, SORT, SCALE, CMAP, ROBUST = "layers", "layer-tree", "sort", "scale", "cmap", "robust"

_NOTES = "address notes"
_SOURCE = "image source"
_ASKED_LAYERS = "layers asked for in the address"
_LAYERS_KEPT = "layers chosen last"
_LAYERS_OF = "model that the chosen layers belong to"
_TREE_TURN = "number of the choice in the tree that was heard last"

DEFAULT_WEIGHTS = "default"


class TreeChoice(TypedDict):
    """What the tree of layers sends: all that is marked, in the order of marking, and how many choices it took."""

    layers: list[str]
    turn: int


_LONGEST = 200
"""Characters of an address value that are repeated to the reader."""


def begin() -> None:
    """Take the view from the address, once per session."""
    if _NOTES in st.session_state:
        return
    st.session_state[_NOTES] = []
    st.session_state[_SOURCE] = SAMPLE
    for key, options in _options().items():
        st.session_state[key] = _from_address(key, options)
    st.session_state[WEIGHTS] = st.query_params.get(WEIGHTS, DEFAULT_WEIGHTS)
    st.session_state[_ASKED_LAYERS] = st.query_params.get_all("layer")
    if UPLOAD in st.query_params:
        note("An uploaded file cannot be part of an address: choose the file again; meanwhile a sample is shown.")


@cache
def _options() -> dict[str, list[str]]:
    return {
        MODEL: _model_names(),
        SAMPLE: [sample.name for sample in list_samples()],
        SORT: list(get_args(ChannelOrder)),
        SCALE: list(get_args(Scale)),
        CMAP: list(COLORMAPS),
    }


def _model_names() -> list[str]:
    """All models; what the page was started with comes first."""
    own.offer(start_options().models)
    return list(dict.fromkeys([*own.asked_for(), *list_models()]))


def options(key: str) -> list[str]:
    """What can be chosen for ``model``, ``sample``, ``sort``, ``scale`` or ``cmap``; the first is the default."""
    return _options()[key]


def _from_address(key: str, options: Sequence[str]) -> str:
    asked = st.query_params.get(key, options[0])
    return asked if asked in options else _default_with_note(key, asked, options[0])


def _default_with_note(key: str, asked: str, default: str) -> str:
    note(f"The address asks for {key} “{asked[:_LONGEST]}”, which there is not; {default} is shown instead.")
    return default


def note(sentence: str) -> None:
    """Keep a sentence for the reader until something else is chosen."""
    if sentence not in st.session_state[_NOTES]:
        st.session_state[_NOTES].append(sentence)


def notes() -> list[str]:
    """The sentences to show above everything else."""
    return list(st.session_state[_NOTES])


def changed() -> None:
    """The reader has chosen something: what the address had wrong no longer matters."""
    st.session_state[_NOTES].clear()


def image_source() -> str:
    """Where the image comes from: ``sample``, ``upload`` or ``camera``, whichever was used last."""
    source: str = st.session_state[_SOURCE]
    return source if source == SAMPLE or st.session_state.get(source) is not None else SAMPLE


def use_image_from(source: str) -> None:
    """Show the image from this source from now on."""
    changed()
    st.session_state[_SOURCE] = source
    if source != SAMPLE:
        st.session_state[SAMPLE] = None  # none is marked while a file is shown, and each can be chosen instead of it


def model_changed() -> None:
    """Begin with the new model's default weights."""
    changed()
    st.session_state[WEIGHTS] = DEFAULT_WEIGHTS


def choose_weights(name: str) -> None:
    """Choose weights from outside their own widget."""
    changed()
    st.session_state[WEIGHTS] = name


def settle_weights(available: Sequence[str]) -> None:
    """Make the chosen weights one of those there are."""
    asked = st.session_state.get(WEIGHTS) or DEFAULT_WEIGHTS
    by_name = {name.lower(): name for name in available}
    if asked.lower() in by_name:
        st.session_state[WEIGHTS] = by_name[asked.lower()]
    elif asked == DEFAULT_WEIGHTS:
        st.session_state[WEIGHTS] = available[0]
    else:
        st.session_state[WEIGHTS] = _default_with_note(WEIGHTS, asked, available[0])


def settle_layers(model: str, names: Sequence[str], first_choice: Sequence[str], most: int) -> None:
    """Choose at most ``most`` of the layers there are: as the address asks, as chosen, or a good beginning."""
    known = set(names)
    if st.session_state.get(_LAYERS_OF) is None and st.session_state[_ASKED_LAYERS]:
        asked = list(dict.fromkeys(st.session_state[_ASKED_LAYERS]))
        for name in asked:
            if name not in known:
                note(f"The address asks for layer “{name[:_LONGEST]}”, which {model} does not have; it is left out.")
    else:
        # Streamlit forgets a widget that one run did not show, as after a file that is no image.
        asked = st.session_state.get(LAYERS, st.session_state.get(_LAYERS_KEPT, []))
    kept = [name for name in asked if name in known]
    if len(kept) > most:
        note(f"The address asks for {len(kept)} layers; the page shows {most} at a time, the first of them.")
        kept = kept[:most]
    if not kept and st.session_state.get(_LAYERS_OF) != model:
        kept = list(first_choice)
    # Always: another image's sizes change the titles of the options, and by these Streamlit knows what was chosen.
    st.session_state[LAYERS] = kept
    st.session_state[_LAYERS_KEPT] = kept
    st.session_state[_LAYERS_OF] = model


def choose_layers(names: Sequence[str]) -> None:
    """Choose layers from a button."""
    changed()
    st.session_state[LAYERS] = list(names)


def take_choice() -> None:
    """Choose the layers that are marked in the tree."""
    changed()
    choice: TreeChoice = st.session_state[TREE].choice
    st.session_state[LAYERS] = list(choice["layers"])
    st.session_state[_TREE_TURN] = choice["turn"]


def tree_turn() -> int:
    """Which choice in the tree was heard last: the tree shows later ones before they are."""
    turn: int = st.session_state.get(_TREE_TURN, 0)
    return turn


def chosen(key: str) -> str:
    """The value chosen for ``model``, ``weights``, ``sample``, ``sort``, ``scale`` or ``cmap``."""
    value: str = st.session_state[key] or options(key)[0]
    return value


def chosen_order() -> ChannelOrder:
    """What channels are sorted by."""
    order: ChannelOrder = st.session_state[SORT]
    return order


def display() -> Display:
    """How values become colours, as the views take it."""
    return Display(
        scale=st.session_state[SCALE], robust=bool(st.session_state.get(ROBUST)), cmap=st.session_state[CMAP]
    )


def chosen_layers() -> list[str]:
    """The layers chosen, in the order of choosing."""
    return list(st.session_state[LAYERS])


def settle_index(key: str, count: int, belongs_to: str, *, first: int) -> None:
    """Keep a page or call number within bounds, and start from the first where it belonged to something else."""
    owner = f"{key} belongs to"
    last = first + max(count, 1) - 1
    value = st.session_state.get(key)
    if st.session_state.get(owner) != belongs_to or not isinstance(value, int):
        value = first
    if st.session_state.get(key, first) != min(value, last):
        st.session_state[key] = min(value, last)
    st.session_state[owner] = belongs_to


def settle_choice(key: str, options: Sequence[str], default: str, *, parameter: str | None = None) -> None:
    """Make a widget's value one of those there are.

    It is as chosen, as chosen before another page was shown, as the address asks in ``parameter``, or the default.
    """
    kept = st.session_state.get(key, st.session_state.get(_kept(key)))
    asked = st.query_params.get(parameter, default) if kept is None and parameter else kept
    if asked not in options and kept is None and parameter:
        asked = _default_with_note(parameter, str(asked), default)
    st.session_state[key] = st.session_state[_kept(key)] = asked if asked in options else default


def settle_value(key: str, default: float) -> None:
    """Give a number's widget the value it had before another page was shown, or the default."""
    value = st.session_state.get(key, st.session_state.get(_kept(key), default))
    st.session_state[key] = st.session_state[_kept(key)] = value


def settled(key: str) -> str:
    """The value that a widget was given last."""
    value: str = st.session_state[_kept(key)]
    return value


def _kept(key: str) -> str:
    return f"{key} chosen last"


def ask_for(what: str, of: str) -> None:
    """Note that a button asked for something that takes its time."""
    st.session_state[f"{what} asked for"] = of


def asked_for(what: str) -> str:
    """What a button asked for last, ``""`` before it did."""
    of: str = st.session_state.get(f"{what} asked for", "")
    return of


def write_address(default_weights: str, *, layers: bool = True, more: Mapping[str, str] | None = None) -> None:
    """Put the view into the address, with ``more`` that a page has of its own; what is a default may be absent."""
    view: dict[str, str | list[str]] = {
        key: chosen(key) for key, options in _options().items() if chosen(key) != options[0]
    }
    if st.session_state[WEIGHTS] != default_weights:
        view[WEIGHTS] = st.session_state[WEIGHTS]
    if image_source() != SAMPLE:
        view.pop(SAMPLE, None)
        view[UPLOAD] = "1"
    if layers and st.session_state.get(LAYERS):
        view["layer"] = st.session_state[LAYERS]
    view |= more or {}
    if {key: st.query_params.get_all(key) for key in st.query_params} != {
        key: value if isinstance(value, list) else [value] for key, value in view.items()
    }:
        st.query_params.from_dict(view)
