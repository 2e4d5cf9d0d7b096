"""A figure measured in pixels: what hookviz's figures are put together from, without pyplot and without rcParams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.views.theme import Theme

DPI = 100
FONT = "DejaVu Sans"  # travels with matplotlib, so a figure looks the same everywhere


@dataclass(frozen=True, slots=True)
class Canvas:
    """A figure under construction. All places are in pixels from its top left corner, at 100 dots per inch."""

    figure: Figure
    width: float
    height: float
    theme: Theme

    @classmethod
    def blank(cls, width: float, height: float, theme: Theme) -> Canvas:
        """An empty figure, known to no one but its holder."""
        # Here, so that the page's first mosaics, which are no figures, do not wait for them.
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=theme.background)
        figure.set_layout_engine("none")
        FigureCanvasAgg(figure)
        return cls(figure, width, height, theme)

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes on a rectangle, without frame and background."""
        bottom = self.height - top - height
        place = (left / self.width, bottom / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(place, facecolor="none")
        axes.grid(visible=False)
        axes.spines[:].set_visible(False)
        axes.tick_params(colors=self.theme.quiet, labelsize=8, labelfontfamily=FONT, length=3, width=0.8)
        return axes

    def text(self, left: float, top: float, text: str, **style: Any) -> None:
        """Words, their upper left corner at a place unless ``style`` says otherwise; dollars stay dollars."""
        look: dict[str, Any] = {"va": "top", "fontsize": 8, "color": self.theme.quiet, "family": FONT} | style
        self.figure.text(left / self.width, 1 - top / self.height, text, parse_math=False, **look)

    def heading(self, text: str) -> None:
        """The figure's first line."""
        self.text(20, 16, text, fontsize=10.5, fontweight="bold", color=self.theme.ink)

    def swatch(self, left: float, top: float, side: float, colour: str) -> None:
        """A small square of one colour."""
        from matplotlib.patches import Rectangle  # here for the same reason

        corner = (left / self.width, 1 - (top + side) / self.height)
        square = Rectangle(corner, side / self.width, side / self.height, transform=self.figure.transFigure)
        square.set(facecolor=colour, linewidth=0)
        self.figure.add_artist(square)
