from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from hookviz.errors import ViewError
from hookviz.views import mosaic_picture
from hookviz.views.palette import CONSTANT
from tests.views.decoding import tile_entries


def expected_levels(values: npt.NDArray[np.float64], vmin: float, vmax: float) -> npt.NDArray[np.float64]:
    return np.rint((values - vmin) / (vmax - vmin) * 249)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16, np.uint8, np.longdouble])
def test_levels_are_the_rounded_place_between_the_limits(dtype: npt.DTypeLike) -> None:
    values = np.random.default_rng(0).integers(0, 200, (3, 40, 50)).astype(dtype)
    picture = mosaic_picture(values)
    for channel in range(3):
        exact = values[channel].astype(np.float64)
        expected = expected_levels(exact, exact.min(), exact.max())
        assert np.array_equal(tile_entries(picture, channel), expected)


def test_a_large_layer_is_levelled_alike_in_every_block() -> None:
    values = np.random.default_rng(1).normal(size=(5, 150, 170)).astype(np.float32)
    picture = mosaic_picture(values, scale="shared")
    exact = values.astype(np.float64)
    for channel in range(5):
        assert np.array_equal(tile_entries(picture, channel), expected_levels(exact[channel], exact.min(), exact.max()))


@pytest.mark.parametrize(
    ("low", "middle", "high"),
    [
        (0.0, 1e-45, 3e-45),
        (-3e38, 0.0, 3e38),
        (-1.7e308, 0.0, 1.7e308),
        (0.0, 5e-324, 1e-323),
        (1e8, 1e8 + 1e-6, 1e8 + 2e-6),
    ],
)
@pytest.mark.parametrize("robust", [False, True])
def test_the_smallest_and_largest_ranges_use_both_ends(low: float, middle: float, high: float, robust: bool) -> None:
    """C14: neither a range near zero nor one that overflows loses its ends or warns."""
    drawn = tile_entries(mosaic_picture(np.array([[[low, middle, high]]]), robust=robust), 0)[0]
    assert (drawn[0], drawn[2]) == (0, 249)
    assert 0 < drawn[1] < 249


def test_float32_extremes_use_both_ends() -> None:
    values = np.array([[[-3.4e38, 0, 3.4e38]], [[0, 1.4e-45, 2.8e-45]]], np.float32)
    picture = mosaic_picture(values)
    assert tile_entries(picture, 0).tolist() == [[0, 124, 249]]
    assert tile_entries(picture, 1).tolist() == [[0, 124, 249]]


def test_shared_makes_a_weak_channel_uniform_and_channel_stretches_it() -> None:
    """C15: A ranges over 0..1e-6, B over 0..100."""
    ramp = np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    maps = np.stack([ramp * 1e-6, ramp * 100])
    shared, stretched = mosaic_picture(maps, scale="shared"), mosaic_picture(maps, scale="channel")
    assert np.unique(tile_entries(shared, 0)).tolist() == [0]
    assert np.array_equal(tile_entries(stretched, 0), tile_entries(stretched, 1))
    assert (shared.limits.vmin.tolist(), shared.limits.vmax.tolist()) == ([0, 0], [100, 100])
    assert stretched.limits.vmax.tolist() == [float(np.float32(1e-6)), 100]
    assert shared.extremes.vmax.tolist() == [float(np.float32(1e-6)), 100]
    assert (shared.scale, stretched.scale) == ("shared", "channel")


def test_shared_limits_are_those_of_the_whole_layer_on_every_page() -> None:
    maps = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    second = mosaic_picture(maps, scale="shared", per_page=1, page=1)
    assert (second.limits.vmin[0], second.limits.vmax[0]) == (0, 11)
    assert np.array_equal(tile_entries(second, 0), expected_levels(maps[1].astype(float), 0, 11))


def test_symmetric_puts_zero_in_the_middle() -> None:
    picture = mosaic_picture(np.array([[[-1.0, 0.0, 4.0]]]), scale="symmetric")
    assert (picture.limits.vmin[0], picture.limits.vmax[0]) == (-4, 4)
    assert tile_entries(picture, 0).tolist() == [[93, 124, 249]]


def test_robust_limits_are_the_first_and_the_ninety_ninth_percentile() -> None:
    values = np.arange(101, dtype=np.float64).reshape(1, 1, 101)
    values[0, 0, 100] = 1e9
    picture = mosaic_picture(values, robust=True)
    assert (picture.limits.vmin[0], picture.limits.vmax[0]) == (1, 99)
    assert picture.clipped == 2
    assert tile_entries(picture, 0)[0, [0, 1, 99, 100]].tolist() == [0, 0, 249, 249]


def test_robust_limits_look_past_what_is_not_finite() -> None:
    values = np.append(np.arange(101.0), [np.nan, np.inf]).reshape(1, 1, 103)
    picture = mosaic_picture(values, robust=True, scale="shared")
    assert (picture.limits.vmin[0], picture.limits.vmax[0], picture.clipped) == (1, 99, 2)


def test_robust_falls_back_to_the_full_range_where_nearly_all_values_are_equal() -> None:
    values = np.zeros((1, 20, 20))
    values[0, 3, 4] = 5
    picture = mosaic_picture(values, robust=True)
    assert (picture.limits.vmin[0], picture.limits.vmax[0], picture.clipped) == (0, 5, 0)


def test_symmetric_of_zeros_is_constant() -> None:
    assert np.unique(tile_entries(mosaic_picture(np.zeros((1, 2, 2)), scale="symmetric"), 0)).tolist() == [CONSTANT]


def test_a_constant_channel_in_a_shared_range_has_its_own_level() -> None:
    maps = np.stack([np.full((2, 2), 5.0), np.array([[0.0, 10.0], [0.0, 10.0]])])
    picture = mosaic_picture(maps, scale="shared")
    assert np.unique(tile_entries(picture, 0)).tolist() == [np.rint(0.5 * 249)]
    assert "constant" not in [entry.label for entry in picture.legend]


def test_vectors_are_shared_since_each_value_alone_would_be_constant() -> None:
    """C32: 1×1 maps."""
    picture = mosaic_picture(np.array([0.0, 1.0, 2.0]).reshape(3, 1, 1), scale="channel")
    assert picture.scale == "shared"
    assert [tile_entries(picture, position).item() for position in range(3)] == [0, 124, 249]


def test_booleans_use_both_ends() -> None:
    """C31: a mask is drawn like any number."""
    assert tile_entries(mosaic_picture(np.array([[[True, False]]])), 0).tolist() == [[249, 0]]


def test_the_smallest_int8_is_the_lowest_level() -> None:
    """C31: its magnitude does not exist in int8."""
    picture = mosaic_picture(np.array([[[-128, 0, 127]]], np.int8), scale="symmetric")
    assert (picture.limits.vmin[0], picture.limits.vmax[0]) == (-128, 128)
    assert tile_entries(picture, 0).tolist() == [[0, 124, 248]]


def test_complex_numbers_are_refused_with_the_way_out() -> None:
    """C30: no imaginary part is dropped in silence."""
    with pytest.raises(ViewError, match="take the magnitude or the phase first"):
        mosaic_picture(np.ones((1, 2, 2), complex))


def test_an_unknown_scale_is_refused_by_name() -> None:
    with pytest.raises(ViewError, match="no scale 'global'; choose one of channel, shared, symmetric"):
        mosaic_picture(np.ones((1, 2, 2)), scale="global")  # type: ignore[arg-type]  # the point of the test
