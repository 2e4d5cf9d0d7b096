"""How the open channel's values are distributed, against all of its layer."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import streamlit as st

from hookviz.types import Histogram
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import show, theme_name
from hookviz.views import channel_histogram_figure, counts_over, figure_bytes


def show_channel_distribution(channels: CardChannels, channel: int, values: npt.NDArray[np.float64]) -> None:
    """Show the histogram of a channel's ``values`` over that of its layer; of a single value there is none."""
    summary = channels.shown.summary
    if values.size < 2:
        return
    svg = _histogram(f"{channels.of} {channel}", theme_name(), channel, summary.shows, summary.histogram, values)
    alt = f"Histogram of channel {channel} over that of its layer"
    show(f'<div class="hv-figure hv-part"><img src="{data_url(svg, "image/svg+xml")}" alt="{alt}"></div>')


@st.cache_data(show_spinner=False, max_entries=128)
def _histogram(
    key: str,  # noqa: ARG001 - what the values are known by
    theme: Literal["light", "dark"],
    channel: int,
    shows: str,
    _layer: Histogram,
    _values: npt.NDArray[np.float64],
) -> bytes:
    counts = counts_over(_values, _layer.edges)
    figure = channel_histogram_figure(_layer, counts, channel_number=channel, shows=shows, theme=theme)
    return figure_bytes(figure, "svg")
