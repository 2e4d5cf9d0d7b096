"""How the channels are shown: their order, and how values become colours."""

from __future__ import annotations

import streamlit as st

from hookviz.ui import state

_SCALES = {"channel": "Channel", "shared": "Shared", "symmetric": "Symmetric"}
_ORDERS = {
    "index": "Channel number",
    "mean": "Mean, largest first",
    "max": "Maximum, largest first",
    "spread": "Spread (sd), largest first",
    "sparsity": "Share of zeros, largest first",
}


def choose_display(*, beside: bool) -> None:
    """Order, scale and colours, beside or below one another; the values are in the state."""
    with st.container(horizontal=beside, vertical_alignment="bottom", key="display"):
        st.selectbox(
            "Sort channels by",
            state.options(state.SORT),
            key=state.SORT,
            format_func=_ORDERS.__getitem__,
            on_change=state.changed,
            width=230 if beside else "stretch",
        )
        st.segmented_control(
            "Scale",
            state.options(state.SCALE),
            key=state.SCALE,
            required=True,
            width="content" if beside else "stretch",
            format_func=_SCALES.__getitem__,
            on_change=state.changed,
            help=(
                "Channel: each map over its own range. Shared: all maps over the layer's range. "
                "Symmetric: all maps over one range around zero."
            ),
        )
        st.selectbox(
            "Colormap",
            state.options(state.CMAP),
            key=state.CMAP,
            on_change=state.changed,
            width=170 if beside else "stretch",
        )
        st.toggle(
            "Robust limits",
            key=state.ROBUST,
            on_change=state.changed,
            width="content" if beside else "stretch",
            help="From the 1st to the 99th percentile, so that a few extreme values do not hide the others.",
        )
