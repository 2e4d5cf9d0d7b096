from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from hookviz.channels import ChannelActivity, channel_order, channel_statistics, dead_channels_apply
from hookviz.errors import HookvizError
from hookviz.exact_sums import ExactSums
from hookviz.fixed_bins import FixedBins
from hookviz.histograms import count_between, linear_edges
from hookviz.numeric import check_tensor, dtype_name, float64_chunks, shows
from hookviz.types import Histogram, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    import torch

__all__ = [
    "ChannelActivity",
    "RunningSummary",
    "channel_order",
    "channel_statistics",
    "dead_channels_apply",
    "quantiles",
    "summarize",
]

_COUNTS = ("count", "nan", "posinf", "neginf", "zeros")

EMPTY_HISTOGRAM = Histogram(counts=np.zeros(0, np.int64), edges=np.zeros(0, np.float64))


def summarize(tensor: torch.Tensor, *, bins: int = 64) -> Summary:
    """What one tensor holds: its :class:`~hookviz.types.Summary`, exact.

    Mean and standard deviation come from sums without rounding, so no value is too large, too small or too close to its
    neighbours for them. The histogram is ``np.histogram(finite_values, bins)`` in float64 wherever numpy has an
    answer, and elsewhere (a constant 1e20, ranges beyond float64) one with strictly increasing edges around all finite
    values. Complex tensors are summarized by magnitude, quantized ones dequantized, sparse ones with their implicit
    zeros, nested ones as all their items together. Integers beyond 2**53 count as the nearest float64.

    Args:
        tensor: any shape, dtype and device; it and its graph are left alone.
        bins: how many bins the histogram has.

    Raises:
        HookvizError: for what is no tensor, or one without numbers (meta, fake).
    """
    _check_bins(bins)
    tally = _Tally()
    for chunk in float64_chunks(tensor):
        tally.add(chunk)
    histogram = EMPTY_HISTOGRAM
    if tally.sums.count:
        edges = linear_edges(tally.min, tally.max, bins=bins)
        counts = sum(count_between(_finite(chunk), edges) for chunk in float64_chunks(tensor))
        histogram = Histogram(counts=np.asarray(counts), edges=edges)
    return tally.summary(histogram, dtype=dtype_name(tensor), shows=shows(tensor))


