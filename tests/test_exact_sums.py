from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from hookviz.exact_sums import BLOCK, ExactSums

SMALLEST, LARGEST = 5e-324, 1.7976931348623157e308


def sums_of(values: npt.ArrayLike) -> ExactSums:
    sums = ExactSums()
    sums.add(np.asarray(values, np.float64))
    return sums


def random_bit_patterns(count: int) -> npt.NDArray[np.float64]:
    patterns = np.random.default_rng(5).integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    return patterns[np.isfinite(patterns)]


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).standard_normal(3000),
        random_bit_patterns(1500),
        np.array([SMALLEST, LARGEST, -LARGEST, 3.0, -0.0]),
        np.array([SMALLEST, 1e-310, -2e-320]),
        np.array([2.0**20, 2.0**20 - 1, 1.0, 0.5, SMALLEST]),
        np.full(7, -LARGEST),
    ],
    ids=["normal", "any bits", "both ends", "denormal", "piece borders", "largest"],
)
def test_sums_equal_those_of_fractions(values: npt.NDArray[np.float64]) -> None:
    sums = sums_of(values)
    assert Fraction(sums.total, 2**1074) == sum(Fraction(value) for value in values.tolist())
    assert Fraction(sums.squares, 2**2148) == sum(Fraction(value) ** 2 for value in values.tolist())


def test_full_blocks_of_the_largest_pieces_stay_exact() -> None:
    """Every product at its largest and every block full: the case in which float64 sums would first lose a bit."""
    value = 2.0**40 - 1  # two pieces of 20 ones
    sums = sums_of(np.full(3 * BLOCK, value))
    assert sums.total == 3 * BLOCK * int(value) << 1074
    assert sums.squares == 3 * BLOCK * int(value) ** 2 << 2148


def test_mean_and_std_are_those_of_exact_arithmetic() -> None:
    values = np.random.default_rng(1).standard_normal(500) * 1e-3 + 1e8
    fractions = [Fraction(value) for value in values.tolist()]
    mean = sum(fractions) / len(fractions)
    variance = sum((value - mean) ** 2 for value in fractions) / len(fractions)
    sums = sums_of(values)
    assert sums.mean == float(mean)
    root = math.isqrt(int(variance * 2**200)) / 2**100
    assert sums.std == root


def test_extremes_neither_overflow_nor_vanish() -> None:
    assert sums_of([LARGEST, LARGEST]).mean == LARGEST
    assert sums_of([LARGEST, -LARGEST]).std == LARGEST
    assert sums_of([1e200, -1e200]).std == 1e200
    assert sums_of([1e-200, -1e-200]).std == 1e-200
    assert sums_of([SMALLEST, SMALLEST]).mean == SMALLEST


def test_nothing_seen_has_no_mean() -> None:
    assert sums_of([]).mean is None
    assert sums_of([]).std is None


def test_merging_is_adding() -> None:
    values = random_bit_patterns(400)
    left, right = sums_of(values[:137]), sums_of(values[137:])
    left.merge(right)
    assert left == sums_of(values)
