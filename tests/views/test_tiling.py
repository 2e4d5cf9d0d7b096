from __future__ import annotations

import numpy as np
import pytest

from hookviz.views.tiling import arrange, default_columns, tile


@pytest.mark.parametrize(
    ("tiles", "width", "columns"),
    [(1, 56, 1), (3, 56, 3), (64, 1, 8), (64, 56, 8), (64, 181, 8), (64, 182, 7), (64, 224, 6), (64, 2000, 1)],
)
def test_default_columns_keep_the_picture_within_1460_pixels(tiles: int, width: int, columns: int) -> None:
    assert default_columns(tiles, width, gap=1) == columns
    assert columns == 1 or columns * (width + 1) - 1 <= 1460


def test_a_vector_of_64_is_15_pixels_wide_and_high() -> None:
    geometry = arrange(np.arange(64), 1, 1, columns=None, gap=1)
    assert (geometry.width, geometry.height) == (15, 15)


def test_corners_are_where_tiles_begin() -> None:
    geometry = arrange(np.arange(5), 3, 4, columns=2, gap=2)
    assert [geometry.corner(position) for position in range(5)] == [(0, 0), (6, 0), (0, 5), (6, 5), (0, 10)]
    assert (geometry.rows, geometry.width, geometry.height) == (3, 10, 13)


def test_no_more_columns_than_tiles() -> None:
    assert arrange(np.arange(2), 1, 1, columns=10, gap=1).columns == 2


def test_tiles_without_a_gap_touch() -> None:
    tiles = np.array([[[1, 2]], [[3, 4]], [[5, 6]]], np.uint8)
    geometry = arrange(np.arange(3), 1, 2, columns=2, gap=0)
    assert tile(tiles, geometry, fill=9).tolist() == [[1, 2, 3, 4], [5, 6, 9, 9]]


def test_only_one_hot_cell_is_hot() -> None:
    """C27: a 7×7 map with one hot cell has one hot pixel."""
    tiles = np.zeros((1, 7, 7), np.uint8)
    tiles[0, 2, 5] = 249
    geometry = arrange(np.arange(1), 7, 7, columns=None, gap=1)
    assert np.argwhere(tile(tiles, geometry, fill=9) == 249).tolist() == [[2, 5]]
