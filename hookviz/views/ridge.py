"""The distributions of many layers below one another, over one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import Affine2D

from hookviz.errors import ViewError
from hookviz.views.canvas import Canvas
from hookviz.views.labels import MINUS, NO_FINITE, number, numbers_of, value_range
from hookviz.views.signed_log_axis import SignedLogAxis
from hookviz.views.theme import theme_colours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.types import Summary
    from hookviz.views.theme import ThemeName

_WIDTH, _MARGIN, _GAP, _TOP, _BOTTOM = 760, 20, 10, 66, 34
_LOWEST, _TALLEST, _ALL_ROWS = 12.0, 44.0, 900.0
_HEIGHT = 0.92
"""Share of its row that a curve's tallest bin takes."""

_MOST_LETTERS, _FEWEST_LETTERS, _LETTER = 32, 15, 6.5


def ridge_figure(
    layers: Sequence[tuple[str, Summary]],
    *,
    axis: SignedLogAxis | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """The histogram of every layer, the first on top, over one axis that all share.

    The axis is linear around zero and logarithmic further out, so that layers can be compared however large their
    values are; zero is marked. Each curve is as tall as its own tallest bin, in values per bin. On the right stands the
    range, and how many values are NaN or infinite.

    Args:
        layers: Name and summary of each.
        axis: One that other figures share; None is one around these layers.
        title: The first line; None is ``"values by depth"``.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: No layers, or a theme that does not exist.
    """
    if not layers:
        raise ViewError("a ridge needs at least one layer")
    look = theme_colours(theme)
    axis = axis or SignedLogAxis.of_summaries(summary for _, summary in layers)
    row = min(_TALLEST, max(_LOWEST, _ALL_ROWS / len(layers)))
    canvas = Canvas.blank(_WIDTH, _TOP + row * len(layers) + _BOTTOM, look)
    canvas.heading("values by depth" if title is None else title)
    canvas.text(
        20, 38, f"value: one axis for all layers, {axis.words()}  ·  height: values per bin, each layer its own"
    )
    left = _MARGIN + _GAP + _LETTER * max(len(_short(name)) for name, _ in layers)
    right = _WIDTH - _MARGIN - _GAP - _LETTER * max(_FEWEST_LETTERS, *(len(_words(one)) for _, one in layers))
    plot = canvas.axes(left, _TOP, right - left, row * len(layers))
    plot.set_ylim(0, len(layers))
    _add_axis(canvas, plot, axis)
    for position, (name, summary) in enumerate(layers):
        _add_curve(canvas, plot, axis, summary, (len(layers) - 1 - position, position))
        foot, size = _TOP + row * (position + 1) - 2, 8 if row > 14 else 6.5
        colour, quiet = (look.warning, look.warning) if _lost(summary) else (look.ink, look.quiet)
        canvas.text(left - _GAP, foot, _short(name), ha="right", va="bottom", fontsize=size, color=colour)
        canvas.text(right + _GAP, foot, _words(summary), va="bottom", fontsize=size, color=quiet)
    return canvas.figure


def _add_axis(canvas: Canvas, plot: Axes, axis: SignedLogAxis) -> None:
    ticks = axis.ticks()
    texts = {float(axis.place(value)): number(value) for value in ticks}
    plot.set_xlim(axis.limits())
    plot.xaxis.set_major_locator(FixedLocator(list(texts)))
    plot.xaxis.set_major_formatter(FuncFormatter(lambda place, _: texts.get(float(place), "")))
    plot.yaxis.set_major_locator(NullLocator())
    plot.spines["bottom"].set(visible=True, color=canvas.theme.line, linewidth=0.8)
    for place in texts:
        plot.axvline(place, color=canvas.theme.line, linewidth=1.0 if place == 0 else 0.4, zorder=0)


def _add_curve(canvas: Canvas, plot: Axes, axis: SignedLogAxis, summary: Summary, place: tuple[int, int]) -> None:
    """The histogram as it is, counts upward; a transformation puts it on its floor, in front of the rows above."""
    (floor, position), look = place, canvas.theme
    plot.axhline(floor, color=look.line, linewidth=0.5, zorder=position + 1)
    counts = summary.histogram.counts
    if not len(counts):
        return
    into_row = Affine2D().scale(1, _HEIGHT / max(1, int(counts.max()))).translate(0, floor)
    curve = plot.stairs(
        counts, axis.place(summary.histogram.edges), fill=True, facecolor=look.bars, edgecolor=look.quiet
    )
    curve.set(transform=into_row + plot.transData, linewidth=0.5, alpha=0.88, zorder=position + 1)


def _words(summary: Summary) -> str:
    """The range, or what there is in place of finite values."""
    if summary.min is None or summary.max is None:
        return ", ".join((NO_FINITE, *_lost(summary))) if summary.count else "empty"
    between = value_range(summary.min, summary.max, 3, numbers_of(summary.dtype, summary.shows))
    return ", ".join(_lost(summary)) or between


def _lost(summary: Summary) -> list[str]:
    counts = {"NaN": summary.nan, "+Inf": summary.posinf, f"{MINUS}Inf": summary.neginf}
    return [f"{count:,} {name}" for name, count in counts.items() if count]


def _short(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else "…" + name[1 - _MOST_LETTERS :]
