"""The distribution of a layer's values, and of one channel within it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.views.canvas import Canvas
from hookviz.views.labels import NO_FINITE, number, numbers_of, value_text
from hookviz.views.theme import theme_colours
from hookviz.views.value_axis import ValueAxis, count_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.types import Summary
    from hookviz.views.theme import ThemeName

_WIDTH = 440
_MARGIN, _LEFT, _BOTTOM = 20, 54, 48
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - 2 * _LEFT, 168
_ROW, _MEAN_ROW = 18, 17
_FONT_SIZE = 8.5
_CHARACTERS = 62
"""So many of the usual size fit on a line."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One distribution in the figure, its colours, and its row of words: 0 for the layer, 1 for the channel."""

    name: str
    summary: Summary
    row: int
    bars: str
    words: str
    mean: str
    opacity: float

    @property
    def drawn(self) -> bool:
        return len(self.summary.histogram.counts) > 0


def histogram_figure(  # noqa: PLR0913 - two summaries and four settings, all but the summaries by name
    layer: Summary,
    channel: Summary | None = None,
    *,
    channel_number: int | None = None,
    title: str | None = None,
    log: bool = False,
    theme: ThemeName = "light",
) -> Figure:
    """The histogram of a layer, with one of its channels in front, mean and standard deviation marked.

    The layer's counts are read on the left, the channel's on an axis of its own on the right, both in values per bin. A
    line is a mean, the band around it reaches one (population) standard deviation to both sides. NaN and infinite
    values have no place on the axis, so they are counted in words.

    Args:
        layer: Of the whole layer.
        channel: Of one channel, or None.
        channel_number: Its number, for the labels.
        title: The first line; None is ``"distribution"``.
        log: Whether counts are drawn on logarithmic axes.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: A theme that does not exist.
    """
    look = theme_colours(theme)
    parts = [_Part("layer", layer, 0, look.bars, look.quiet, look.ink, 0.9)]
    if channel is not None:
        name = "channel" if channel_number is None else f"channel {channel_number}"
        parts.append(_Part(name, channel, 1, look.accent, look.accent, look.accent, 0.35))
    left_out = "     ".join(words for part in parts if (words := _not_finite(part)))
    top = 40 + _ROW * (len(parts) + bool(left_out)) + _MEAN_ROW * len(parts)
    canvas = Canvas.blank(_WIDTH, top + _PLOT_HEIGHT + _BOTTOM, look)
    canvas.heading("distribution" if title is None else title)
    for part in parts:
        words = "  ·  ".join(_words(part))
        size = _FONT_SIZE * min(1.0, _CHARACTERS / len(words))
        canvas.text(_MARGIN, 38 + _ROW * part.row, words, color=part.words, fontsize=size)
    canvas.text(_MARGIN, 38 + _ROW * len(parts), left_out, fontweight="bold", color=look.warning)
    drawn = [part for part in parts if part.drawn]
    if drawn:
        _add_plot(canvas, drawn, top, log=log)
    else:
        text = NO_FINITE if layer.count else "empty"
        canvas.text(_WIDTH / 2, top + _PLOT_HEIGHT / 2, text, ha="center", va="center", fontsize=10)
    return canvas.figure


def _words(part: _Part) -> list[str]:
    summary = part.summary
    words = [f"{part.name}:  {summary.count:,} values"]
    if summary.min is not None and summary.max is not None:
        integer = numbers_of(summary.dtype, summary.shows) == "integer"
        low, high = (value_text(value, "integer" if integer else "real") for value in (summary.min, summary.max))
        words += [f"min {low}", f"max {high}"]
    if summary.sparsity is not None:
        words.append(f"zeros {number(100 * summary.sparsity, 3)} %")
    return words


def _not_finite(part: _Part) -> str:
    classes = {"NaN": part.summary.nan, "+Inf": part.summary.posinf, "−Inf": part.summary.neginf}
    counts = "  ·  ".join(f"{label} {count:,}" for label, count in classes.items() if count)
    return f"{part.name}:  {counts}" if counts else ""


def _add_plot(canvas: Canvas, parts: list[_Part], top: float, *, log: bool) -> None:
    values = ValueAxis.around([part.summary.histogram.edges for part in parts])
    for position, part in enumerate(parts):
        axes = canvas.axes(_LEFT, top, _PLOT_WIDTH, _PLOT_HEIGHT)
        values.apply(axes, part.summary.shows if position == 0 else "", canvas.theme)
        counts = part.summary.histogram.counts
        count_axis(axes, counts, log=log, right=part.row == 1, colour=part.words)
        floor = axes.get_ylim()[0]
        edges = values.place(part.summary.histogram.edges)
        heights = np.maximum(counts, floor)
        axes.stairs(heights, edges, baseline=floor, fill=True, color=part.bars, alpha=part.opacity, linewidth=0)
        if part.row:
            axes.stairs(heights, edges, baseline=floor, color=part.bars, linewidth=0.9)
        _mark_mean(canvas, axes, part, values, top)


def _mark_mean(canvas: Canvas, axes: Axes, part: _Part, values: ValueAxis, plot_top: float) -> None:
    mean, std = part.summary.mean, part.summary.std
    if mean is None or std is None:
        return
    low, middle, high = values.place(np.array([mean - std, mean, mean + std]))
    axes.axvspan(low, high, color=part.mean, alpha=0.09, linewidth=0)
    axes.axvline(middle, color=part.mean, linewidth=1.2)
    share = values.share(middle)
    side = "left" if share < 0.2 else "right" if share > 0.8 else "center"
    words = f"mean {number(mean)} ± sd {number(std)}"
    left, top = _LEFT + share * _PLOT_WIDTH, plot_top - 9 - _MEAN_ROW * part.row
    canvas.text(left, top, words, ha=side, va="center", color=part.mean, fontsize=_FONT_SIZE)
