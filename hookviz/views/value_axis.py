"""The two axes of a histogram: values across, whatever their magnitude, and counts upward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from hookviz.views.labels import MINUS, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from hookviz.types import FloatArray, IntArray
    from hookviz.views.labels import Numbers
    from hookviz.views.theme import Theme

_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """A horizontal axis in units of a power of ten, so that neither 1e-45 nor 3e38 strains matplotlib."""

    power: int
    low: float
    high: float

    @classmethod
    def around(cls, edges: Sequence[FloatArray]) -> ValueAxis:
        """An axis that holds all of these bin edges."""
        lowest, highest = min(float(part[0]) for part in edges), max(float(part[-1]) for part in edges)
        reach = max(abs(lowest), abs(highest))
        # No power below -300: 10.0 ** 300 is still a float.
        power = 0 if reach == 0 or 1e-3 <= reach < 1e5 else max(-300, math.floor(math.log10(reach)))
        low, high = (value / 10.0**power for value in (lowest, highest))
        margin = 0.02 * (high - low) or 0.5 * max(abs(low), 1.0)
        return cls(power, low - margin, high + margin)

    def place(self, values: FloatArray) -> npt.NDArray[np.float64]:
        """Values in the axis's units."""
        return np.asarray(values, np.float64) / 10.0**self.power

    def share(self, placed: float) -> float:
        """How far along the axis a placed value lies, 0 to 1."""
        return min(1.0, max(0.0, (placed - self.low) / (self.high - self.low)))

    @property
    def unit(self) -> str:
        """The power of ten, for a label; nothing where it is one."""
        return f" (×10{str(self.power).translate(_SUPERSCRIPT)})" if self.power else ""

    def text(self, placed: float, numbers: Numbers = "real") -> str:
        """A tick in as many digits as tell it from its neighbours."""
        reach = max(abs(self.low), abs(self.high)) / (self.high - self.low)
        return value_text(placed, numbers, min(15, 4 + max(0, math.floor(math.log10(reach)))))

    def apply(self, axes: Axes, label: str, theme: Theme) -> None:
        """Limits, ticks and label for axes; without a label the axis stays invisible."""
        axes.set_xlim(self.low, self.high)
        if not label:
            axes.xaxis.set_visible(False)
            return
        axes.set_xlabel(label + self.unit, color=theme.quiet, fontsize=8, fontfamily="DejaVu Sans")
        axes.spines["bottom"].set(visible=True, color=theme.line, linewidth=0.8)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: self.text(value)))

    def apply_upright(self, axes: Axes, numbers: Numbers, theme: Theme) -> None:
        """Limits and ticks upward; whole numbers where the values are integers, words where they are booleans."""
        axes.set_ylim(self.low, self.high)
        axes.spines["left"].set(visible=True, color=theme.line, linewidth=0.8)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=numbers != "real" and not self.power))
        axes.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: self.text(value, "real" if self.power else numbers))
        )


def count_axis(axes: Axes, counts: IntArray, *, log: bool, right: bool, colour: str) -> None:
    """A few whole-numbered ticks from zero (from below one if logarithmic) to just above the tallest bin."""
    tallest = max(1, int(counts.max()))
    if log:
        axes.set_yscale("log")
        axes.set_ylim(0.5, 2 * tallest)
        axes.yaxis.set_major_locator(LogLocator(numticks=5))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.04 * tallest)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}".replace("-", MINUS)))
    axes.tick_params(axis="y", colors=colour)
    if right:
        axes.yaxis.tick_right()
