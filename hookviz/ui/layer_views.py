"""A layer's pictures and numbers: channels as mosaic or figure, distribution, statistics."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from hookviz.describe import constant_channels, dead_channels
from hookviz.layer_picture import Shown, draw_figure, draw_mosaic
from hookviz.types import ChannelStatistics, LayerInfo, Summary
from hookviz.ui.channel_mosaic import mosaic_markup
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.sentences import sentence
from hookviz.ui.style import escaped, show, theme_name
from hookviz.views import figure_bytes, histogram_figure, number, single_value, value_text
from hookviz.views.labels import numbers_of

CSS_PIXELS_AN_INCH = 96
_NARROWEST = 520
"""CSS pixels: on a phone a wide figure scrolls sideways, since its words would be too small to read."""
_FIGURE_WORDS = {
    "maps": "Channels of {} with numbers, ranges and a colour bar",
    "lines": "Channels of {} as lines with numbers and ranges",
    "bars": "Values of {} as bars, the largest with their numbers",
}


def show_mosaic(info: LayerInfo, shown: Shown, page: int) -> None:
    """A page of channels, a pixel for each value."""
    of = ", ".join(filter(None, [info.name or "the whole network", shown.part]))
    show(mosaic_markup(draw_mosaic(shown, page), shown.maps.shows, of))
    _show_note(shown)


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
    _show_note(shown)


def _show_note(shown: Shown) -> None:
    if shown.maps.note:
        st.caption(sentence(shown.maps.note))


def show_histogram(summary: Summary) -> None:
    """The distribution of all values."""
    svg = figure_bytes(histogram_figure(summary, theme=theme_name()), "svg")
    alt = "Histogram of all values of the layer"
    show(f'<div class="hv-figure"><img src="{data_url(svg, "image/svg+xml")}" alt="{alt}"></div>')


def show_numbers(summary: Summary, about_channels: Mapping[str, str] | None = None) -> None:
    """The statistics, each with its name."""
    rows = _moments(summary) | dict(about_channels or {}) | _non_finite(summary)
    cells = "".join(
        f'<span><span class="what">{escaped(name)}</span>{escaped(value)}</span>' for name, value in rows.items()
    )
    show(f'<div class="hv-numbers">{cells}</div>')


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
