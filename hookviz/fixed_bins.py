"""Bins that never depend on the data, so that counts from two streams add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.histograms import bin_of

if TYPE_CHECKING:
    import numpy.typing as npt

PARTS = 256
"""Every power of two is cut into this many bins of equal width: a bin is at most 1/256 of its value wide."""

DROPPED_BITS = 53 - PARTS.bit_length()
"""A float64 without its lowest bits, read as an integer, counts these bins outwards from zero."""

SIGN = 1 << (63 - DROPPED_BITS)

FEW = 2**14
"""Up to so many values are sorted; more are counted in an array with a place for every bin."""


class FixedBins:
    """Counts of finite float64 values in fixed bins over the whole range.

    Bin k > 0 holds positive values from ``lower_edge(k)`` up to, without, ``lower_edge(k + 1)``, bin -k their
    negatives, bin 0 whatever is below 2**-1030. Only bins in use take memory: some ten thousand for a usual layer, and
    never more than a million.
    """

    def __init__(self) -> None:
        self.numbers = np.zeros(0, np.int64)
        self.counts = np.zeros(0, np.int64)

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Count a 1-D array of finite values."""
        signed = (values.view(np.uint64) >> np.uint64(DROPPED_BITS)).view(np.int64)
        if len(values) <= FEW:
            used, counts = np.unique(signed, return_counts=True)
        else:
            every = np.bincount(signed)
            used = np.flatnonzero(every)
            counts = every[used]
        self._add_counts(np.where(used < SIGN, used, SIGN - used), counts)

    def merge(self, other: FixedBins) -> None:
        """Take in what another one has counted."""
        self._add_counts(other.numbers, other.counts)

    def rebin(self, edges: npt.NDArray[np.float64], *, smallest: float, largest: float) -> npt.NDArray[np.int64]:
        """Counts between evenly spaced edges around everything from the smallest to the largest value counted.

        A fixed bin cut by an edge is shared out in proportion, so that a count is off by less than the two fixed bins
        at its ends hold. The counts add up exactly to the number of values.
        """
        magnitudes = np.abs(self.numbers)
        near, far = lower_edge(magnitudes), np.where(magnitudes > 0, lower_edge(magnitudes + 1), 0)
        low = np.clip(np.where(self.numbers < 0, -far, near), smallest, largest)
        high = np.clip(np.where(self.numbers < 0, -near, far), smallest, largest)
        point = low == high
        counts = np.zeros(len(edges) - 1, np.int64)
        np.add.at(counts, bin_of(low[point], edges), self.counts[point])
        return counts + _shared_out(low[~point], high[~point], self.counts[~point], edges)

    def _add_counts(self, numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> None:
        both = np.concatenate((self.numbers, numbers))
        self.numbers, places = np.unique(both, return_inverse=True)
        weights = np.concatenate((self.counts, counts))
        self.counts = np.zeros(len(self.numbers), np.int64)
        np.add.at(self.counts, places, weights)


def lower_edge(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The lower edges of bins with numbers from 0 up; infinity past the last bin."""
    return (numbers << DROPPED_BITS).view(np.float64)


def _shared_out(
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    edges: npt.NDArray[np.float64],
) -> npt.NDArray[np.int64]:
    """Counts between the edges, from a cumulative count that rises evenly inside each fixed bin."""
    total = np.concatenate(([0], np.cumsum(counts)))
    if not len(counts):
        return np.zeros(len(edges) - 1, np.int64)
    knots = np.stack((low, high), axis=1).reshape(-1) * 0.25  # a quarter: distances beyond float64 would overflow
    heights = np.stack((total[:-1], total[1:]), axis=1).reshape(-1)
    risen = np.rint(np.interp(edges * 0.25, knots, heights)).astype(np.int64)
    risen[0], risen[-1] = 0, total[-1]
    shared: npt.NDArray[np.int64] = np.diff(risen)
    return shared
