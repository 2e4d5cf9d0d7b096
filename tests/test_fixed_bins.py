from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hookviz.fixed_bins import PARTS, FixedBins, lower_edge
from hookviz.histograms import linear_edges

Values = npt.NDArray[np.float64]


def counted(values: Values) -> FixedBins:
    bins = FixedBins()
    bins.add(values)
    return bins


def rebinned(values: Values, *, bins: int = 64) -> tuple[npt.NDArray[np.int64], Values]:
    low, high = float(values.min()), float(values.max())
    edges = linear_edges(low, high, bins=bins)
    return counted(values).rebin(edges, smallest=low, largest=high), edges


def test_a_bin_is_at_most_one_part_of_its_value_wide() -> None:
    numbers = np.arange(0, 1 << 19, 977)
    low, high = lower_edge(numbers), lower_edge(numbers + 1)
    normal = (low >= np.finfo(float).tiny) & np.isfinite(high)
    assert np.count_nonzero(normal) > 500
    assert ((high - low)[normal] <= low[normal] / PARTS).all()


@pytest.mark.parametrize("value", [1.0, 1.5, 3.1415, 1e-300, 1e300, 65504.0, 1.7976931348623157e308])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_value_lies_in_the_bin_that_counts_it(value: float, sign: int) -> None:
    (number,) = counted(np.array([sign * value])).numbers
    assert np.sign(number) == sign
    assert lower_edge(np.array([abs(number)]))[0] <= value < lower_edge(np.array([abs(number) + 1]))[0]


def test_few_and_many_values_are_counted_alike() -> None:
    values = np.random.default_rng(2).standard_normal(40_000)
    pieces = FixedBins()
    for piece in np.split(values, 40):
        pieces.add(piece)
    whole = counted(values)
    np.testing.assert_array_equal(pieces.numbers, whole.numbers)
    np.testing.assert_array_equal(pieces.counts, whole.counts)


def test_display_counts_are_off_by_no_more_than_the_fixed_bins_at_their_ends_hold() -> None:
    values = np.random.default_rng(3).standard_normal(100_000)
    counts, edges = rebinned(values)
    expected, _ = np.histogram(values, edges)
    for place in range(64):
        near = sum(
            np.count_nonzero(np.abs(values - edge) <= abs(edge) / PARTS) for edge in (edges[place], edges[place + 1])
        )
        assert abs(counts[place] - expected[place]) <= near
    assert counts.sum() == len(values)


@pytest.mark.parametrize(
    ("values", "bins", "expected"),
    [
        (np.array([0.0, 0.0, 0.0, 4.0]), 4, [3, 0, 0, 1]),
        (np.array([-2.0, 0.0, 0.0, 2.0]), 2, [1, 3]),
        (np.array([7.0, 7.0]), 2, [0, 2]),
        (np.array([-7.0, -7.0]), 2, [0, 2]),
        (np.array([0.0, -0.0]), 2, [0, 2]),
        (np.array([-1.7e308, 0.0, 1.7e308]), 3, [1, 1, 1]),
        (np.array([5e-324, 5e-324]), 2, [0, 2]),
    ],
    ids=["zeros left", "zeros inside", "constant", "negative constant", "both zeros", "whole range", "denormal"],
)
def test_points_fall_where_numpy_puts_them(values: Values, bins: int, expected: list[int]) -> None:
    assert rebinned(values, bins=bins)[0].tolist() == expected


def test_memory_follows_the_bins_in_use_not_the_values_seen() -> None:
    bins = counted(np.tile([1.0, 1.0001, -3.0], 50_000))
    assert bins.numbers.shape == bins.counts.shape == (2,)
    assert bins.counts.tolist() == [50_000, 100_000]
