"""The card of a layer of which numbers alone were kept."""

from __future__ import annotations

import streamlit as st

from hookviz.describe import title
from hookviz.hooks import Call
from hookviz.hooks.structure import leaves
from hookviz.types import LayerInfo, Summary
from hookviz.ui.layer_views import show_histogram, show_numbers
from hookviz.ui.resources import LayerCapture
from hookviz.ui.sentences import one_sentence
from hookviz.ui.style import badge, escaped, show


def show_statistics(position: int, info: LayerInfo, capture: LayerCapture) -> None:
    """Show how each call's values are distributed."""
    with st.container(border=True, key=f"card-{position}"), one_sentence():
        show(
            f'<div class="hv-title"><span class="layer hv-mono">{escaped(title(info.name))}</span>'
            f"{badge('warn', 'statistics of the exact values; the values were not kept')}</div>"
        )
        for call in capture.calls:
            _show_call(call, len(capture.calls))


def _show_call(call: Call, calls: int) -> None:
    for path, summary in leaves(call.output, Summary):
        words = [f"call {call.index + 1}" if calls > 1 else "", f"part {path}" if path else ""]
        if any(words):
            st.caption(", ".join(filter(None, words)))
        histogram, numbers = st.columns([2, 3], gap="medium", vertical_alignment="center")
        with histogram:
            show_histogram(summary)
        with numbers:
            show_numbers(summary)
