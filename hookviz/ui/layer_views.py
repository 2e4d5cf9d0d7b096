"""A layer's pictures and numbers: channels as mosaic or figure, distribution, statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.describe import constant_channels, dead_channels
from hookviz.layer_picture import Shown, draw_figure
from hookviz.types import ChannelStatistics, Histogram, LayerInfo, Summary
from hookviz.ui.channel_mosaic import legend_markup
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.resources import digest
from hookviz.ui.sentences import sentence
from hookviz.ui.style import escaped, show, show_named, theme_name
from hookviz.views import Mosaic, figure_bytes, histogram_figure, number, single_value, value_text
from hookviz.views.labels import numbers_of

CSS_PIXELS_AN_INCH = 96
_NARROWEST = 520
"""CSS pixels: on a phone a wide figure scrolls sideways, since its words would be too small to read."""
_FIGURE_WORDS = {
    "maps": "Channels of {} with numbers, ranges and a colour bar",
    "lines": "Channels of {} as lines with numbers and ranges",
    "bars": "Values of {} as bars, the largest with their numbers",
}


def show_distribution(
    shown: Shown, about: Mapping[str, str], histogram: DeltaGenerator, numbers: DeltaGenerator
) -> None:
    """How the layer's values are distributed, in two places; of a single value there is nothing to say."""
    if shown.summary.count > 1:
        with histogram:
            show_histogram(shown.summary)
        with numbers:
            show_numbers(shown.summary, about)


def show_legend(picture: Mosaic, shown: Shown) -> None:
    """What the colours of a mosaic stand for."""
    show(legend_markup(picture, shown.maps.shows))
    show_note(shown)


def show_figure(info: LayerInfo, shown: Shown, page: int) -> None:
    """The same page as a matplotlib figure that can be read by itself; one value as text."""
    if shown.picture == "number":
        what = "" if shown.maps.shows == "value" else f'<span class="what">{escaped(shown.maps.shows)}</span>'
        show(f'<div class="hv-value">{what}{escaped(single_value(shown.maps))}</div>')
    else:
        figure = draw_figure(info, shown, page, theme=theme_name())
        alt = _FIGURE_WORDS[shown.picture].format(info.name or "the whole network")
        width = CSS_PIXELS_AN_INCH * figure.get_figwidth()
        limits = f"max-width:{1.25 * width:.0f}px;min-width:{min(width, _NARROWEST):.0f}px"
        source = data_url(figure_bytes(figure, "png", dpi=150))
        show(f'<div class="hv-figure"><img src="{source}" alt="{escaped(alt)}" style="{limits}"></div>')
    show_note(shown)


def show_note(shown: Shown) -> None:
    """What the arrangement of the values needs said."""
    if shown.maps.note:
        st.caption(sentence(shown.maps.note))


def show_histogram(summary: Summary) -> None:
    """The distribution of all values."""
    svg = _histogram(_digest(summary), theme_name(), summary)
    alt = "Histogram of all values of the layer"
    show(f'<div class="hv-figure"><img src="{data_url(svg, "image/svg+xml")}" alt="{alt}"></div>')


@st.cache_data(show_spinner=False, max_entries=64)
def _histogram(digest: str, theme: Literal["light", "dark"], _summary: Summary) -> bytes:  # noqa: ARG001
    """Drawn once for the same numbers, which ``digest`` stands for: drawing takes longer than all else on a card."""
    return figure_bytes(histogram_figure(_summary, theme=theme), "svg")


def _digest(summary: Summary) -> str:
    histogram = summary.histogram
    numbers = replace(summary, histogram=_NO_HISTOGRAM)
    return digest(repr(numbers).encode() + histogram.counts.tobytes() + histogram.edges.tobytes())


_NO_HISTOGRAM = Histogram(np.zeros(0, np.int64), np.zeros(0))


def show_numbers(summary: Summary, about_channels: Mapping[str, str] | None = None) -> None:
    """The statistics, each with its name."""
    show_named(_moments(summary) | dict(about_channels or {}) | _non_finite(summary))


def _moments(summary: Summary) -> dict[str, str]:
    rows = {
        "mean": _text(summary.mean),
        "sd (population)": _text(summary.std),
        "min": _extreme(summary, summary.min),
        "max": _extreme(summary, summary.max),
        "zeros": "n/a" if summary.sparsity is None else f"{100 * summary.sparsity:.1f} %",
        "values": f"{summary.count:,}",
    }
    return rows if summary.shows == "value" else rows | {"of the": summary.shows}


def channel_counts(info: LayerInfo, statistics: ChannelStatistics) -> dict[str, str]:
    """How many channels are constant, and how many dead where that means something."""
    rows = {}
    channels = len(statistics.mean)
    constant, silent = constant_channels(statistics), dead_channels(statistics, info.class_name)
    if constant:
        rows["constant channels here"] = f"{constant} of {channels}"
    if silent is not None:
        rows["channels all zero here"] = f"{silent} of {channels}"
    return rows


def _non_finite(summary: Summary) -> dict[str, str]:
    counts = {"NaN": summary.nan, "+Inf": summary.posinf, "−Inf": summary.neginf}
    return {name: f"{count:,}" for name, count in counts.items() if count}


def _extreme(summary: Summary, value: float | None) -> str:
    """A value that is in the tensor: an integer has all its digits."""
    integer = numbers_of(summary.dtype, summary.shows) == "integer"
    return value_text(value, "integer") if integer and value is not None else _text(value)


def _text(value: float | None) -> str:
    return "n/a" if value is None else number(value)
