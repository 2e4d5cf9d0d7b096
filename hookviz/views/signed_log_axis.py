"""An axis for values of very different magnitudes on both sides of zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.views.labels import number

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from hookviz.types import FloatArray, Summary

_DECADES = 200
"""Powers of ten between the linear part and the ends; float64 has room for no more than three times as many."""

_SMALLEST = 1e-300
_LABELS = 5
"""Ticks on each side of zero."""


@dataclass(frozen=True, slots=True)
class SignedLogAxis:
    """Places ``asinh(value / linear)``: even steps up to ``linear`` on both sides of zero, then as a logarithm.

    ``linear`` is a power of ten, ``low`` and ``high`` are the values at the ends, zero always between them.
    """

    linear: float
    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float], typical: Iterable[float]) -> SignedLogAxis:
        """An axis that holds all these values, linear up to the (lower) median of what is ``typical`` of them."""
        finite = [value for value in values if math.isfinite(value)]
        low, high = min([0.0, *finite]), max([0.0, *finite])
        reach = max(-low, high)
        sizes = sorted(value for value in typical if 0 < value < math.inf)
        size = min(sizes[(len(sizes) - 1) // 2], reach or math.inf) if sizes else reach or 1.0
        linear = 10.0 ** math.floor(math.log10(max(size, _SMALLEST, reach / 10.0**_DECADES)))
        return cls(linear, low, high) if reach else cls(linear, -linear, linear)

    @classmethod
    def of_summaries(cls, summaries: Iterable[Summary]) -> SignedLogAxis:
        """An axis that holds the histograms of all these, linear up to their median standard deviation."""
        every = list(summaries)
        edges = [float(one.histogram.edges[end]) for one in every if len(one.histogram.edges) for end in (0, -1)]
        return cls.around(edges, [one.std for one in every if one.std is not None])

    def place(self, values: FloatArray | float) -> npt.NDArray[np.float64]:
        """Where values lie, in the axis's own units, in which zero is 0."""
        return np.arcsinh(np.asarray(values, np.float64) / self.linear)

    def limits(self, margin: float = 0.02) -> tuple[float, float]:
        """The places of both ends, a share of the axis further out."""
        low, high = float(self.place(self.low)), float(self.place(self.high))
        return low - margin * (high - low), high + margin * (high - low)

    def ticks(self) -> list[float]:
        """Zero and round values to both sides of it, a few powers of ten apart where there are many."""
        first, last = round(math.log10(self.linear)), math.floor(math.log10(max(-self.low, self.high)))
        step = math.ceil((last - first + 1) / _LABELS)
        sizes = [10.0**power for power in range(first, last + 1, step)]
        if last - first < 2:
            sizes += [3 * 10.0**power for power in range(first, last + 1)]
        return sorted({0.0, *(-size for size in sizes if -size >= self.low), *(s for s in sizes if s <= self.high)})

    def words(self) -> str:
        """What a reader has to know of the axis."""
        return f"linear up to ±{number(self.linear, 1)}, logarithmic beyond"
