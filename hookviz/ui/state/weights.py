"""Which weights the model has."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from hookviz.ui.state.keys import DEFAULT_WEIGHTS, WEIGHTS
from hookviz.ui.state.notes import changed, default_with_note


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
        st.session_state[WEIGHTS] = default_with_note(WEIGHTS, asked, available[0])
