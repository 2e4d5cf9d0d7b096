"""Where the image comes from."""

from __future__ import annotations

import streamlit as st

from hookviz.ui.state.keys import SAMPLE, SOURCE
from hookviz.ui.state.notes import changed


def image_source() -> str:
    """Where the image comes from: ``sample``, ``upload`` or ``camera``, whichever was used last."""
    source: str = st.session_state[SOURCE]
    return source if source == SAMPLE or st.session_state.get(source) is not None else SAMPLE


def use_image_from(source: str) -> None:
    """Show the image from this source from now on."""
    changed()
    st.session_state[SOURCE] = source
    if source != SAMPLE:
        st.session_state[SAMPLE] = None  # none is marked while a file is shown, and each can be chosen instead of it
