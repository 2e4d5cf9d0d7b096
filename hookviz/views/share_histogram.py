"""How shares from 0 to 1 spread: probabilities, or entropies as shares of the largest possible one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from hookviz.errors import ViewError
from hookviz.views.canvas import FONT, Canvas
from hookviz.views.theme import theme_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hookviz.types import FloatArray
    from hookviz.views.theme import ThemeName

_WIDTH, _LEFT, _TOP, _HEIGHT, _BOTTOM = 370, 66, 44, 120, 50
BINS = 20


def share_histogram_figure(shares: FloatArray, *, title: str, label: str, theme: ThemeName = "light") -> Figure:
    """Counts of shares in twenty bins from 0 to 1.

    Args:
        shares: Each from 0 to 1.
        title: The first line.
        label: What the shares are, for the axis.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: A share outside 0 to 1, or a theme that does not exist.
    """
    values = np.asarray(shares, np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ViewError("shares go from 0 to 1")
    counts, edges = np.histogram(values, BINS, (0.0, 1.0))
    canvas = Canvas.blank(_WIDTH, _TOP + _HEIGHT + _BOTTOM, theme_colours(theme))
    canvas.heading(title)
    plot = canvas.axes(_LEFT, _TOP, _WIDTH - _LEFT - 20, _HEIGHT)
    plot.stairs(counts, edges, fill=True, color=canvas.theme.bars, linewidth=0)
    plot.set(xlim=(0, 1), ylim=(0, 1.06 * max(1, int(counts.max()))))
    plot.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    plot.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    plot.spines["bottom"].set(visible=True, color=canvas.theme.line, linewidth=0.8)
    plot.set_xlabel(label, color=canvas.theme.quiet, fontsize=8, fontfamily=FONT)
    plot.set_ylabel("images", color=canvas.theme.quiet, fontsize=8, fontfamily=FONT)
    return canvas.figure
