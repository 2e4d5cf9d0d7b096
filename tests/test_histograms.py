from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest

from hookviz.histograms import count_between, linear_edges

LARGEST = 1.7976931348623157e308
Values = npt.NDArray[np.float64]


def histogram(values: Values, *, bins: int) -> tuple[npt.NDArray[np.int64], Values]:
    edges = linear_edges(float(values.min()), float(values.max()), bins=bins)
    return count_between(values, edges), edges


RANDOM = np.random.default_rng(7)
ORDINARY = {
    "normal": RANDOM.standard_normal(200_003),
    "relu": np.maximum(RANDOM.standard_normal(5000), 0),
    "integers on the edges": RANDOM.integers(0, 65, 5000).astype(float),
    "bytes": RANDOM.integers(0, 256, 5000).astype(float),
    "half precision": RANDOM.standard_normal(5000).astype(np.float16).astype(float),
    "tenths": np.arange(-50, 51) / 10,
    "offset": 1e8 + RANDOM.random(5000),
    "barely distinct edges": 1e16 + 2.0 * RANDOM.integers(0, 200, 5000),
    "tiny": RANDOM.random(500) * 1e-305,
    "denormal": RANDOM.random(500) * 1e-310,
    "huge": RANDOM.standard_normal(500) * 1e307,
    "long tail": RANDOM.standard_cauchy(5000),
    "one": np.array([3.25]),
    "constant": np.full(9, -7.0),
    "zeros": np.zeros(5),
}


@pytest.mark.parametrize("bins", [1, 7, 64, 1000])
@pytest.mark.parametrize("name", ORDINARY)
def test_counts_and_edges_are_those_of_numpy(name: str, bins: int) -> None:
    values = ORDINARY[name]
    try:
        expected, expected_edges = np.histogram(values, bins)
    except ValueError:
        assert (name, bins) == ("barely distinct edges", 1000)  # numpy has no answer; the next test says what ours is
        return
    counts, edges = histogram(values, bins=bins)
    np.testing.assert_array_equal(edges, expected_edges)
    np.testing.assert_array_equal(counts, expected)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1e20, 1e20]),
        np.array([1e20, np.nextafter(1e20, np.inf)]),
        np.array([-1e20, np.nextafter(-1e20, 0)]),
        np.array([0.0, 5e-324]),
        np.array([-5e-324, 5e-324, 0.0]),
        np.array([1e16, 1e16 + 398]),
        np.array([LARGEST]),
        np.array([-LARGEST, np.nextafter(-LARGEST, 0)]),
        np.array([-1.7e308, 1.7e308, 0.0]),
        np.array([-LARGEST, LARGEST]),
        np.array([2.0**60 - 128, 2.0**60 + 256]),
    ],
    ids=str,
)
@pytest.mark.parametrize("bins", [1, 64, 1000])
def test_where_numpy_has_no_answer_edges_rise_and_every_value_counts(values: Values, bins: int) -> None:
    """Constants far from zero, neighbours, ranges beyond float64: the count per bin is checked value by value."""
    counts, edges = histogram(values, bins=bins)
    assert np.isfinite(edges).all()
    assert (edges[:-1] < edges[1:]).all()
    expected = [
        sum(low <= value < high or (place == bins - 1 and value == high) for value in values)
        for place, (low, high) in enumerate(pairwise(edges))
    ]
    assert counts.tolist() == expected
    assert counts.sum() == len(values)


def test_neighbouring_values_fall_in_different_bins() -> None:
    counts, _ = histogram(np.array([1e20, np.nextafter(1e20, np.inf)]), bins=64)
    assert sorted(counts.tolist())[-2:] == [1, 1]
