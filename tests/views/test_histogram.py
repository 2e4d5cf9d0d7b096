from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.patches import StepPatch

from hookviz.errors import ViewError
from hookviz.types import Histogram, Summary
from hookviz.views import figure_bytes, histogram_figure
from tests.views.summaries import summary_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def bars(axes: Axes) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Heights and edges of the bars in axes."""
    heights, edges, _ = next(patch for patch in axes.patches if isinstance(patch, StepPatch)).get_data()
    return heights, edges


def test_the_bars_are_the_counts_over_the_edges() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    counts, edges = np.histogram(values, 10)
    (axes,) = histogram_figure(summary_of(values)).axes
    heights, drawn_edges = bars(axes)
    assert np.array_equal(heights, counts)
    assert np.array_equal(drawn_edges, edges)


def test_what_is_not_finite_is_counted_in_words() -> None:
    """C13: [1, 2, nan, inf, -inf]: two values binned."""
    figure = histogram_figure(summary_of(np.array([1, 2, np.nan, np.inf, -np.inf])))
    assert bars(figure.axes[0])[0].sum() == 2
    assert "NaN 1  ·  +Inf 1  ·  −Inf 1" in words(figure)


def test_all_nan_says_that_no_value_is_finite() -> None:
    """C13: all-NaN."""
    figure = histogram_figure(summary_of(np.full(4, np.nan)))
    assert figure.axes == []
    assert "no finite values" in words(figure)
    assert "NaN 4" in words(figure)


def test_an_empty_tensor_says_empty() -> None:
    """C34: count 0."""
    figure = histogram_figure(summary_of(np.empty(0)))
    assert "empty" in words(figure).splitlines()
    assert "0 values" in words(figure)


def test_mean_and_standard_deviation_are_marked() -> None:
    """C32: the population's, 2.7271 for these eight."""
    figure = histogram_figure(summary_of(np.array([1.0, 2, 3, 4, 5, 6, 7, 10])))
    (axes,) = figure.axes
    assert "mean 4.75 ± sd 2.727" in words(figure)
    (line,) = axes.lines
    assert np.array_equal(line.get_xdata(), [4.75, 4.75])
    band = next(patch for patch in axes.patches if not isinstance(patch, StepPatch))
    low, high = band.get_extents().transformed(axes.transData.inverted()).intervalx
    assert (low, high) == (pytest.approx(4.75 - 2.7271, abs=1e-3), pytest.approx(4.75 + 2.7271, abs=1e-3))


def test_one_value_has_deviation_zero() -> None:
    """C32: one element."""
    assert "mean 3 ± sd 0" in words(histogram_figure(summary_of(np.array([3.0]))))


def test_a_channel_has_counts_of_its_own_on_the_right() -> None:
    layer, channel = np.random.default_rng(1).normal(size=(2, 500))
    figure = histogram_figure(summary_of(layer), summary_of(channel), channel_number=13)
    left, right = figure.axes
    assert np.array_equal(bars(right)[0], np.histogram(channel, 10)[0])
    assert left.get_xlim() == right.get_xlim()
    assert right.yaxis.get_ticks_position() == "right"
    assert "channel 13:  500 values" in words(figure)


def test_a_channel_without_finite_values_leaves_the_layer() -> None:
    figure = histogram_figure(summary_of(np.arange(5.0)), summary_of(np.full(3, np.inf)), channel_number=2)
    assert len(figure.axes) == 1
    assert "channel 2:  +Inf 3" in words(figure)


@pytest.mark.parametrize("size", [5e-324, 1e-45, 1e-6, 1e8, 3e38, 1.7e308])
def test_any_magnitude_can_be_drawn(size: float) -> None:
    summary = Summary(
        3, 0, 0, 0, 1, size / 2, size / 4, 0.0, size, Histogram(np.array([2, 1]), np.array([0, size / 2, size]))
    )
    figure = histogram_figure(summary)
    figure_bytes(figure)
    ticks = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(set(ticks)) == len(ticks) >= 3


def test_a_constant_far_from_zero_can_be_drawn() -> None:
    constant = Summary(3, 0, 0, 0, 0, 1e20, 0.0, 1e20, 1e20, Histogram(np.array([3]), np.array([1e20, 1e20])))
    figure = histogram_figure(constant)
    figure_bytes(figure)
    assert "mean 1e20 ± sd 0" in words(figure)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_logarithmic_counts_keep_bins_of_one_visible(theme: ThemeName) -> None:
    counts = np.array([1, 0, 1000])
    summary = Summary(1001, 0, 0, 0, 0, 2.5, 0.1, 0.0, 3.0, Histogram(counts, np.arange(4.0)))
    (axes,) = histogram_figure(summary, log=True, theme=theme).axes
    assert axes.get_ylim()[0] < 1
    assert bars(axes)[0].tolist() == [1, 0.5, 1000]


def test_the_axis_says_what_the_numbers_are_of() -> None:
    """C30: magnitudes are labelled."""
    summary = Summary(
        1, 0, 0, 0, 0, 1.0, 0.0, 1.0, 1.0, Histogram(np.array([1]), np.array([0.5, 1.5])), shows="magnitude"
    )
    assert histogram_figure(summary).axes[0].get_xlabel() == "magnitude"


def test_an_unknown_theme_is_refused_by_name() -> None:
    with pytest.raises(ViewError, match="no theme 'sepia'; choose one of light, dark"):
        histogram_figure(summary_of(np.ones(2)), theme="sepia")  # type: ignore[arg-type]  # wrong on purpose


def test_long_numbers_are_not_cut_off() -> None:
    """Many values, negative, and with powers of ten: the longest line there is."""
    values = np.linspace(-1.356789e-7, 9.741234e-8, 1_234_567)
    values[:150_000] = 0
    figure = histogram_figure(summary_of(values))
    figure.canvas.draw()
    assert max(text.get_window_extent().x1 for text in figure.texts) <= figure.bbox.x1
