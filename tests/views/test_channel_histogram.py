from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import StepPatch

from hookviz.errors import ViewError
from hookviz.types import Histogram
from hookviz.views import channel_histogram_figure, counts_over, figure_bytes
from tests.views.summaries import summary_of

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName


def layer_and_channel() -> tuple[npt.NDArray[np.float32], Histogram]:
    values = np.random.default_rng(0).normal(size=(5, 20, 20)).astype(np.float32)
    return values[2], summary_of(values).histogram


def stairs(figure: Figure) -> list[npt.NDArray[np.float64]]:
    """The heights of everything drawn in steps, from back to front."""
    return [patch.get_data()[0] for patch in figure.axes[0].patches if isinstance(patch, StepPatch)]


def words(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.texts)


def test_a_channel_is_counted_over_the_bins_of_its_layer() -> None:
    channel, layer = layer_and_channel()
    assert np.array_equal(counts_over(channel, layer.edges), np.histogram(channel, layer.edges)[0])


def test_all_channels_together_are_the_layer() -> None:
    """Edges that rounding makes awkward: 0.1 apart, values on them."""
    values = (np.arange(30) / 10).reshape(3, 10)
    layer = summary_of(values, bins=29).histogram
    together = sum(counts_over(channel, layer.edges) for channel in values)
    assert np.array_equal(together, layer.counts)


def test_what_is_not_finite_is_not_counted_and_rounding_loses_nothing() -> None:
    """C13, C29: float32 of a float64 layer may lie a little beyond its last edge."""
    edges = np.array([0.0, 0.1, 0.2])
    assert counts_over(np.array([0.05, np.nan, np.inf, -np.inf, 0.2]), edges).tolist() == [1, 1]
    assert counts_over(np.array([0.2], np.float32), edges).tolist() == [0, 1]
    assert np.float64(np.float32(0.2)) > edges[-1]
    assert counts_over(np.array([np.nan]), np.empty(0)).tolist() == []


def test_the_heights_are_shares_of_each_ones_values() -> None:
    channel, layer = layer_and_channel()
    counts = counts_over(channel, layer.edges)
    grey, filled, line = stairs(channel_histogram_figure(layer, counts, channel_number=2))
    np.testing.assert_allclose(grey, layer.counts / 2000)
    np.testing.assert_allclose(filled, counts / 400)
    np.testing.assert_allclose(line[counts > 0], counts[counts > 0] / 400)
    assert np.isnan(line[counts == 0]).all()


def test_the_legend_names_both_with_their_counts() -> None:
    channel, layer = layer_and_channel()
    figure = channel_histogram_figure(layer, counts_over(channel, layer.edges), channel_number=2)
    assert "channel 2:  400 values" in words(figure)
    assert "layer:  2,000 values" in words(figure)
    assert "channel:  400 values" in words(channel_histogram_figure(layer, counts_over(channel, layer.edges)))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("log", [False, True])
def test_everything_lies_inside_a_figure_of_400_pixels(theme: ThemeName, log: bool) -> None:
    """Six digits, five-digit counts and shares far below one per cent."""
    values = np.append(np.zeros(50_175), -123456.0)
    layer = Histogram(*np.histogram(np.append(values, np.linspace(-9e5, 9e5, 4_000_000)), 64))
    figure = channel_histogram_figure(
        layer, counts_over(values, layer.edges), channel_number=2047, log=log, theme=theme, title="layer4.2.conv3"
    )
    width, height = figure.canvas.get_width_height()
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.texts]
    (axes,) = figure.axes
    low, high = axes.get_ylim()
    ticks = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    boxes += [label.get_window_extent() for place, label in ticks if low <= place <= high]
    assert width == 400
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)


def test_a_constant_layer_and_an_empty_one_can_be_drawn() -> None:
    """C13, C34."""
    constant = summary_of(np.full(9, 7.0)).histogram
    grey, *_ = stairs(channel_histogram_figure(constant, counts_over(np.full(3, 7.0), constant.edges)))
    assert grey.max() == 1.0
    nothing = channel_histogram_figure(Histogram(np.zeros(0, np.int64), np.empty(0)), np.zeros(0, np.int64))
    assert nothing.axes == []
    assert "no finite values" in words(nothing)


def test_a_channel_without_finite_values_lies_flat() -> None:
    channel, layer = layer_and_channel()
    figure = channel_histogram_figure(layer, counts_over(np.full_like(channel, np.nan), layer.edges), log=True)
    grey, filled, line = stairs(figure)
    assert grey.max() == layer.counts.max() / 2000
    assert (filled == filled[0]).all()
    assert np.isnan(line).all()


def test_figures_are_the_same_in_every_thread_and_known_to_nobody() -> None:
    """C18, C19."""
    channel, layer = layer_and_channel()
    counts = counts_over(channel, layer.edges)

    def drawn(number: int) -> bytes:
        return figure_bytes(channel_histogram_figure(layer, counts, channel_number=number % 2))

    with ThreadPoolExecutor(8) as pool:
        pictures = list(pool.map(drawn, range(16)))
    assert pictures == [drawn(number) for number in range(16)]
    assert pictures[0] != pictures[1]
    assert plt.get_fignums() == []


def test_other_bins_are_refused_in_a_sentence() -> None:
    _, layer = layer_and_channel()
    with pytest.raises(ViewError, match="the channel has 3 bins and its layer 10; use counts_over"):
        channel_histogram_figure(layer, np.zeros(3, np.int64))
