from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hookviz.views import channel_grid_figure, figure_bytes
from hookviz.views.palette import palette
from tests.views.decoding import rgb

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def bar_labels(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[1].get_xticklabels()]


@pytest.mark.parametrize("channels", [1, 3, 5, 17])
def test_there_are_as_many_numbers_as_channels(channels: int) -> None:
    """C17: exactly C tiles."""
    maps = np.random.default_rng(0).normal(size=(channels, 4, 4))
    numbers = [word for word in words(channel_grid_figure(maps)) if word.isdigit()]
    assert numbers == [str(channel) for channel in range(channels)]


def test_a_checkerboard_has_two_colours_and_no_third() -> None:
    """C27: 112×112 cells, none mixed with its neighbour."""
    checkerboard = (np.indices((112, 112)).sum(axis=0) % 2)[None].astype(np.float32)
    pixels = rgb(figure_bytes(channel_grid_figure(checkerboard)))[58 + 20 : 58 + 20 + 112, 20 : 20 + 112]
    ends = palette("viridis")[[0, 249]]
    assert np.array_equal(pixels, ends[checkerboard[0].astype(int)])


def test_one_hot_cell_is_one_square() -> None:
    """C27: 7×7, each cell 16 pixels."""
    hot = np.zeros((1, 7, 7))
    hot[0, 2, 5] = 1
    pixels = rgb(figure_bytes(channel_grid_figure(hot)))
    lit = np.argwhere((pixels == palette("viridis")[249]).all(axis=-1))
    lit = lit[lit[:, 0] < 78 + 112]  # below lies the colour bar
    assert (lit.min(axis=0).tolist(), lit.max(axis=0).tolist()) == (
        [78 + 2 * 16, 20 + 5 * 16],
        [78 + 3 * 16 - 1, 20 + 6 * 16 - 1],
    )
    assert len(lit) == 16 * 16


def test_the_range_of_each_channel_is_printed_and_the_scale_named() -> None:
    """C15: min and max per tile, the active mode labelled."""
    maps = np.stack([np.linspace(0, 1e-6, 4).reshape(2, 2), np.linspace(0, 100, 4).reshape(2, 2)])
    own, shared = channel_grid_figure(maps), channel_grid_figure(maps, scale="shared")
    for figure in (own, shared):
        assert {"0 … 1e−6", "0 … 100"} <= set(words(figure))
    assert "each channel over its own range" in words(own)
    assert "one range for all channels" in words(shared)
    assert bar_labels(own) == ["channel's min", "channel's max"]
    assert bar_labels(shared) == ["0", "50", "100"]


def test_the_colour_bar_around_zero_has_zero_in_the_middle() -> None:
    figure = channel_grid_figure(np.array([[[-3.0, 1.0]]]), scale="symmetric", cmap="RdBu_r")
    assert bar_labels(figure) == ["−3", "0", "3"]


def test_a_constant_channel_says_its_value_and_classes_are_counted() -> None:
    """C14: the label "constant 7", and counts of what is not finite."""
    maps = np.array([[[7, 7], [7, 7]], [[1, 2], [3, np.inf]], [[1, 2], [3, np.nan]], [[np.nan] * 2] * 2])
    labels = words(channel_grid_figure(maps))
    assert {"constant 7", "no finite values", "NaN  5", "+Inf  1", "constant  1"} <= set(labels)
    assert labels.count("1 … 3") == 2


def test_the_first_of_4096_channels_come_within_seconds() -> None:
    """C16: 4096 channels of 56×56; a figure below 65,536 pixels a side."""
    maps = np.random.default_rng(0).normal(size=(4096, 56, 56)).astype(np.float32)
    start = time.process_time()  # other processes do not count
    pixels = rgb(figure_bytes(channel_grid_figure(maps)))
    assert time.process_time() - start < 3
    assert max(pixels.shape) < 65536
    assert "page 64 of 64" in words(channel_grid_figure(maps, page=63))[1]


@pytest.mark.parametrize("shape", [(64, 1024, 1024), (64, 1, 5000), (64, 5000, 1), (64, 1, 1)])
def test_no_shape_makes_a_figure_too_large(shape: tuple[int, int, int]) -> None:
    """C16: figure below 65,536 pixels a side."""
    width, height = channel_grid_figure(np.zeros(shape, np.float32)).get_size_inches() * 100
    assert max(width, height) < 65536


def test_left_out_rows_are_admitted() -> None:
    assert "1 of 3 rows and 1 of 3 columns drawn" in words(channel_grid_figure(np.zeros((1, 3000, 3000), np.uint8)))[1]
    assert "1 of 4 columns drawn" in words(channel_grid_figure(np.zeros((1, 3, 5000), np.uint8)))[1]


def test_robust_limits_say_what_they_clip() -> None:
    figure = channel_grid_figure(np.arange(101.0).reshape(1, 1, 101), robust=True)
    assert "1st to 99th percentile, 2 values clipped" in words(figure)[1]


def test_an_empty_layer_says_so() -> None:
    """C34: shape (1, 0, 7) written in the figure."""
    assert words(channel_grid_figure(np.zeros((1, 0, 7))))[1] == "empty (0 elements, shape (1, 0, 7))"


def test_dollars_in_a_title_stay_dollars() -> None:
    figure = channel_grid_figure(np.zeros((1, 2, 2)), title="a$b_c$ layer")
    figure_bytes(figure)
    assert words(figure)[0] == "a$b_c$ layer"


def test_labels_of_neighbours_never_overlap() -> None:
    maps = np.random.default_rng(2).normal(size=(1032, 7, 7)) * 1e-6
    figure = channel_grid_figure(maps, page=16)
    figure_bytes(figure)
    boxes = [text.get_window_extent() for text in figure.texts if text.get_text()]
    overlaps = [
        (a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.shrunk(0.98, 0.8).overlaps(b.shrunk(0.98, 0.8))
    ]
    assert overlaps == []
    width, height = figure.get_size_inches() * 100
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_booleans_are_named_in_place_of_a_bar() -> None:
    """C31."""
    figure = channel_grid_figure(np.array([[[True, False]], [[False, False]]]))
    assert len(figure.axes) == 1
    assert {"false  3", "true  1", "false … true", "constant false", "false and true"} <= set(words(figure))


def test_integers_have_no_digits_behind_a_point() -> None:
    """C31: classes 0 to 7, the middle of which is none."""
    figure = channel_grid_figure(np.array([[[0, 7]], [[12345, 12346]]]), scale="shared")
    assert bar_labels(figure) == ["0", "6,173", "12,346"]
    assert "12,345 … 12,346" in words(figure)
    assert bar_labels(channel_grid_figure(np.array([[[0, 7]]]), scale="shared")) == ["0", "7"]
