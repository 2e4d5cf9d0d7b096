"""Counting values into bins: linear ones for the eye, fixed ones for streams."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK = 2**15
LARGEST = float(np.finfo(np.float64).max)


def linear_edges(low: float, high: float, *, bins: int) -> npt.NDArray[np.float64]:
    """The ``bins + 1`` edges that ``np.histogram`` takes between two finite numbers.

    Where it has none to give (equal or neighbouring numbers far from zero, ranges beyond float64), the edges are the
    nearest strictly increasing ones: as many neighbouring float64 around the numbers, or the same range computed at
    half size.
    """
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low / 2, high / 2, bins + 1) * 2 if math.isinf(high - low) else np.linspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high
    return edges if (edges[:-1] < edges[1:]).all() else _neighbouring_edges(low, high, bins=bins)


def count_between(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """How many values lie in each bin ``[edges[i], edges[i + 1])``, the last one closed; even edges around them all."""
    counts = np.zeros(len(edges) - 1, np.int64)
    for start in range(0, len(values), BLOCK):
        places = bin_of(values[start : start + BLOCK], edges)
        counts += np.bincount(places, minlength=len(counts))
    return counts


def bin_of(values: npt.NDArray[np.float64], edges: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """The bin of each value: by arithmetic, and by comparison with the edges where rounding could decide."""
    last = len(edges) - 2
    half = 0.5 * edges  # half of everything: a range beyond float64 would overflow
    width = (half[-1] - half[0]) / (last + 1)
    doubt = 1e-9 + 4 * np.spacing(np.abs(half).max()) / width if width > 1e-300 else 1.0
    if doubt > 0.25:
        return np.clip(np.searchsorted(edges, values, "right") - 1, 0, last)
    position = (values * 0.5 - half[0]) * (1 / width)
    places = position.astype(np.intp)
    nearest = np.rint(position)
    position -= nearest
    unsure = np.flatnonzero((np.abs(position, out=position) < doubt) & (nearest > 0))
    places[unsure] = np.searchsorted(edges, values[unsure], "right") - 1
    clipped: npt.NDArray[np.intp] = np.minimum(places, last)
    return clipped


def _neighbouring_edges(low: float, high: float, *, bins: int) -> npt.NDArray[np.float64]:
    """Edges that are consecutive float64, or as near to it as fits, around two numbers too close for anything finer."""
    first, last, top = (int(rank) for rank in _ranks(np.array([low, high, LARGEST])))
    step = -(-(last - first) // bins) or 1
    start = first - (bins * step - (last - first)) // 2
    start = min(max(start, -top), top - bins * step)
    return _from_ranks(start + step * np.arange(bins + 1))


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Integers that count the float64 between each value and zero, with its sign."""
    magnitudes = np.abs(values).view(np.int64)
    return np.where(values < 0, -magnitudes, magnitudes)


def _from_ranks(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return np.copysign(np.abs(ranks).view(np.float64), ranks)
