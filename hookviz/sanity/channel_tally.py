"""What each channel of a layer did over a stream of images, in memory that does not grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hookviz.channels import channel_statistics
from hookviz.errors import LayoutError
from hookviz.numeric import dense, real, to_float64

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

    Values = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplying by it loses nothing: 2**64 over the golden ratio, as Knuth hashes."""

_ARRAYS = ("values", "mean", "squares", "low", "high", "zeros", "at_end", "digest")


class ChannelTally:
    """Count, mean, spread, extremes and zeros of every channel, and a digest that equal channels share.

    Every array is (channels,). ``mean`` and ``squares`` (the sum of squared distances from it) are over the finite
    ``values`` in float64, merged as by Chan, Golub and LeVeque (1979). ``at_end`` counts values at an end of the
    activation's range, ``elements`` the values of one channel, those that are not finite included.
    """

    def __init__(self, channels: int) -> None:
        self.values = np.zeros(channels, np.int64)
        self.mean = np.zeros(channels)
        self.squares = np.zeros(channels)
        self.low = np.full(channels, np.inf)
        self.high = np.full(channels, -np.inf)
        self.zeros = np.zeros(channels, np.int64)
        self.at_end = np.zeros(channels, np.int64)
        self.digest = np.zeros(channels, np.uint64)
        self.elements = 0

    @classmethod
    def of(cls, rows: Tensor, ends: tuple[float, float] | None = None) -> ChannelTally:
        """The tally of one image's values, (channels, values); ``ends`` are those of the activation's range."""
        tally = cls(len(rows))
        seen = channel_statistics(rows.unsqueeze(1))
        tally.values = seen.count - seen.nan - seen.posinf - seen.neginf
        some = tally.values > 0
        tally.mean = np.where(some, seen.mean, 0.0)
        with np.errstate(over="ignore"):  # of values near the end of float64 the squares are infinite
            tally.squares = np.where(some, seen.std, 0.0) ** 2 * tally.values
        tally.low, tally.high = np.where(some, seen.min, np.inf), np.where(some, seen.max, -np.inf)
        tally.zeros, tally.elements = seen.zeros, seen.count
        wide = to_float64(rows)
        if ends is not None:
            tally.at_end = np.count_nonzero((wide <= ends[0]) | (wide >= ends[1]), axis=1)
        tally.digest = _digests(wide)
        return tally

    def __len__(self) -> int:
        return len(self.values)

    def merge(self, other: ChannelTally) -> None:
        """Take in the images that another tally has seen, after those seen here.

        Raises:
            LayoutError: it has another number of channels.
        """
        if len(other.values) != len(self.values):
            raise LayoutError(f"Expected {len(self.values)} channels as in the images before, got {len(other.values)}.")
        total = np.maximum(self.values + other.values, 1)
        apart = np.where(other.values > 0, other.mean - self.mean, 0.0)
        with np.errstate(over="ignore"):
            self.squares += other.squares + apart**2 * (self.values * (other.values / total))
        self.mean += apart * (other.values / total)
        self.values = self.values + other.values
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.zeros = self.zeros + other.zeros
        self.at_end = self.at_end + other.at_end
        self.elements += other.elements
        with np.errstate(over="ignore"):  # the overflow is the point
            self.digest = self.digest * _FACTOR + other.digest

    @property
    def variance(self) -> Values:
        """The population variance of every channel, NaN where it had no finite value."""
        return np.where(self.values > 0, self.squares / np.maximum(self.values, 1), np.nan)

    @property
    def dead(self) -> Mask:
        """Which channels were zero at every position of every image."""
        dead: Mask = (self.zeros == self.elements) & (self.elements > 0)
        return dead

    @property
    def constant(self) -> Mask:
        """Which channels had one value, not zero, at every position of every image."""
        one: Mask = (self.low == self.high) & (self.values == self.elements) & (self.elements > 1)
        return one & ~self.dead

    @property
    def duplicated(self) -> Mask:
        """Which channels equalled an earlier one everywhere; those without a value that varies do not count."""
        first = np.zeros(len(self.digest), np.bool_)
        first[np.unique(self.digest, return_index=True)[1]] = True
        return ~(first | self.dead | self.constant) & (self.low < self.high)

    @property
    def always_on(self) -> Mask:
        """Which channels never were zero."""
        on: Mask = (self.zeros == 0) & (self.elements > 0)
        return on

    def saturated(self, share: float) -> Mask:
        """Which channels had at least this share of their values at an end."""
        at_end: Mask = self.at_end >= share * max(self.elements, 1)
        return at_end

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        return {name: getattr(self, name) for name in _ARRAYS} | {"elements": np.array(self.elements)}

    @classmethod
    def of_state(cls, state: Mapping[str, npt.NDArray[Any]]) -> ChannelTally:
        """The tally that a state was taken of."""
        tally = cls(len(state["values"]))
        for name in _ARRAYS:
            setattr(tally, name, state[name])
        tally.elements = int(state["elements"])
        return tally


def by_channel(tensor: Tensor, layout: str) -> Tensor | None:
    """A tensor as (channels, values); None where its axes name no channels, or there is nothing in it.

    Raises:
        LayoutError: a layout for another number of axes.
    """
    plain = real(dense(tensor.detach()))
    if "C" not in layout or not plain.numel():
        return None
    if plain.ndim != len(layout):
        raise LayoutError(f"The layout {layout} needs {len(layout)} axes, got shape {tuple(plain.shape)}.")
    axis = layout.index("C")
    return plain.movedim(axis, 0).reshape(plain.shape[axis], -1)


def _digests(values: Values) -> npt.NDArray[np.uint64]:
    """A number for each row that depends on every value and its place; -0.0 counts as 0.0."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    keys = np.random.default_rng(values.shape[1]).integers(0, 2**63, values.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        mixed = (bits ^ (bits >> np.uint64(29))) * (keys * np.uint64(2) + np.uint64(1))
        return np.asarray((mixed ^ (mixed >> np.uint64(32))).sum(axis=1, dtype=np.uint64))
