"""The gradients of a network's layers side by side, on a logarithmic axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np
from matplotlib.ticker import FixedLocator, NullLocator

from hookviz.errors import ViewError
from hookviz.views.canvas import FONT, Canvas
from hookviz.views.labels import number
from hookviz.views.theme import theme_colours

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName

_LEFT, _RIGHT, _TOP, _PLOT_HEIGHT = 64, 20, 62, 220
_MARGIN, _LETTER = 26, 5.4  # below the plot: around the names that stand on end, and for each of their letters
_STEP, _NARROWEST, _WIDEST = 24, 480, 1600  # the caption needs that much
_SMALLEST = 1e-300  # matplotlib's logarithmic axis does not reach the smallest float64


class LayerGradient(Protocol):
    """What the figure needs to know of a layer: ``hookviz.GradientStatistics`` has it."""

    @property
    def name(self) -> str:
        """The layer's name."""

    @property
    def verdict(self) -> str:
        """``"fine"``, or what is wrong."""

    @property
    def mean(self) -> float | None:
        """The mean absolute gradient, None where there is none."""

    @property
    def max(self) -> float | None:
        """The largest absolute gradient, None where there is none."""


def gradient_flow_figure(
    layers: Sequence[LayerGradient], *, title: str | None = None, theme: ThemeName = "light"
) -> Figure:
    """Mean and largest absolute gradient of every layer, in the order given, upward on a logarithmic axis.

    A line joins the means and bars reach the largest. A gradient of exactly zero has no place on such an axis: it is a
    triangle at the foot. A layer without a gradient has nothing but its verdict behind its name, as has every layer
    that is not fine.

    Args:
        layers: ``gradient_flow(...).layers``, or its ``.parameters``.
        title: The first line; None is ``"gradient flow"``.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: No layers, or a theme that does not exist.
    """
    if not layers:
        raise ViewError("a gradient flow needs at least one layer with parameters")
    look = theme_colours(theme)
    plot_width = min(_WIDEST, max(_NARROWEST, _STEP * len(layers)))
    bottom = _MARGIN + round(_LETTER * max(len(_label(layer)) for layer in layers))
    canvas = Canvas.blank(_LEFT + plot_width + _RIGHT, _TOP + _PLOT_HEIGHT + bottom, look)
    canvas.heading("gradient flow" if title is None else title)
    canvas.text(20, 38, "line: mean of |gradient|  ·  bars: largest  ·  triangles: exactly zero  ·  forward order →")
    axes = canvas.axes(_LEFT, _TOP, plot_width, _PLOT_HEIGHT)
    means, largest = _values([layer.mean for layer in layers]), _values([layer.max for layer in layers])
    floor, ceiling = _limits(means, largest)
    axes.set_yscale("log")
    axes.set_ylim(floor, ceiling)
    axes.set_xlim(-0.6, len(layers) - 0.4)
    places = np.arange(len(layers))
    axes.bar(places, np.where(largest > 0, largest, np.nan) - floor, 0.7, bottom=floor, color=look.bars, linewidth=0)
    axes.plot(places, np.where(means > 0, means, np.nan), color=look.accent, marker="o", markersize=3, linewidth=1.4)
    zeros = places[largest == 0]
    axes.plot(zeros, np.full(len(zeros), floor), "^", color=look.warning, markersize=6, clip_on=False)
    _tick_powers(axes, floor, ceiling)
    _name_layers(canvas, axes, layers)
    return canvas.figure


def _values(values: list[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], np.float64)


def _limits(*values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Whole powers of ten around everything positive."""
    positive = np.concatenate(values)
    positive = positive[np.isfinite(positive) & (positive > 0)].clip(_SMALLEST, 1 / _SMALLEST)
    if not len(positive):
        return 0.1, 1.0
    low, high = math.floor(math.log10(positive.min())), math.ceil(math.log10(positive.max()))
    return 10.0 ** (low - 1), 10.0 ** max(high, low + 1)


def _tick_powers(axes: Axes, floor: float, ceiling: float) -> None:
    """At most nine powers of ten; matplotlib's own choice of them overflows near the ends of float64."""
    low, high = round(math.log10(floor)), round(math.log10(ceiling))
    powers = [10.0**power for power in range(low, high + 1, math.ceil((high - low + 1) / 9))]
    axes.yaxis.set_major_locator(FixedLocator(powers))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: number(value, 1))


def _name_layers(canvas: Canvas, axes: Axes, layers: Sequence[LayerGradient]) -> None:
    every = math.ceil(_STEP / 2 * len(layers) / _WIDEST)  # names that would touch each other help nobody
    shown = [place for place, layer in enumerate(layers) if place % every == 0 or layer.verdict != "fine"]
    axes.set_xticks(shown)
    labels = [_label(layers[place]) for place in shown]
    axes.set_xticklabels(labels, rotation=90, fontsize=7, fontfamily=FONT, parse_math=False)
    for place, text in zip(shown, axes.get_xticklabels(), strict=True):
        text.set_color(canvas.theme.quiet if layers[place].verdict == "fine" else canvas.theme.warning)


def _label(layer: LayerGradient) -> str:
    name = layer.name if len(layer.name) <= 22 else "…" + layer.name[-21:]
    return name if layer.verdict == "fine" else f"{name}: {layer.verdict}"
