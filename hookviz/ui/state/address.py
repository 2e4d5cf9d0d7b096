"""The address that restores a view: read once per session, written at the end of each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from hookviz.ui.state.cards import begin_cards, cards_address
from hookviz.ui.state.choices import chosen, every_option
from hookviz.ui.state.edits import begin_edits, edits_address
from hookviz.ui.state.image import image_source
from hookviz.ui.state.keys import ASKED_LAYERS, DEFAULT_WEIGHTS, LAYERS, ROBUST, SAMPLE, SOURCE, UPLOAD, WEIGHTS
from hookviz.ui.state.notes import begin_notes, default_with_note, note


def begin() -> bool:
    """Take the view from the address, once per session; whether this was the first run of one."""
    if not begin_notes():
        return False
    st.session_state[SOURCE] = SAMPLE
    for key, options in every_option().items():
        st.session_state[key] = _from_address(key, options)
    st.session_state[WEIGHTS] = st.query_params.get(WEIGHTS, DEFAULT_WEIGHTS)
    st.session_state[ASKED_LAYERS] = st.query_params.get_all("layer")
    st.session_state[ROBUST] = st.query_params.get(ROBUST) == "1"
    begin_cards()
    begin_edits()
    if UPLOAD in st.query_params:
        note("An uploaded file cannot be part of an address: choose the file again; meanwhile a sample is shown.")
    return True


def _from_address(key: str, options: Sequence[str]) -> str:
    asked = st.query_params.get(key, options[0])
    return asked if asked in options else default_with_note(key, asked, options[0])


def write_address(default_weights: str, *, layers: bool = True, more: Mapping[str, str] | None = None) -> None:
    """Put the view into the address, with ``more`` that a page has of its own; what is a default may be absent."""
    view: dict[str, str | list[str]] = {
        key: chosen(key) for key, options in every_option().items() if chosen(key) != options[0]
    }
    if st.session_state[WEIGHTS] != default_weights:
        view[WEIGHTS] = st.session_state[WEIGHTS]
    if image_source() != SAMPLE:
        view.pop(SAMPLE, None)
        view[UPLOAD] = "1"
    if st.session_state.get(ROBUST):
        view[ROBUST] = "1"
    if layers and st.session_state.get(LAYERS):
        view["layer"] = st.session_state[LAYERS]
        view |= cards_address(len(st.session_state[LAYERS]))
    if layers:
        view |= edits_address()
    view |= more or {}
    if {key: st.query_params.get_all(key) for key in st.query_params} != {
        key: value if isinstance(value, list) else [value] for key, value in view.items()
    }:
        st.query_params.from_dict(view)
