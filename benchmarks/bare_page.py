"""The floor under a click: a fragment that shows one of two pictures, and nothing else."""

from __future__ import annotations

import io
import sys

import numpy as np
import streamlit as st
from PIL import Image

WIDTH, HEIGHT = (int(word) for word in sys.argv[1:3])


@st.cache_data
def picture(turn: int) -> bytes:
    """Noise as a PNG."""
    pixels = np.random.default_rng(turn).integers(0, 250, (HEIGHT, WIDTH), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@st.fragment
def show() -> None:
    """A button that changes the picture."""
    st.button("change", key="change", on_click=change)
    st.image(picture(st.session_state.get("turn", 0)), width=300)


def change() -> None:
    """Show the other picture."""
    st.session_state["turn"] = 1 - st.session_state.get("turn", 0)


show()
