from __future__ import annotations

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.types import Scale
from hookviz.views import channel_picture, maximum_of, mosaic_picture
from tests.views.decoding import entries, rgb


def troubled() -> np.ndarray:
    """Five channels of 4×6: plain, faint, constant, and two with values that are not finite."""
    maps = np.random.default_rng(0).normal(size=(5, 4, 6))
    maps[1] *= 1e-6
    maps[2] = 7
    maps[3, 0, 0], maps[3, 1, 1] = np.nan, np.inf
    maps[4] = -np.inf
    return maps


@pytest.mark.parametrize("scale", ["channel", "shared", "symmetric"])
@pytest.mark.parametrize("robust", [False, True])
def test_every_channel_has_the_colours_of_its_tile(scale: Scale, robust: bool) -> None:
    """C15, C14: under every scale, whichever channels are beside it."""
    maps = troubled()
    page = mosaic_picture(maps, scale=scale, robust=robust, cmap="magma")
    colours = rgb(page.png)
    for position, channel in enumerate(page.geometry.channels):
        left, top = page.geometry.corner(position)
        large = rgb(channel_picture(maps, channel, scale=scale, robust=robust, cmap="magma"))
        assert np.array_equal(large, colours[top : top + 4, left : left + 6])


def test_there_is_a_pixel_for_each_value() -> None:
    """C27."""
    assert entries(channel_picture(np.array([[[0, 249], [10, 239]]]), 0)).tolist() == [[0, 249], [10, 239]]


def test_a_single_value_has_its_colour_among_the_others() -> None:
    """C28: a vector is on one scale."""
    vector = np.arange(250.0).reshape(250, 1, 1)
    assert entries(channel_picture(vector, 83)).tolist() == [[83]]


def test_the_maximum_is_the_largest_finite_value_the_first_of_equal_ones() -> None:
    """C26, C14: row before column."""
    maps = np.array([[[1, 5, 2], [0, 5, np.inf]], [[np.nan] * 3] * 2, [[-3, -1, -2], [np.nan, -9, -4]]])
    assert [maximum_of(maps, channel) for channel in range(3)] == [(0, 1), None, (0, 1)]
    assert maximum_of(np.array([[[False, False], [True, True]]]), 0) == (1, 0)
    assert maximum_of(np.zeros((1, 0, 4)), 0) is None


def test_a_channel_that_is_not_there_is_refused_in_a_sentence() -> None:
    for function in (channel_picture, maximum_of):
        with pytest.raises(ViewError, match="no channel 5; there are 5, numbered from 0"):
            function(troubled(), 5)
