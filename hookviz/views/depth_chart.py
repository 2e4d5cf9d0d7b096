"""A small chart of one number or more for each layer, by the layer's number in the order of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from hookviz.errors import ViewError
from hookviz.views.canvas import FONT, Canvas
from hookviz.views.theme import theme_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hookviz.views.theme import ThemeName

WIDTH, LEFT, RIGHT, TOP, HEIGHT, _BOTTOM = 760, 66, 20, 66, 170, 50


def depth_chart(layers: int, title: str, caption: str, theme: ThemeName) -> tuple[Canvas, Axes]:
    """A canvas with a heading and one line of words, and axes on which layer 1 lies at 1.

    Raises:
        ViewError: no layers, or a theme that does not exist.
    """
    if not layers:
        raise ViewError("a chart by depth needs at least one layer")
    canvas = Canvas.blank(WIDTH, TOP + HEIGHT + _BOTTOM, theme_colours(theme))
    canvas.heading(title)
    canvas.text(20, 38, caption)
    plot = canvas.axes(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT)
    plot.set_xlim(0.4, layers + 0.6)
    plot.xaxis.set_major_locator(MaxNLocator(12, integer=True))
    plot.xaxis.set_major_formatter(lambda place, _: f"{place:.0f}" if 1 <= place <= layers else "")
    plot.spines["bottom"].set(visible=True, color=canvas.theme.line, linewidth=0.8)
    plot.set_xlabel("layer, in the order of the run", color=canvas.theme.quiet, fontsize=8, fontfamily=FONT)
    return canvas, plot


def share_axis(canvas: Canvas, plot: Axes) -> None:
    """Upward from 0 to 100 %, with faint lines."""
    plot.set_ylim(0, 1)
    plot.yaxis.set_major_locator(MaxNLocator(4))
    plot.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    rule(canvas, plot)


def rule(canvas: Canvas, plot: Axes) -> None:
    """Faint lines across, behind everything."""
    plot.set_axisbelow(True)
    plot.grid(visible=True, axis="y", color=canvas.theme.line, linewidth=0.4)
