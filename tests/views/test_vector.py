from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.patches import Rectangle, StepPatch

from hookviz.errors import ViewError
from hookviz.types import ChannelMaps
from hookviz.views import figure_bytes, single_value, value_figure, vector_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName

VALUES = np.array([0.5, -2.0, 4.0, 1.0, 3.0, 2.0])


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def bars(figure: Figure) -> list[float]:
    return [patch.get_height() for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]


def shown_as(values: np.ndarray, shows: str, dtype: str) -> ChannelMaps:
    maps = values.astype(np.float32).reshape(-1, 1, 1)
    none = np.zeros(maps.shape, bool)
    return ChannelMaps(maps, none, none, none, "NC", (1, len(maps)), dtype, shows)


def test_each_channel_has_a_bar_as_high_as_its_value() -> None:
    """C28: a vector is a chart of bars."""
    patches = [patch for patch in vector_figure(VALUES).axes[0].patches if isinstance(patch, Rectangle)]
    assert [patch.get_x() + patch.get_width() / 2 for patch in patches] == pytest.approx([0, 1, 2, 3, 4, 5])
    assert [patch.get_y() for patch in patches] == [0, -2, 0, 0, 0, 0]
    assert [patch.get_y() + patch.get_height() for patch in patches] == [0.5, 0, 4, 1, 3, 2]


def test_the_five_largest_are_written_down_and_marked() -> None:
    figure = vector_figure(VALUES)
    assert "largest channels   2: 4   ·   4: 3   ·   5: 2   ·   3: 1   ·   0: 0.5" in words(figure)
    dots = figure.axes[0].lines[-1]
    assert np.array_equal(dots.get_xdata(), [2, 4, 5, 3, 0])
    assert np.array_equal(dots.get_ydata(), [4, 3, 2, 1, 0.5])


def test_names_stand_beside_the_largest() -> None:
    figure = vector_figure(VALUES, names=["ant", "bee", "cat", "dog", "elk", "fox"])
    assert words(figure)[-5:] == ["2  cat  4", "4  elk  3", "5  fox  2", "3  dog  1", "0  ant  0.5"]


def test_an_order_moves_the_bars_and_keeps_the_numbers() -> None:
    figure = vector_figure(VALUES, order=[2, 0, 1])
    assert bars(figure) == [4.0, 0.5, 2.0]
    assert "largest channels   2: 4   ·   0: 0.5   ·   1: −2" in words(figure)
    assert figure.axes[0].get_xlabel() == "channel, in the order chosen"


def test_many_channels_share_bars_that_lose_no_peak() -> None:
    """C16: 4,096 channels, one of them high and one low."""
    values = np.zeros(4096)
    values[1234], values[3000] = 7.0, -9.0
    figure = vector_figure(values)
    (steps,) = (patch for patch in figure.axes[0].patches if isinstance(patch, StepPatch))
    heads, edges, feet = map(np.asarray, steps.get_data())
    assert (heads.max(), feet.min()) == (7.0, -9.0)
    high, low = int(heads.argmax()), int(feet.argmin())
    assert edges[high] < 1234 < edges[high + 1]
    assert edges[low] < 3000 < edges[low + 1]
    assert "4,096 values  ·  −9 to 7  ·  a bar spans 13 channels, from the smallest to the largest" in words(figure)


def test_what_is_not_finite_has_no_bar_and_is_counted() -> None:
    """C13."""
    figure = vector_figure(np.array([1.0, np.nan, np.inf, -np.inf, np.nan]))
    assert bars(figure) == [1, 0, 0, 0, 0]
    assert "NaN 2  ·  +Inf 1  ·  −Inf 1" in words(figure)
    assert "largest channels   0: 1" in words(figure)


@pytest.mark.parametrize(
    ("values", "word"), [(np.full(3, np.nan), "no finite values"), (np.empty(0), "empty")], ids=["NaN", "empty"]
)
def test_nothing_to_draw_says_so(values: np.ndarray, word: str) -> None:
    """C13, C34."""
    figure = vector_figure(values)
    assert figure.axes == []
    assert word in words(figure)


def test_integers_have_every_digit_and_booleans_words() -> None:
    """C31: 1,234,567 is not 1.235e6, and a mask has neither a largest nor numbers."""
    assert "largest channels   1: 1,234,567   ·   0: 5" in words(vector_figure(np.array([5, 1234567])))
    figure = vector_figure(np.array([True, False, True]))
    assert "3 values  ·  true 2" in words(figure)
    figure.canvas.draw()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels() if label.get_text()]
    assert {"false", "true"} <= set(labels)


def test_what_is_shown_is_named() -> None:
    """C30."""
    assert words(vector_figure(shown_as(VALUES, "phase", "complex64")))[1].startswith("phase  ·  6 values")


@pytest.mark.parametrize("size", [1e-40, 1e-7, 1.0, 1e38, 1e300])
def test_any_magnitude_is_drawn(size: float) -> None:
    assert len(figure_bytes(vector_figure(VALUES * size))) > 1000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_repeat_byte_for_byte(theme: ThemeName) -> None:
    first, second = (figure_bytes(vector_figure(VALUES, theme=theme), "svg") for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"values": np.zeros((2, 1, 3))}, "one value for each channel, got maps of 1×3"),
        ({"values": VALUES, "names": ["one"]}, "6 channels need 6 names, got 1"),
        ({"values": VALUES, "order": [6]}, "no channel 6"),
        ({"values": VALUES, "theme": "blue"}, "no theme 'blue'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ViewError, match=sentence):
        vector_figure(**arguments)  # type: ignore[arg-type]  # mistakes under test


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.array(-3.25), "−3.25"),
        (np.array([[[1234567]]]), "1,234,567"),
        (np.array(True), "true"),
        (np.array(np.nan), "NaN"),
        (np.array([-np.inf]), "−Inf"),
    ],
)
def test_one_value_is_a_number_in_large_type(value: np.ndarray, text: str) -> None:
    """C28, C32: a scalar output."""
    assert single_value(value) == text
    assert text in words(value_figure(value))


def test_several_values_are_no_number() -> None:
    with pytest.raises(ViewError, match=r"one value makes a number, got maps of shape \(2, 1, 1\)"):
        value_figure(np.zeros((2, 1, 1)))
