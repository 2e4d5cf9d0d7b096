from __future__ import annotations

import numpy as np
import pytest
from matplotlib import colormaps

from hookviz.errors import ViewError
from hookviz.views import kernel_picture
from hookviz.views.palette import NAN, palette
from tests.views.decoding import alpha, rgb


def test_a_coloured_kernel_is_grey_at_zero_and_full_at_its_reach() -> None:
    """C80: red, green and blue in this order; -2 is dark and 2 is light in its colour alone."""
    weights = np.zeros((3, 2, 2))
    weights[0, 0, 0], weights[1, 0, 1], weights[2, 1, 0] = 2.0, -2.0, 1.0
    picture = kernel_picture(weights, is_rgb=True)
    colours = rgb(picture.png)
    assert colours.shape == (96, 96, 3)
    assert colours[0, 0].tolist() == [255, 128, 128]
    assert colours[0, 95].tolist() == [128, 0, 128]
    assert colours[95, 0].tolist() == [128, 128, 191]
    assert colours[95, 95].tolist() == [128, 128, 128]
    assert (picture.reach, picture.geometry) == (2.0, None)


def test_every_weight_is_a_square_of_one_colour() -> None:
    """C27."""
    weights = np.random.default_rng(0).normal(size=(3, 3, 5))
    colours = rgb(kernel_picture(weights, is_rgb=True).png)
    side = 96 // 5
    assert colours.shape == (3 * side, 5 * side, 3)
    blocks = colours.reshape(3, side, 5, side, 3)
    assert (blocks == blocks[:, :1, :, :1]).all()


def test_tiles_are_on_one_scale_around_zero_also_those_left_out() -> None:
    """C15: what is shown is the strongest of the inputs shown, but the scale is that of all."""
    weights = np.array([[[1.0]], [[-4.0]], [[2.0]], [[0.0]]])
    picture = kernel_picture(weights, order=[2, 0, 3], columns=3)
    ends = np.asarray(colormaps["RdBu_r"](np.linspace(0, 1, 250), bytes=True))[:, :3]
    assert picture.reach == 4.0
    assert picture.geometry is not None
    assert picture.geometry.channels == (2, 0, 3)
    colours = rgb(picture.png)
    for position, value in enumerate((2.0, 1.0, 0.0)):
        left, top = picture.geometry.corner(position)
        assert colours[top, left].tolist() == ends[round((value + 4) / 8 * 249)].tolist()


def test_there_is_exactly_one_tile_for_each_input() -> None:
    """C17: also of one, of three that are not colours, and of more than a page."""
    for inputs in (1, 3, 5, 200):
        picture = kernel_picture(np.random.default_rng(0).normal(size=(inputs, 3, 3)))
        assert picture.geometry is not None
        assert picture.geometry.channels == tuple(range(inputs))
        assert np.count_nonzero(alpha(picture.png)) == inputs * 36 * 36


def test_wide_and_large_kernels_keep_their_proportions() -> None:
    line = kernel_picture(np.ones((2, 1, 7)))
    assert line.geometry is not None
    assert (line.geometry.tile_height, line.geometry.tile_width) == (5, 35)
    patch = rgb(kernel_picture(np.random.default_rng(0).normal(size=(3, 200, 100)), is_rgb=True).png)
    assert patch.shape == (200, 100, 3)


def test_weights_that_are_zero_or_not_finite_can_be_drawn() -> None:
    """C14."""
    assert (rgb(kernel_picture(np.zeros((3, 3, 3)), is_rgb=True).png) == 128).all()
    assert kernel_picture(np.zeros((4, 3, 3))).reach == 0.0
    weights = np.ones((3, 1, 2))
    weights[1, 0, 0] = np.nan
    broken = kernel_picture(weights, is_rgb=True)
    assert rgb(broken.png)[0, 0].tolist() == palette("RdBu_r")[NAN].tolist()
    assert broken.reach == 1.0
    tiles = kernel_picture(weights)
    assert tiles.geometry is not None
    left, top = tiles.geometry.corner(1)
    assert rgb(tiles.png)[top, left].tolist() == palette("RdBu_r")[NAN].tolist()


def test_the_same_weights_give_the_same_bytes_and_stay_as_they_are() -> None:
    weights = np.random.default_rng(1).normal(size=(3, 3, 3)).astype(np.float32)
    before = weights.copy()
    for is_rgb in (False, True):
        assert kernel_picture(weights, is_rgb=is_rgb).png == kernel_picture(weights.copy(), is_rgb=is_rgb).png
    assert np.array_equal(weights, before)


def test_what_does_not_exist_is_refused_in_a_sentence() -> None:
    with pytest.raises(ViewError, match="a coloured kernel reads red, green and blue, but this one reads 4 inputs"):
        kernel_picture(np.ones((4, 3, 3)), is_rgb=True)
    with pytest.raises(ViewError, match="no channel 4; there are 4, numbered from 0"):
        kernel_picture(np.ones((4, 3, 3)), order=[4])
    with pytest.raises(ViewError, match=r"\(channels, height, width\)"):
        kernel_picture(np.ones((3, 3)))
