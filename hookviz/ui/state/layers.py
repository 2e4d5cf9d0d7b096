"""Which layers are shown, as chosen by typing, by a button or in the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import streamlit as st

from hookviz.ui.state.heard import heard
from hookviz.ui.state.keys import ASKED_LAYERS, LAYERS, TREE
from hookviz.ui.state.notes import changed, note, shortened

_LAYERS_KEPT = "layers chosen last"
_LAYERS_OF = "model that the chosen layers belong to"
_TREE_TURN = "number of the choice in the tree that was heard last"


class TreeChoice(TypedDict):
    """What the tree of layers sends: all that is marked, in the order of marking, and how many choices it took."""

    layers: list[str]
    turn: int


def settle_layers(model: str, names: Sequence[str], first_choice: Sequence[str], most: int) -> None:
    """Choose at most ``most`` of the layers there are: as the address asks, as chosen, or a good beginning."""
    known = set(names)
    if st.session_state.get(_LAYERS_OF) is None and st.session_state[ASKED_LAYERS]:
        asked = list(dict.fromkeys(st.session_state[ASKED_LAYERS]))
        for name in asked:
            if name not in known:
                note(f"The address asks for layer “{shortened(name)}”, which {model} does not have; it is left out.")
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
    choice: TreeChoice | None = heard(TREE, "choice")
    if choice is not None:
        st.session_state[LAYERS] = list(choice["layers"])
        st.session_state[_TREE_TURN] = choice["turn"]


def row_chosen(key: str) -> str | None:
    """What the reader chose in a table of bars, if that is there still; choosing clears the notes."""
    changed()
    chosen: str | None = heard(key, "choice")
    return chosen


def show_layer_too(name: str, most: int) -> None:
    """Show a layer beside those chosen, in place of the last of them where there are too many."""
    chosen = chosen_layers()
    if name not in chosen:
        st.session_state[LAYERS] = [*chosen[: most - 1], name]


def tree_turn() -> int:
    """Which choice in the tree was heard last: the tree shows later ones before they are."""
    turn: int = st.session_state.get(_TREE_TURN, 0)
    return turn


def chosen_layers() -> list[str]:
    """The layers chosen, in the order of choosing."""
    return list(st.session_state[LAYERS])
