"""A channel's values against those of its layer, on one pair of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from hookviz.errors import ViewError
from hookviz.views.canvas import Canvas
from hookviz.views.labels import NO_FINITE, number
from hookviz.views.theme import theme_colours
from hookviz.views.value_axis import ValueAxis

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.types import FloatArray, Histogram, IntArray
    from hookviz.views.theme import ThemeName

_WIDTH, _MARGIN, _LEFT, _RIGHT = 400, 20, 60, 14
_TOP, _PLOT_HEIGHT, _BOTTOM = 70, 150, 46
_FONT_SIZE, _LETTER = 8.5, 6.6


def counts_over(values: npt.NDArray[np.floating], edges: FloatArray) -> npt.NDArray[np.int64]:
    """How many finite values lie in each bin ``[edges[i], edges[i + 1])``, the last one closed.

    With the edges of a layer's histogram, one of its channels can be laid over it. Values that rounding has carried
    beyond the ends belong to the bins there. Without edges there are no bins.
    """
    if not len(edges):
        return np.zeros(0, np.int64)
    finite = values[np.isfinite(values)].astype(np.float64)
    places = np.clip(np.searchsorted(edges, finite, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(places, minlength=len(edges) - 1).astype(np.int64)


def channel_histogram_figure(  # noqa: PLR0913 - what is drawn, and four settings by name
    layer: Histogram,
    channel: IntArray,
    *,
    channel_number: int | None = None,
    shows: str = "value",
    title: str | None = None,
    log: bool = False,
    theme: ThemeName = "light",
) -> Figure:
    """The histogram of a channel in colour, over that of its whole layer in grey, as shares of the values of each.

    Args:
        layer: Of the layer, such as ``summarize(output).histogram``.
        channel: How many of the channel's values lie in each of the same bins, as :func:`counts_over` has it.
        channel_number: Its number, for the labels.
        shows: What the values are of, for the axis.
        title: The first line; None is ``"channel and layer"``.
        log: Whether the shares are drawn on a logarithmic axis.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: Another number of bins, or a theme that does not exist.
    """
    if len(channel) != len(layer.counts):
        raise ViewError(f"the channel has {len(channel)} bins and its layer {len(layer.counts)}; use counts_over")
    look = theme_colours(theme)
    canvas = Canvas.blank(_WIDTH, _TOP + _PLOT_HEIGHT + _BOTTOM, look)
    canvas.heading("channel and layer" if title is None else title)
    name = "channel" if channel_number is None else f"channel {channel_number:,}"
    first, second = f"{name}:  {int(channel.sum()):,} values", f"layer:  {int(layer.counts.sum()):,} values"
    _legend_entry(canvas, _MARGIN, look.accent, first)
    _legend_entry(canvas, max(_WIDTH / 2, _MARGIN + 25 + _LETTER * len(first)), look.bars, second)
    if not layer.counts.sum():
        canvas.text(_WIDTH / 2, _TOP + _PLOT_HEIGHT / 2, NO_FINITE, ha="center", va="center", fontsize=10)
        return canvas.figure
    axes = canvas.axes(_LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, _PLOT_HEIGHT)
    values = ValueAxis.around([layer.edges])
    values.apply(axes, shows, look)
    shares = [_shares(counts) for counts in (layer.counts, channel)]
    floor = _share_axis(axes, shares, log=log)
    edges = values.place(layer.edges)
    heights = [np.maximum(part, floor) for part in shares]
    line = np.where(channel > 0, heights[1], np.nan)  # none along the axis, where the channel has nothing
    axes.stairs(heights[0], edges, baseline=floor, fill=True, color=look.bars, alpha=0.9, linewidth=0)
    axes.stairs(heights[1], edges, baseline=floor, fill=True, color=look.accent, alpha=0.25, linewidth=0)
    axes.stairs(line, edges, baseline=floor, color=look.accent, linewidth=1.3)
    return canvas.figure


def _legend_entry(canvas: Canvas, left: float, colour: str, words: str) -> None:
    canvas.swatch(left, 44, 9, colour)
    canvas.text(left + 15, 48.5, words, va="center", fontsize=_FONT_SIZE, color=canvas.theme.ink)


def _shares(counts: IntArray) -> npt.NDArray[np.float64]:
    return np.asarray(counts / max(1, int(counts.sum())), np.float64)


def _share_axis(axes: Axes, shares: list[npt.NDArray[np.float64]], *, log: bool) -> float:
    """Shares in per cent, from zero or from below the smallest one, to above the largest; where the bars begin."""
    together = np.concatenate(shares)
    tallest, smallest = float(together.max()), float(together[together > 0].min())
    if log:
        axes.set_yscale("log")
        axes.set_ylim(smallest / 2, 2 * tallest)
        axes.yaxis.set_major_locator(LogLocator(numticks=5))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.04 * tallest)
        axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{number(100 * share, 3)} %"))
    return float(axes.get_ylim()[0])
