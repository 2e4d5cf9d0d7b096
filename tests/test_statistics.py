from __future__ import annotations

import copy
import json
import pickle
import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest
import torch

from hookviz import numeric
from hookviz.errors import HookvizError
from hookviz.statistics import RunningSummary, quantiles, summarize

if TYPE_CHECKING:
    from hookviz.types import Summary

NAN, INF = float("nan"), float("inf")

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
]
SHAPES = [(), (1,), (7,), (2, 0, 3), (3, 5), (2, 3, 4, 5), (1, 3, 33, 65)]


def reference(tensor: torch.Tensor) -> npt.NDArray[np.float64]:
    """The same numbers in float64 by another road: bfloat16 and float8 through float32."""
    return tensor.detach().to(torch.float64 if tensor.dtype == torch.float64 else torch.float32).double().numpy()


def random_tensor(shape: tuple[int, ...], dtype: torch.dtype, *, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator) * 20
    return values.relu().to(dtype) if dtype in {torch.uint8, torch.bool} else values.to(dtype)


def assert_summarizes(summary: Summary, values: npt.NDArray[np.float64]) -> None:
    finite = values[np.isfinite(values)]
    assert summary.count == values.size
    assert (summary.nan, summary.posinf, summary.neginf) == (
        np.isnan(values).sum(),
        (values == np.inf).sum(),
        (values == -np.inf).sum(),
    )
    assert summary.zeros == (values == 0).sum()
    assert summary.finite == finite.size
    if not finite.size:
        assert (summary.mean, summary.std, summary.min, summary.max) == (None,) * 4
        assert len(summary.histogram.counts) == len(summary.histogram.edges) == 0
        return
    assert (summary.min, summary.max) == (finite.min(), finite.max())
    assert summary.mean == pytest.approx(np.mean(finite), rel=1e-13, abs=1e-13 * np.abs(finite).max())
    assert summary.std == pytest.approx(np.std(finite), rel=1e-12, abs=1e-13 * np.abs(finite).max())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_summary_equals_numpy_in_float64(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """C29, C31, C32, C34, C35: every dtype and shape against numpy over the float64 values."""
    tensor = random_tensor(shape, dtype, seed=len(shape))
    values = reference(tensor)
    summary = summarize(tensor)
    assert_summarizes(summary, values)
    assert summary.dtype == str(dtype).removeprefix("torch.")
    if values.size:
        counts, edges = np.histogram(values, 64)
        np.testing.assert_array_equal(summary.histogram.counts, counts)
        np.testing.assert_array_equal(summary.histogram.edges, edges)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_non_finite_values_are_counted_and_the_finite_ones_binned(dtype: torch.dtype) -> None:
    """C13: two finite values among NaN and both infinities."""
    summary = summarize(torch.tensor([1, 2, NAN, INF, -INF], dtype=dtype), bins=2)
    assert (summary.count, summary.nan, summary.posinf, summary.neginf, summary.finite) == (5, 1, 1, 1, 2)
    assert (summary.mean, summary.std, summary.min, summary.max) == (1.5, 0.5, 1.0, 2.0)
    assert summary.histogram.counts.tolist() == [1, 1]
    assert summary.histogram.edges.tolist() == [1.0, 1.5, 2.0]


def test_nothing_finite_has_no_statistics_and_an_empty_histogram() -> None:
    """C13, C34: all NaN, and no elements at all."""
    assert_summarizes(summarize(torch.tensor([NAN, NAN, INF])), np.array([NAN, NAN, INF]))
    for shape in ((0,), (2, 0), (0, 4)):
        summary = summarize(torch.ones(shape))
        assert (summary.count, summary.mean, summary.std, summary.min, summary.max) == (0, None, None, None, None)
        assert summary.sparsity is None


@pytest.mark.parametrize(
    ("tensor", "mean", "std"),
    [
        (torch.ones(1, 1, 1, 1), 1.0, 0.0),
        (torch.tensor([[1.0, 2, 3, 4], [5, 6, 7, 10]]), 4.75, 2.7271780286589284),
        (torch.ones(70000).half(), 1.0, 0.0),
        (torch.tensor([60000.0, -60000.0]).half(), 0.0, 60000.0),
        (torch.full((10000,), 1000.0).half(), 1000.0, 0.0),
        (torch.tensor([1e20, -1e20]), 0.0, float(np.float32(1e20))),
        (torch.tensor([3e38, -3e38]), 0.0, float(np.float32(3e38))),
        (torch.tensor([1e20, 1, 1], dtype=torch.float64), 1e20 / 3, 4.7140452079103164e19),
        (torch.tensor([1e200, -1e200], dtype=torch.float64), 0.0, 1e200),
        (torch.tensor([1e308, 1e308], dtype=torch.float64), 1e308, 0.0),
        (torch.tensor([1e-200, -1e-200], dtype=torch.float64), 0.0, 1e-200),
        (torch.full((1000,), 0.1, dtype=torch.float64), 0.1, 0.0),
        (torch.tensor([1e8, 1e8 + 8]), 1e8 + 4, 4.0),
        (torch.full((1001,), 255, dtype=torch.uint8), 255.0, 0.0),
        (torch.tensor([-128, -128], dtype=torch.int8), -128.0, 0.0),
        (torch.tensor([True, False, False, False]), 0.25, 0.4330127018922193),
        (torch.tensor([2**62, -(2**62)]), 0.0, 2.0**62),
    ],
    ids=str,
)
def test_mean_and_std_have_every_digit(tensor: torch.Tensor, mean: float, std: float) -> None:
    """C31, C32, C33: no overflow, no cancellation, no wrapping; the population definition."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        summary = summarize(tensor)
    assert (summary.mean, summary.std) == (mean, std)
    assert summary.histogram.counts.sum() == summary.count
    assert (summary.nan, summary.posinf, summary.neginf) == (0, 0, 0)


@pytest.mark.parametrize(
    ("tensor", "values", "shows"),
    [
        (torch.tensor([3 + 4j, 0j]), [5.0, 0.0], "magnitude"),
        (torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8), [1.0, 2.0], "dequantized value"),
        (torch.tensor([0.0, 0.0, 6.0]).to_sparse(), [0.0, 0.0, 6.0], "value"),
    ],
    ids=["complex", "quantized", "sparse"],
)
def test_what_is_shown_of_other_tensors_is_named(tensor: torch.Tensor, values: list[float], shows: str) -> None:
    """C30: magnitude, dequantized values, implicit zeros."""
    summary = summarize(tensor)
    assert_summarizes(summary, np.array(values))
    assert summary.shows == shows


@pytest.mark.parametrize(
    "values",
    [[1e20, 1e20], [1e20, float(np.nextafter(1e20, INF))], [5e-324, 0.0], [1.7e308, -1.7e308], [1.7e308], [5e-324]],
    ids=str,
)
def test_every_finite_value_is_in_the_histogram(values: list[float]) -> None:
    """C13: where numpy refuses to bin."""
    for summary in (
        summarize(torch.tensor(values, dtype=torch.float64)),
        RunningSummary().update(torch.tensor(values, dtype=torch.float64)).summary(),
    ):
        assert summary.histogram.counts.sum() == len(values)
        assert len(summary.histogram.counts) == 64
        assert (np.diff(summary.histogram.edges / 2) > 0).all() or values[0] == 5e-324
        assert (summary.min, summary.max) == (min(values), max(values))


def test_the_tensor_and_its_graph_are_left_alone() -> None:
    tensor = torch.tensor([1.0, 2.0], requires_grad=True) * 2
    version = tensor._version
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert summarize(tensor).mean == 3.0
    assert tensor._version == version
    (gradient,) = torch.autograd.grad(tensor.sum(), tensor)
    assert gradient.tolist() == [1.0, 1.0]


def test_large_tensors_are_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = random_tensor((4, 25, 11), torch.float32, seed=1)
    tensor[0, 0, 0] = NAN
    whole = summarize(tensor)
    monkeypatch.setattr(numeric, "CHUNK", 64)
    assert summarize(tensor) == whole


def test_bins_must_be_some() -> None:
    with pytest.raises(HookvizError, match="at least 1 bin"):
        summarize(torch.ones(2), bins=0)


def stream() -> torch.Tensor:
    values = random_tensor((40_000,), torch.float64, seed=9)
    values[::7] = 0
    values[5], values[6], values[8] = NAN, INF, -INF
    values[11], values[12] = 1e150, -3e-200
    return values


@pytest.mark.parametrize("pieces", [1, 2, 3, 17, 400])
def test_a_stream_is_the_same_however_it_is_cut_ordered_and_merged(pieces: int) -> None:
    values = stream()
    whole = RunningSummary().update(values).summary()
    parts = [RunningSummary().update(part) for part in torch.tensor_split(values, pieces)]
    forward, backward = RunningSummary(), RunningSummary()
    for part in parts:
        forward.merge(part)
    for part in reversed(parts):
        backward.merge(part)
    assert forward.summary() == whole
    assert backward.summary() == whole
    one_by_one = RunningSummary()
    for piece in torch.tensor_split(values, pieces):
        assert one_by_one.update(piece) is one_by_one
    assert one_by_one.summary() == whole


def test_a_stream_has_the_numbers_of_its_tensors_put_together() -> None:
    values = stream()
    once, running = summarize(values), RunningSummary().update(values).summary()
    assert_summarizes(running, values.numpy())
    for name in ("count", "nan", "posinf", "neginf", "zeros", "mean", "std", "min", "max", "dtype", "shows"):
        assert getattr(running, name) == getattr(once, name)
    np.testing.assert_array_equal(running.histogram.edges, once.histogram.edges)
    assert running.histogram.counts.sum() == once.histogram.counts.sum() == once.finite


def test_stream_histogram_is_near_the_exact_one() -> None:
    values = random_tensor((100_000,), torch.float32, seed=2)
    once, running = summarize(values), RunningSummary().update(values).summary()
    off = np.abs(running.histogram.counts - once.histogram.counts)
    assert off.max() <= 40
    assert off.sum() <= 600  # 0.6 % of all values, each less than 1/256 from where it belongs


def test_shapes_and_dtypes_may_differ_along_a_stream() -> None:
    running = RunningSummary().update(torch.ones(2, 3)).update(torch.tensor([3], dtype=torch.uint8))
    summary = running.update(torch.tensor(2j)).summary()
    assert (summary.count, summary.mean, summary.dtype, summary.shows) == (8, 11 / 8, "mixed", "mixed")


def test_an_empty_stream_has_no_statistics() -> None:
    for running in (RunningSummary(), RunningSummary().update(torch.ones(0, 4))):
        assert_summarizes(running.summary(), np.zeros(0))


def test_zero_has_one_sign_whatever_came_first() -> None:
    zeros = torch.tensor([0.0, -0.0])
    for tensor in (zeros, zeros.flip(0)):
        summary = RunningSummary().update(tensor).summary()
        assert (summary.zeros, str(summary.min), str(summary.max)) == (2, "0.0", "0.0")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda running: pickle.loads(pickle.dumps(running))])
def test_a_copy_goes_its_own_way(duplicate: object) -> None:
    assert callable(duplicate)
    running = RunningSummary().update(stream())
    before = running.summary()
    other = duplicate(running)
    assert other.summary() == before
    other.update(torch.tensor([5.0]))
    assert running.summary() == before
    assert other.summary().count == before.count + 1


def test_merging_leaves_the_other_alone() -> None:
    one, other = RunningSummary().update(torch.ones(2)), RunningSummary().update(torch.zeros(3))
    assert one.merge(other) is one
    one.update(torch.full((4,), 9.0))
    assert (other.summary().count, other.summary().max) == (3, 0.0)
    assert one.merge(one).summary().count == 18


def test_what_is_no_tensor_is_refused_and_changes_nothing() -> None:
    running = RunningSummary()
    for wrong in (None, 3.0, np.ones(2), torch.ones(2, device="meta")):
        with pytest.raises(HookvizError):
            running.update(wrong)  # type: ignore[arg-type]  # the mistake under test
        with pytest.raises(HookvizError):
            summarize(wrong)  # type: ignore[arg-type]  # the mistake under test
    assert running.summary().count == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int32], ids=str)
def test_quantiles_are_those_of_numpy_over_finite_values(dtype: torch.dtype) -> None:
    """C29, C35: torch has none for half precision and integers."""
    tensor = random_tensor((30, 40), dtype, seed=4)
    shares = [0.0, 0.01, 0.25, 0.5, 0.99, 1.0]
    np.testing.assert_array_equal(quantiles(tensor, shares), np.quantile(reference(tensor), shares))


def test_quantiles_of_twenty_million_values_are_of_all_of_them() -> None:
    """C35: ascending, so that a prefix would give a wrong answer."""
    tensor = torch.arange(20_000_000, dtype=torch.float32).clamp_(max=16_777_216)
    expected = np.quantile(tensor.numpy().astype(np.float64), [0.5, 0.8])
    np.testing.assert_array_equal(quantiles(tensor, [0.5, 0.8]), expected)
    assert expected.tolist() == [9_999_999.5, pytest.approx(15_999_999.2, abs=1e-8)]


def test_quantiles_know_the_ends_of_float64_and_the_lack_of_values() -> None:
    assert quantiles(torch.tensor([NAN, 1.0, INF, 3.0, -INF]), 0.5) == 2.0
    assert quantiles(torch.tensor([-1.7e308, 1.7e308], dtype=torch.float64), 0.5) == 0.0
    assert np.isnan(quantiles(torch.zeros(0), [0.1, 0.9])).tolist() == [True, True]
    with pytest.raises(HookvizError, match="from 0 to 1"):
        quantiles(torch.ones(2), 50)


def test_a_running_summary_goes_on_from_its_state_through_json() -> None:
    values = torch.tensor([1e-320, 3.0, float("nan"), float("inf"), -7e250, 0.0, 0.1], dtype=torch.float64)
    straight = RunningSummary().update(values).update(-values)
    resumed = RunningSummary.of_state(json.loads(json.dumps(RunningSummary().update(values).state()))).update(-values)
    assert resumed.summary() == straight.summary()
    assert RunningSummary.of_state(json.loads(json.dumps(RunningSummary().state()))).summary().count == 0
