"""What the page's own components say."""

from __future__ import annotations

from typing import Any

import streamlit as st


def heard(key: str, what: str) -> Any:
    """What the component with this key said as ``what``, or None where something else took its place meanwhile.

    That happens to who clicks on a part of the page while another choice of theirs is about to replace it.
    """
    return getattr(st.session_state.get(key), what, None)