class RunningSummary:
    """The summary of a stream of tensors of any shapes and dtypes, in constant memory.

    >>> running = RunningSummary()
    >>> for batch in batches:
    ...     running.update(model(batch))
    >>> running.summary().mean

    However the stream is cut, ordered and merged, the summary is the same to the last bit. Everything except the
    histogram is exact; that is counted in fixed bins, each at most 1/256 of its values wide, and shared out to linear
    ones for display.
    """

    def __init__(self) -> None:
        self._tally = _Tally()
        self._bins = FixedBins()
        self._dtypes: set[str] = set()
        self._shows: set[str] = set()

    def update(self, tensor: torch.Tensor) -> RunningSummary:
        """Take in all elements of a tensor, and return self.

        Raises:
            HookvizError: as :func:`summarize`.
        """
        check_tensor(tensor)
        for chunk in float64_chunks(tensor):
            self._bins.add(self._tally.add(chunk))
        self._dtypes.add(dtype_name(tensor))
        self._shows.add(shows(tensor))
        return self

    @property
    def nonfinite(self) -> int:
        """How many NaN and infinities there were so far."""
        return self._tally.nan + self._tally.posinf + self._tally.neginf

    @property
    def root_mean_square(self) -> float:
        """Over the finite values so far; 0.0 where there was none."""
        mean, std = self._tally.sums.mean, self._tally.sums.std
        return 0.0 if mean is None or std is None else math.hypot(mean, std)

    @property
    def finite(self) -> int:
        """How many finite values there were so far."""
        return self._tally.sums.count

    def merge(self, other: RunningSummary) -> RunningSummary:
        """Take in all that another one has seen, which stays as it is, and return self."""
        self._tally.merge(other._tally)
        self._bins.merge(other._bins)
        self._dtypes |= other._dtypes
        self._shows |= other._shows
        return self

    def summary(self, *, bins: int = 64) -> Summary:
        """The :class:`~hookviz.types.Summary` so far; ``dtype`` and ``shows`` are ``"mixed"`` where they differed."""
        _check_bins(bins)
        histogram = EMPTY_HISTOGRAM
        if self._tally.sums.count:
            low, high = self._tally.min, self._tally.max
            edges = linear_edges(low, high, bins=bins)
            histogram = Histogram(counts=self._bins.rebin(edges, smallest=low, largest=high), edges=edges)
        return self._tally.summary(histogram, dtype=_only(self._dtypes, ""), shows=_only(self._shows, "value"))

    def state(self) -> dict[str, Any]:
        """All of it in what JSON has: numbers, lists and strings, exact."""
        return {
            "tally": self._tally.state(),
            "bins": [self._bins.numbers.tolist(), self._bins.counts.tolist()],
            "dtypes": sorted(self._dtypes),
            "shows": sorted(self._shows),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> RunningSummary:
        """The summary that a state was taken of, to go on with."""
        running = cls()
        running._tally = _Tally.of_state(state["tally"])
        running._bins.numbers, running._bins.counts = (np.array(one, np.int64) for one in state["bins"])
        running._dtypes, running._shows = set(state["dtypes"]), set(state["shows"])
        return running

    def __copy__(self) -> RunningSummary:
        return RunningSummary().merge(self)


def quantiles(tensor: torch.Tensor, q: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """``np.quantile(finite_values, q)`` in float64, over every finite value; NaN where there is none.

    Args:
        tensor: any shape and dtype, read as by :func:`summarize`.
        q: one share or several, 0 to 1; the result has its shape.

    Raises:
        HookvizError: for shares outside 0 to 1, and as :func:`summarize`.
    """
    shares = np.asarray(q, np.float64)
    if not ((shares >= 0) & (shares <= 1)).all():
        raise HookvizError(f"Quantiles are asked for as shares from 0 to 1, got {q!r}.")
    values = np.concatenate([np.zeros(0), *(_finite(chunk) for chunk in float64_chunks(tensor))])
    if not len(values):
        return np.full(shares.shape, np.nan)
    scale = 0.5 if math.isinf(float(values.max()) - float(values.min())) else 1.0  # interpolation would overflow
    return np.asarray(np.quantile(values * scale, shares, overwrite_input=True) / scale)


class _Tally:
    """Everything of a summary but the histogram."""

    def __init__(self) -> None:
        self.count = self.nan = self.posinf = self.neginf = self.zeros = 0
        self.min, self.max = math.inf, -math.inf
        self.sums = ExactSums()

    def add(self, chunk: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Take in a 1-D array, and return its finite values."""
        finite = _finite(chunk)
        self.count += len(chunk)
        self.zeros += len(chunk) - int(np.count_nonzero(chunk))
        if len(finite) < len(chunk):
            self.nan += int(np.count_nonzero(np.isnan(chunk)))
            self.posinf += int(np.count_nonzero(chunk == np.inf))
            self.neginf += int(np.count_nonzero(chunk == -np.inf))
        if len(finite):
            self.min = min(self.min, float(finite.min()) + 0.0)  # adding makes -0.0 a 0.0, whichever came first
            self.max = max(self.max, float(finite.max()) + 0.0)
            self.sums.add(finite)
        return finite

    def merge(self, other: _Tally) -> None:
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.min, self.max = min(self.min, other.min), max(self.max, other.max)
        self.sums.merge(other.sums)

    def state(self) -> dict[str, Any]:
        """Whole numbers as hexadecimal text, since they have hundreds of digits; the extremes exact likewise."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        sums = [self.sums.count, hex(self.sums.total), hex(self.sums.squares)]
        return counts | {"min": self.min.hex(), "max": self.max.hex(), "sums": sums}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> _Tally:
        tally = cls()
        for name in _COUNTS:
            setattr(tally, name, state[name])
        tally.min, tally.max = float.fromhex(state["min"]), float.fromhex(state["max"])
        count, total, squares = state["sums"]
        tally.sums = ExactSums(count, int(total, 16), int(squares, 16))
        return tally

    def summary(self, histogram: Histogram, *, dtype: str, shows: str) -> Summary:
        some = self.sums.count > 0
        return Summary(
            count=self.count,
            nan=self.nan,
            posinf=self.posinf,
            neginf=self.neginf,
            zeros=self.zeros,
            mean=self.sums.mean,
            std=self.sums.std,
            min=self.min if some else None,
            max=self.max if some else None,
            histogram=histogram,
            dtype=dtype,
            shows=shows,
        )


def _finite(chunk: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    if not len(chunk) or (np.isfinite(chunk.min()) and np.isfinite(chunk.max())):
        return chunk
    finite: npt.NDArray[np.float64] = chunk[np.isfinite(chunk)]
    return finite


def _only(names: set[str], default: str) -> str:
    return "mixed" if len(names) > 1 else next(iter(names), default)


def _check_bins(bins: int) -> None:
    if bins < 1:
        raise HookvizError(f"A histogram needs at least 1 bin, got {bins}.")
