"""Which channels are switched off or changed, for the network that is shown."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from hookviz.types import LayerInfo
from hookviz.ui.state.notes import changed, note, shortened
from hookviz.ui.switch_address import read, written
from hookviz.ui.switches import Switch, fault, put

MOST = 64
"""How many channels can be changed at a time."""

_ASKED = "edits asked for in the address"
_SWITCHES = "edits"
_OF = "model that the edits belong to"
_SHOWN = "edits that the page shows"
_EFFECT = "what the edits do, in words"


def begin_edits() -> None:
    """Take what the address asks for, once per session."""
    st.session_state[_ASKED] = st.query_params.get_all("edit")
    st.session_state[_SWITCHES] = ()


def edits_wanted(model: str) -> bool:
    """Whether anything of this network is, or may be, edited; another network begins without edits."""
    if st.session_state.get(_OF) not in {None, model}:
        st.session_state[_SWITCHES] = ()
    st.session_state[_OF] = model
    st.session_state[_SHOWN] = st.session_state[_SWITCHES]
    st.session_state[_EFFECT] = ""
    return bool(st.session_state[_ASKED] or st.session_state[_SWITCHES])


def settle_edits(infos: Mapping[str, LayerInfo]) -> tuple[Switch, ...]:
    """The edits of channels that the network has: as chosen, or as the address asks."""
    for text in st.session_state[_ASKED]:
        _take(text, infos)
    st.session_state[_ASKED] = []
    kept = tuple(one for one in switches() if not fault(one, infos))
    st.session_state[_SWITCHES] = st.session_state[_SHOWN] = kept
    return kept


def _take(text: str, infos: Mapping[str, LayerInfo]) -> None:
    asked = read(text)
    if asked is None:
        note(f"The address asks for edit={shortened(text)}, which says no channel and action; it is left out.")
        return
    for one in asked:
        wrong = fault(one, infos)
        if not wrong and len(put(switches(), one)) > MOST:
            wrong = f"and {MOST} channels can be changed at a time"
        if wrong:
            note(f"The address asks for edit={shortened(text)}, {shortened(wrong)}; it is left out.")
            return
        st.session_state[_SWITCHES] = put(switches(), one)


def switches() -> tuple[Switch, ...]:
    """What is done to channels, in the order of choosing."""
    chosen: tuple[Switch, ...] = st.session_state[_SWITCHES]
    return chosen


def set_switch(switch: Switch) -> None:
    """Do something to a channel, in place of what was done to it before."""
    changed()
    if len(put(switches(), switch)) <= MOST:
        st.session_state[_SWITCHES] = put(switches(), switch)


def remove_switch(switch: Switch) -> None:
    """Leave a channel as it is."""
    changed()
    st.session_state[_SWITCHES] = tuple(one for one in switches() if one != switch)


def remove_all_switches() -> None:
    """Leave every channel as it is."""
    changed()
    st.session_state[_SWITCHES] = ()


def edits_are_shown() -> bool:
    """Whether what the page shows is of these edits; if not, all of it has to run."""
    return bool(st.session_state.get(_SHOWN) == switches())


def tell_effect(words: str) -> None:
    """Note what the edits do, for who looks at a channel far below."""
    st.session_state[_EFFECT] = words


def effect_told() -> str:
    """What the edits do, in a few words; ``""`` without edits."""
    said: str = st.session_state[_EFFECT]
    return said


def edits_address() -> dict[str, list[str]]:
    """The edits' part of the address."""
    return {"edit": written(switches())} if switches() else {}
