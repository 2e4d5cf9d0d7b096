"""How a tensor's axes are read: what is known, what is assumed, and the reader's own word."""

from __future__ import annotations

import streamlit as st
from torch import Tensor

from hookviz.layout import AUTO, READERS, axis_lengths
from hookviz.types import Layout
from hookviz.ui import state

_AS_FOUND = "as found"
_MEANINGS = {
    "N": "batch",
    "C": "channels",
    "H": "height",
    "W": "width",
    "D": "depth or time",
    "L": "tokens or positions",
}


def choose_layout(position: int, view: str, tensor: Tensor, found: Layout | None) -> Layout:
    """The layout to read a tensor in, by default the one found for it; which it is stands on the card, always."""
    suggested = found or Layout("auto", known=tensor.ndim < 2)
    names = [name for name in READERS if len(name) == tensor.ndim and name != "scalar"]
    if len(names) < 2:
        st.caption(_title(suggested, tensor), width="content")
        _show_note(suggested)
        return suggested
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        place = st.popover(_title(suggested, tensor), type="tertiary", key=f"layout-{position}")
        _show_note(suggested)
    with place:
        key, choices = f"layout-{position}-{view}-{tensor.ndim}", [_AS_FOUND, *names]
        state.settle_card_choice(key, choices, _AS_FOUND, parameter=f"axes{position}")
        own = st.radio(
            "Read the axes as",
            choices,
            key=key,
            format_func=lambda name: name if name == _AS_FOUND else f"{name}: {_spelled(name)}",
        )
        tokens = axis_lengths(tensor.shape, own).get("L", 0) if own in {"NLC", "LNC"} else 0
        grid = _choose_grid(f"grid-{position}-{view}-{own}", tokens, suggested, f"grid{position}") if tokens else None
    return suggested if own == _AS_FOUND else Layout(own, grid)


def _title(layout: Layout, tensor: Tensor) -> str:
    name = layout.name if layout.name != "auto" or tensor.ndim >= len(AUTO) else AUTO[tensor.ndim]
    grid = f" on {layout.grid[0]} × {layout.grid[1]}" if layout.grid else ""
    return f"Axes read as {name}{grid}"


def _show_note(layout: Layout) -> None:
    if layout.note or not layout.known:
        words = layout.note or "assumed: nothing in the network says so"
        st.caption(words, width="content")


def _spelled(name: str) -> str:
    return " × ".join(_MEANINGS[letter] for letter in name)


def _choose_grid(key: str, tokens: int, layout: Layout, parameter: str) -> tuple[int, int] | None:
    """Rows and columns for tokens; none leaves them as one table."""
    suggested = layout.grid if layout.grid and max(layout.grid) <= tokens else (0, 0)
    rows, columns = state.asked_pair(parameter, tokens) or suggested
    height = int(st.number_input("Rows of the grid (0: one table)", 0, tokens, rows, key=f"{key}-rows"))
    width = int(st.number_input("Columns of the grid", 0, tokens, columns, key=f"{key}-columns"))
    state.put_in_address(parameter, None if (height, width) == suggested else f"{height}x{width}")
    return (height, width) if height and width else None
