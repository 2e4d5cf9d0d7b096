from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import figure_bytes, sequence_figure

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.types import Scale

SEQUENCES = np.array([[[0.0, 10.0, 5.0]], [[-1.0, -1.0, 1.0]]])
WIDE, TALL = 216, 56


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def line(figure: Figure) -> npt.NDArray[np.float64]:
    """x and y of every point in pixels from the upper left, NaN between the channels."""
    points: npt.NDArray[np.float64] = figure.axes[0].lines[0].get_xydata()  # type: ignore[assignment]  # never None
    return points


def heights(figure: Figure, channels: int) -> npt.NDArray[np.float64]:
    """0 at the foot of a channel's tile to 1 at its top, a row for each channel of a single row of tiles."""
    y = line(figure)[:, 1].reshape(channels, -1)[:, :-1]
    foot = figure.axes[0].get_ylim()[0]
    return (foot - y) / TALL


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ("channel", [[0, 1, 0.5], [0, 0, 1]]),
        ("shared", [[1 / 11, 1, 6 / 11], [0, 0, 2 / 11]]),
        ("symmetric", [[0.5, 1, 0.75], [0.45, 0.45, 0.55]]),
    ],
)
def test_lines_are_as_high_as_their_values(scale: Scale, expected: list[list[float]]) -> None:
    """C28, C15: 1-D outputs as lines, over their own range or one range."""
    np.testing.assert_allclose(heights(sequence_figure(SEQUENCES, scale=scale), 2), expected, atol=1e-12)


def test_lines_go_from_the_first_position_to_the_last() -> None:
    x = line(sequence_figure(SEQUENCES))[:, 0]
    second = WIDE + 12
    expected = [0, WIDE / 2, WIDE, np.nan, second, second + WIDE / 2, second + WIDE, np.nan]
    np.testing.assert_array_equal(x, expected)


def test_what_is_not_finite_breaks_the_line_and_is_counted() -> None:
    """C13."""
    figure = sequence_figure(np.array([[[0.0, np.nan, 2.0, np.inf, 1.0]]]))
    np.testing.assert_array_equal(heights(figure, 1), [[0, np.nan, 1, np.nan, 0.5]])
    assert "NaN 1  ·  +Inf 1" in words(figure)


def test_a_constant_runs_through_the_middle_and_says_so() -> None:
    """C14."""
    figure = sequence_figure(np.full((1, 1, 4), 7.0))
    assert heights(figure, 1).tolist() == [[0.5] * 4]
    assert "constant 7" in words(figure)


def test_long_sequences_keep_their_peaks() -> None:
    values = np.zeros((1, 1, 100_000))
    values[0, 0, 54_321] = 1.0
    figure = sequence_figure(values)
    points = line(figure)
    assert len(points) < 4 * 2 * WIDE
    assert heights(figure, 1).max() == 1.0
    assert points[np.nanargmin(points[:, 1]), 0] == pytest.approx(0.54321 * WIDE, abs=0.5)
    assert "smallest and largest of every 232 positions" in " ".join(words(figure))


def test_pages_and_order_are_those_of_the_mosaic() -> None:
    """C17: channels in reading order, and no more of them than there are."""
    figure = sequence_figure(np.arange(15.0).reshape(5, 1, 3), order=[4, 2, 0], page=1, per_page=2)
    assert [word for word in words(figure) if word.isdigit()] == ["0"]
    assert "0 … 2" in words(figure)
    assert "page 2 of 2" in words(figure)[1]


def test_sixty_four_channels_take_one_axes() -> None:
    """C16: an axes for each would take seconds."""
    figure = sequence_figure(np.random.default_rng(0).normal(size=(64, 1, 200)))
    assert len(figure.axes) == 1
    assert len(figure_bytes(figure)) > 1000


def test_one_position_is_a_dot() -> None:
    figure = sequence_figure(np.array([[[1.0]], [[3.0]]]))
    assert line(figure)[:, 0].tolist()[0] == WIDE / 2
    assert figure.axes[0].lines[0].get_marker() == "o"


def test_the_largest_range_does_not_overflow() -> None:
    """C33."""
    figure = sequence_figure(np.array([[[-1.7e308, 0.0, 1.7e308]]]))
    assert heights(figure, 1).tolist() == [[0, 0.5, 1]]


def test_empty_says_so() -> None:
    """C34."""
    assert "empty (0 elements, shape (0, 1, 5))" in words(sequence_figure(np.empty((0, 1, 5))))


def test_images_are_no_sequences() -> None:
    with pytest.raises(ViewError, match="one row for each channel, got maps of 2×3"):
        sequence_figure(np.zeros((1, 2, 3)))
