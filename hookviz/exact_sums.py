"""Sums and sums of squares with no rounding at all, so that a mean does not depend on how a stream was cut.

A float64 is an integer times a power of two. Each value is cut into pieces of 20 bits; products of two pieces have at
most 40 bits, so 2**13 of them add up below 2**53, where float64 arithmetic is exact in any order. The totals are
Python integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

PIECE_BITS = 20
BLOCK = 2**13
"""OpenBLAS starts threads for dot products of more than 10,000 elements, which takes longer than the product."""

ONES = np.ones(BLOCK)  # a dot product with ones is a fast sum

UNIT_EXPONENT = 1074
"""The smallest positive float64 is 2**-1074: every float64 is an integer multiple of it."""


@dataclass(slots=True)
class ExactSums:
    """Count, sum and sum of squares of finite float64 values, exact.

    ``total`` is in units of 2**-1074, ``squares`` in units of 2**-2148.
    """

    count: int = 0
    total: int = 0
    squares: int = 0

    def add(self, values: npt.NDArray[np.float64]) -> None:
        """Take in a 1-D array of finite values."""
        self.count += len(values)
        for start in range(0, len(values), BLOCK):
            self._add_block(values[start : start + BLOCK])

    def merge(self, other: ExactSums) -> None:
        """Take in what another one has seen."""
        self.count += other.count
        self.total += other.total
        self.squares += other.squares

    @property
    def mean(self) -> float | None:
        """The mean, correctly rounded; None where nothing was seen."""
        return self.total / (self.count << UNIT_EXPONENT) if self.count else None

    @property
    def std(self) -> float | None:
        """The population standard deviation (ddof 0), right to about the last bit; None where nothing was seen."""
        if not self.count:
            return None
        spread = self.count * self.squares - self.total**2  # count² times the variance, in units of 2**-2148
        shift = max(0, 128 - spread.bit_length() // 2)
        return math.isqrt(spread << 2 * shift) / (self.count << UNIT_EXPONENT + shift)

    def _add_block(self, block: npt.NDArray[np.float64]) -> None:
        if _top(block) <= PIECE_BITS:
            self._add_pieces(_pieces(block))
            return
        large = np.abs(block) >= 1  # scaled down together, the smallest values would fall below the smallest float64
        self._add_pieces(_pieces(block[large]))
        self._add_pieces(_pieces(block[~large]))

    def _add_pieces(self, pieces: list[tuple[int, npt.NDArray[np.float64]]]) -> None:
        for place, (exponent, piece) in enumerate(pieces):
            self.total += _shifted(np.dot(piece, ONES[: len(piece)]), exponent + UNIT_EXPONENT)
            self.squares += _shifted(np.dot(piece, piece), 2 * (exponent + UNIT_EXPONENT))
            for other_exponent, other in pieces[:place]:
                both = exponent + other_exponent + 2 * UNIT_EXPONENT
                self.squares += _shifted(2 * np.dot(piece, other), both)


def _top(block: npt.NDArray[np.float64]) -> int:
    """The smallest e with every magnitude below 2**e; 0 for zeros alone, and for none."""
    return math.frexp(max(-float(block.min()), float(block.max())))[1] if len(block) else 0


def _pieces(block: npt.NDArray[np.float64]) -> list[tuple[int, npt.NDArray[np.float64]]]:
    """Values as sums of ``piece * 2**exponent``, each piece an array of integers of 20 bits."""
    pieces: list[tuple[int, npt.NDArray[np.float64]]] = []
    exponent, rest = 0, block.copy()
    while len(rest) and (rest.max() > 0 or rest.min() < 0):
        shift = PIECE_BITS - _top(rest)
        rest *= 2.0 ** (shift // 2)  # in two steps, since the whole power can be beyond float64
        rest *= 2.0 ** (shift - shift // 2)
        exponent -= shift
        piece = np.trunc(rest)
        rest -= piece
        pieces.append((exponent, piece))
    return pieces


def _shifted(whole: float, places: int) -> int:
    """``whole * 2**places``; right shifts lose nothing, since every float64 is a multiple of the smallest."""
    return int(whole) << places if places >= 0 else int(whole) >> -places
