"""A layer's pictures and numbers: channels as mosaic or figure, distribution, statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import streamlit as st
from matplotlib.figure import Figure
from torch import Tensor

from hookviz.channels import dead_channels_apply
from hookviz.types import ChannelMaps, ChannelStatistics, LayerInfo, Summary
from hookviz.ui import state
from hookviz.ui.channel_mosaic import mosaic_markup
from hookviz.ui.layer_picker import size
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.sentences import sentence
from hookviz.ui.style import escaped, show, theme_name
from hookviz.views import channel_grid_figure, figure_bytes, histogram_figure, mosaic_picture, number

PER_PAGE = 64


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor of one call as the card shows it; ``order`` is None for channels in the order of their numbers.

    It has all that drawing it needs: downloads draw it later, where there is no session to ask.
    """

    tensor: Tensor
    maps: ChannelMaps
    summary: Summary
    statistics: ChannelStatistics
    order: npt.NDArray[np.int64] | None
    display: state.Display


def show_mosaic(info: LayerInfo, shown: Shown, page: int) -> None:
    """A page of channels, a pixel for each value."""
    picture = mosaic_picture(shown.maps, order=shown.order, page=page, per_page=PER_PAGE, **shown.display)
    show(mosaic_markup(picture, shown.statistics, info.name or "the whole network"))
    _show_note(shown)


def show_figure(info: LayerInfo, shown: Shown, page: int) -> None:
    """The same page as a matplotlib figure with numbered channels and a colour bar."""
    png = figure_bytes(_figure(info, shown, page, theme_name()), "png", dpi=150)
    alt = f"Channels of {info.name or 'the whole network'} with numbers, ranges and a colour bar"
    show(f'<div class="hv-figure"><img src="{data_url(png)}" alt="{escaped(alt)}"></div>')
    _show_note(shown)


def export_figure(info: LayerInfo, shown: Shown, page: int) -> Figure:
    """The figure on white, for paper."""
    return _figure(info, shown, page, "light")


def _figure(info: LayerInfo, shown: Shown, page: int, theme: Literal["light", "dark"]) -> Figure:
    return channel_grid_figure(
        shown.maps,
        order=shown.order,
        page=page,
        per_page=PER_PAGE,
        title=f"{info.name or '(whole network)'}  {info.class_name}  {size(shown.maps.shape)}",
        theme=theme,
        **shown.display,
    )


def _show_note(shown: Shown) -> None:
    if shown.maps.note:
        st.caption(sentence(shown.maps.note))


def show_histogram(shown: Shown) -> None:
    """The distribution of all values."""
    svg = figure_bytes(histogram_figure(shown.summary, theme=theme_name()), "svg")
    alt = "Histogram of all values of the layer"
    show(f'<div class="hv-figure"><img src="{data_url(svg, "image/svg+xml")}" alt="{alt}"></div>')


def show_numbers(info: LayerInfo, shown: Shown) -> None:
    """The statistics, each with its name."""
    rows = _moments(shown.summary) | _channel_counts(info, shown.statistics) | _non_finite(shown.summary)
    cells = "".join(
        f'<span><span class="what">{escaped(name)}</span>{escaped(value)}</span>' for name, value in rows.items()
    )
    show(f'<div class="hv-numbers">{cells}</div>')


def _moments(summary: Summary) -> dict[str, str]:
    rows = {
        "mean": _text(summary.mean),
        "sd (population)": _text(summary.std),
        "min": _text(summary.min),
        "max": _text(summary.max),
        "zeros": "n/a" if summary.sparsity is None else f"{100 * summary.sparsity:.1f} %",
        "values": f"{summary.count:,}",
    }
    return rows if summary.shows == "value" else rows | {"of the": summary.shows}


def _channel_counts(info: LayerInfo, statistics: ChannelStatistics) -> dict[str, str]:
    rows = {}
    channels = len(statistics.mean)
    constant = int(np.count_nonzero(statistics.min == statistics.max))
    if constant and statistics.count > 1:
        rows["constant channels"] = f"{constant} of {channels}"
    if dead_channels_apply(info.class_name) and statistics.count > 1:
        silent = int(np.count_nonzero(statistics.zeros == statistics.count))
        rows["channels all zero here"] = f"{silent} of {channels}"
    return rows


def _non_finite(summary: Summary) -> dict[str, str]:
    counts = {"NaN": summary.nan, "+Inf": summary.posinf, "−Inf": summary.neginf}
    return {name: f"{count:,}" for name, count in counts.items() if count}


def _text(value: float | None) -> str:
    return "n/a" if value is None else number(value)
