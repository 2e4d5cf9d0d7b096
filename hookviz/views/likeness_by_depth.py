"""How alike the layers of two networks respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.views.depth_chart import depth_chart, rule

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName


def likeness_by_depth_figure(
    likeness: npt.NDArray[np.float64],
    *,
    places: npt.NDArray[np.integer] | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """A stem for each layer from 0 up to its likeness, 1 where both respond alike.

    Args:
        likeness: One for each layer, in order, at most 1; those below 0 stand at 0. NaN, where it cannot be had, is a
            cross at the foot.
        places: The layers' numbers, ascending from 1, where only some of a network's layers are compared.
        title: The first line; None is ``"likeness by depth"``.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: No layers, or a theme that does not exist.
    """
    caption = "linear CKA: 1 responds alike, about 0 does not  ·  ×: not to be had"
    places = np.arange(1, len(likeness) + 1) if places is None else places
    last = int(places[-1]) if len(places) else 0
    canvas, plot = depth_chart(last, "likeness by depth" if title is None else title, caption, theme)
    look = canvas.theme
    known = np.isfinite(likeness)
    heights = np.clip(likeness[known], 0, 1)
    plot.vlines(places[known], 0, heights, color=look.bars, linewidth=1.6)
    plot.plot(places[known], heights, "o", color=look.accent, markersize=3.4)
    plot.plot(places[~known], np.zeros(int((~known).sum())), "x", color=look.warning, markersize=5, clip_on=False)
    plot.set_ylim(0, 1.04)
    plot.set_yticks([0, 0.25, 0.5, 0.75, 1])
    rule(canvas, plot)
    return canvas.figure
