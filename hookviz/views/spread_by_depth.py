"""Mean and standard deviation of every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter

from hookviz.errors import ViewError
from hookviz.views.depth_chart import depth_chart, rule
from hookviz.views.labels import number
from hookviz.views.signed_log_axis import SignedLogAxis

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName

_LARGEST = float(np.finfo(np.float64).max)


def spread_by_depth_figure(
    means: npt.NDArray[np.float64],
    deviations: npt.NDArray[np.float64],
    *,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """A line through the means, and a band that reaches one standard deviation to both sides.

    The axis is linear around zero and logarithmic further out. A layer whose mean is NaN leaves a gap with a cross.

    Args:
        means: One for each layer, in order.
        deviations: As many.
        title: The first line; None is ``"mean and spread by depth"``.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: No layers, not as many deviations as means, or a theme that does not exist.
    """
    if len(means) != len(deviations):
        raise ViewError(f"{len(means)} means need as many deviations, got {len(deviations)}")
    with np.errstate(over="ignore"):
        low, high = (np.clip(end, -_LARGEST, _LARGEST) for end in (means - deviations, means + deviations))
    axis = SignedLogAxis.around([*low.tolist(), *high.tolist()], deviations.tolist())
    caption = f"line: mean  ·  band: mean ± standard deviation  ·  axis {axis.words()}"
    canvas, plot = depth_chart(len(means), "mean and spread by depth" if title is None else title, caption, theme)
    look, places = canvas.theme, np.arange(1, len(means) + 1)
    bottom, top = axis.place(low), axis.place(high)
    plot.bar(places, top - bottom, 0.86, bottom=bottom, color=look.bars, alpha=0.75, linewidth=0)
    plot.plot(places, axis.place(means), color=look.accent, linewidth=1.2, marker="o", markersize=2.4)
    missing = places[~np.isfinite(means)]
    plot.plot(missing, np.zeros(len(missing)), "x", color=look.warning, markersize=5)
    texts = {float(axis.place(value)): number(value) for value in axis.ticks()}
    plot.set_ylim(axis.limits(0.04))
    plot.yaxis.set_major_locator(FixedLocator(list(texts)))
    plot.yaxis.set_major_formatter(FuncFormatter(lambda place, _: texts.get(float(place), "")))
    rule(canvas, plot)
    plot.axhline(0, color=look.quiet, linewidth=0.7, zorder=0.5)
    return canvas.figure
