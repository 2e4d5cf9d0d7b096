from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from hookviz import channels
from hookviz.errors import HookvizError, LayoutError
from hookviz.layout import arrange, channel_maps
from hookviz.statistics import ChannelActivity, channel_order, channel_statistics, dead_channels_apply

NAN, INF = float("nan"), float("inf")
ROWS = ("mean", "std", "min", "max", "zeros", "nan", "posinf", "neginf")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.uint8], ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 4), (64, 7, 7), (3, 1, 9)], ids=str)
def test_rows_equal_numpy_in_float64(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.randn(shape, generator=torch.Generator().manual_seed(3)) * 30).relu().to(dtype)
    values = tensor.to(torch.float64).numpy().reshape(shape[0], -1)
    statistics = channel_statistics(tensor)
    np.testing.assert_allclose(statistics.mean, values.mean(1), rtol=1e-14, atol=1e-13)
    np.testing.assert_allclose(statistics.std, values.std(1), rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(statistics.min, values.min(1))
    np.testing.assert_array_equal(statistics.max, values.max(1))
    np.testing.assert_array_equal(statistics.zeros, (values == 0).sum(1))
    np.testing.assert_array_equal(statistics.sparsity, (values == 0).mean(1))
    assert statistics.count == values.shape[1]


def test_non_finite_values_are_left_out_and_counted_without_a_warning() -> None:
    """C13: one NaN, one infinity, nothing finite, all zero."""
    tensor = torch.tensor([[[1.0, NAN, 3.0]], [[INF, 5.0, -INF]], [[NAN, NAN, INF]], [[0.0, 0.0, 0.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics = channel_statistics(tensor)
    rows = {name: getattr(statistics, name).tolist() for name in ROWS}
    assert rows.pop("mean") == pytest.approx([2.0, 5.0, NAN, 0.0], nan_ok=True)
    assert rows.pop("std") == pytest.approx([1.0, 0.0, NAN, 0.0], nan_ok=True)
    assert rows.pop("min") == pytest.approx([1.0, 5.0, NAN, 0.0], nan_ok=True)
    assert rows.pop("max") == pytest.approx([3.0, 5.0, NAN, 0.0], nan_ok=True)
    assert rows == {
        "zeros": [0, 0, 0, 3],
        "nan": [1, 0, 2, 0],
        "posinf": [0, 1, 1, 0],
        "neginf": [0, 1, 0, 0],
    }


@pytest.mark.parametrize(
    ("values", "mean", "std"),
    [
        ([1e200, -1e200], 0.0, 1e200),
        ([1.7e308, -1.7e308], 0.0, 1.7e308),
        ([1.7e308, 1.7e308], 1.7e308, 0.0),
        ([5e-324, 5e-324], 5e-324, 0.0),
        ([0.1] * 7, 0.1, 0.0),
        ([1e16, 1e16 + 2], 1e16, 1.0),
        ([1e-200, -1e-200], 0.0, 1e-200),
    ],
    ids=str,
)
def test_channels_at_the_ends_of_float64(values: list[float], mean: float, std: float) -> None:
    """C33: statistics of finite data are finite; a constant channel has no spread."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        statistics = channel_statistics(torch.tensor(values, dtype=torch.float64)[None, None])
    assert statistics.mean[0] == pytest.approx(mean, rel=1e-15)
    assert statistics.std[0] == pytest.approx(std, rel=1e-15)


def test_many_channels_are_taken_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = torch.randn(50, 3, 4)
    whole = channel_statistics(tensor)
    monkeypatch.setattr(channels, "ELEMENTS_AT_ONCE", 40)
    turns = channel_statistics(tensor)
    for name in ROWS:
        np.testing.assert_array_equal(getattr(turns, name), getattr(whole, name))


def test_maps_and_the_arranged_tensor_give_the_same_rows() -> None:
    tensor = torch.randn(2, 6, 4, 5)
    tensor[1, 2, 0, 0] = NAN
    from_maps = channel_statistics(channel_maps(tensor, item=1))
    from_tensor = channel_statistics(arrange(tensor, item=1).values)
    for name in ROWS:
        np.testing.assert_array_equal(getattr(from_maps, name), getattr(from_tensor, name))


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (0, 0, 0)])
def test_empty_channels_have_rows_of_nothing(shape: tuple[int, ...]) -> None:
    """C34."""
    statistics = channel_statistics(torch.ones(shape))
    assert [len(getattr(statistics, name)) for name in ROWS] == [shape[0]] * len(ROWS)
    assert np.isnan(statistics.mean).all()
    assert np.isnan(statistics.sparsity).all() or statistics.count


def test_only_three_axes_are_channels() -> None:
    with pytest.raises(LayoutError, match=r"need \(channels, height, width\), got shape \(1, 2, 3, 4\)"):
        channel_statistics(torch.ones(1, 2, 3, 4))


def test_order_is_largest_first_with_stable_ties_and_nothing_finite_last() -> None:
    rows = [[0.0, 2.0], [NAN, NAN], [1.0, 1.0], [5.0, -5.0], [0.0, 0.0], [1.0, 1.0]]
    statistics = channel_statistics(torch.tensor(rows)[:, None])
    assert channel_order(statistics, "index").tolist() == [0, 1, 2, 3, 4, 5]
    assert channel_order(statistics, "mean").tolist() == [0, 2, 5, 3, 4, 1]
    assert channel_order(statistics, "max").tolist() == [3, 0, 2, 5, 4, 1]
    assert channel_order(statistics, "spread").tolist() == [3, 0, 2, 4, 5, 1]
    assert channel_order(statistics, "sparsity").tolist() == [4, 0, 1, 2, 3, 5]
    with pytest.raises(HookvizError, match="sorted by index, mean, max, spread, sparsity"):
        channel_order(statistics, "size")  # type: ignore[arg-type]  # the mistake under test


def test_zeros_and_never_active_channels_are_two_measures() -> None:
    """C49: one 1 among two images of two channels of 2×2."""
    batch = torch.zeros(2, 2, 2, 2)
    batch[0, 0, 1, 1] = 1
    activity = ChannelActivity().update(batch)
    assert (activity.zeros_share, activity.never_active_share) == (0.9375, 0.5)
    assert activity.ever_active.tolist() == [True, False]
    assert activity.never_active.tolist() == [False, True]


def test_a_channel_alive_in_any_image_is_alive() -> None:
    """C49: images come one by one; the order does not matter."""
    first, second = torch.zeros(1, 3, 2, 2), torch.zeros(1, 3, 2, 2)
    first[0, 0], second[0, 2] = 1, NAN
    for images in ((first, second), (second, first)):
        activity = ChannelActivity()
        for image in images:
            assert activity.update(image) is activity
        assert activity.never_active.tolist() == [False, True, False]
        assert (activity.images, activity.zeros_share) == (2, 16 / 24)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float8_e4m3fn, torch.uint16, torch.bool], ids=str)
def test_activity_of_any_dtype(dtype: torch.dtype) -> None:
    activity = ChannelActivity().update(torch.tensor([[0.0, 1.0]]).to(dtype))
    assert activity.never_active.tolist() == [True, False]


def test_channels_may_be_last() -> None:
    batch = torch.zeros(1, 2, 2, 3)
    batch[0, 1, 1, 2] = 4
    assert ChannelActivity().update(batch, channel_axis=3).ever_active.tolist() == [False, False, True]


def test_activity_without_images_has_no_shares() -> None:
    for activity in (ChannelActivity(), ChannelActivity().update(torch.zeros(0, 4, 2, 2))):
        assert (activity.zeros_share, activity.never_active_share) == (None, None)


def test_activity_refuses_other_layers() -> None:
    activity = ChannelActivity().update(torch.zeros(1, 4))
    with pytest.raises(LayoutError, match="Expected 4 channels as in the images before, got 5"):
        activity.update(torch.zeros(1, 5))
    with pytest.raises(LayoutError, match="channels on axis 1"):
        activity.update(torch.zeros(4))


def test_dead_channels_mean_nothing_after_smooth_activations() -> None:
    """C49: off for GELU, SiLU and sigmoid, not 0 %."""
    assert [
        name for name in ("ReLU", "ReLU6", "Hardswish", "GELU", "SiLU", "Sigmoid") if dead_channels_apply(name)
    ] == [
        "ReLU",
        "ReLU6",
        "Hardswish",
    ]
