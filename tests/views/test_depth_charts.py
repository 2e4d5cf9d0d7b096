from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import (
    ChannelHealth,
    SignedLogAxis,
    channel_health_figure,
    figure_bytes,
    likeness_by_depth_figure,
    share_histogram_figure,
    spread_by_depth_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAN = float("nan")


def bars(figure: Figure) -> Any:
    """(left, bottom, width, height) of each."""
    (plot,) = figure.axes
    return [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in plot.patches]  # type: ignore[attr-defined]


def points(figure: Figure, number: int) -> Any:
    line = figure.axes[0].lines[number]
    return np.column_stack([np.asarray(line.get_xdata()), np.asarray(line.get_ydata())])


def test_means_lie_on_the_line_and_bands_reach_one_deviation_to_both_sides() -> None:
    means, deviations = np.array([0.5, -3.0, 40.0]), np.array([1.0, 2.0, 30.0])
    figure = spread_by_depth_figure(means, deviations)
    assert np.sinh(points(figure, 0)[:, 1]) == pytest.approx(means)  # linear up to 1, the power of ten below 2
    for number, (left, bottom, width, height) in enumerate(bars(figure)):
        assert left + width / 2 == pytest.approx(number + 1)
        ends = np.sinh([bottom, bottom + height])
        assert ends == pytest.approx([means[number] - deviations[number], means[number] + deviations[number]])


def test_a_layer_without_a_mean_is_a_gap_with_a_cross() -> None:
    figure = spread_by_depth_figure(np.array([1.0, NAN, 2.0]), np.array([1.0, NAN, 1.0]))
    assert points(figure, 1).tolist() == [[2, 0]]
    assert np.isnan(points(figure, 0)[1, 1])
    assert figure_bytes(figure).startswith(b"\x89PNG")


def test_channels_are_stacked_as_shares_of_their_layer() -> None:
    figure = channel_health_figure([ChannelHealth(8, 2, 1, 1), None, ChannelHealth(4, 0, 0, 0)])
    heights = np.array([height for *_, height in bars(figure)]).reshape(4, 3)
    assert heights.tolist() == [[0.25, 0, 0], [0.125, 0, 0], [0.125, 0, 0], [0.5, 0, 1]]
    floors = np.array([bottom for _, bottom, *_ in bars(figure)]).reshape(4, 3)
    assert floors[:, 0].tolist() == [0, 0.25, 0.375, 0.5]
    assert [text.get_text() for text in figure.texts[2:]] == ["active", "duplicated", "constant", "dead"]


def test_likeness_goes_from_0_to_1_and_what_is_missing_is_a_cross() -> None:
    figure = likeness_by_depth_figure(np.array([1.0, NAN, 0.25, -0.1]), places=np.array([1, 4, 5, 9]))
    assert points(figure, 0).tolist() == [[1, 1], [5, 0.25], [9, 0]]
    assert points(figure, 1).tolist() == [[4, 0]]
    assert figure.axes[0].get_ylim() == (0, 1.04)


def test_shares_are_counted_in_twenty_bins() -> None:
    figure = share_histogram_figure(np.array([0.0, 0.04, 0.5, 0.999, 1.0]), title="answers", label="probability")
    (stairs,) = figure.axes[0].patches
    counts, edges, _ = stairs.get_data()  # type: ignore[attr-defined]
    assert counts.tolist() == [2, *[0] * 9, 1, *[0] * 8, 2]
    assert edges == pytest.approx(np.arange(21) / 20)
    with pytest.raises(ViewError, match="from 0 to 1"):
        share_histogram_figure(np.array([1.5]), title="", label="")


def test_the_axis_puts_zero_at_0_and_takes_any_magnitude() -> None:
    axis = SignedLogAxis.around([-50.0, 700.0], [0.02, 3.0, 40.0])
    assert (axis.linear, axis.low, axis.high) == (1.0, -50.0, 700.0)
    assert axis.place(0.0) == 0
    assert axis.ticks() == [-10, -1, 0, 1, 10, 100]
    assert SignedLogAxis.around([], []).ticks() == [-1, 0, 1]
    huge = SignedLogAxis.around([-1.7e308, 1e-300], [1e-300])
    assert np.isfinite(huge.place(np.array([-1.7e308, 1.7e308]))).all()
    assert len(huge.ticks()) <= 6


def test_ends_of_float64_are_drawn() -> None:
    figure = spread_by_depth_figure(np.array([1.7e308, 0.0]), np.array([1.7e308, np.inf]))
    assert figure_bytes(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("count", [1, 150])
def test_one_layer_and_many_can_be_drawn(theme: Any, count: int) -> None:
    values = np.linspace(0, 1, count)
    figures = [
        spread_by_depth_figure(values, values, theme=theme),
        channel_health_figure([ChannelHealth(10, 1, 2, 3)] * count, theme=theme),
        likeness_by_depth_figure(values, theme=theme),
        share_histogram_figure(values, title="x", label="y", theme=theme),
    ]
    for figure in figures:
        first = figure_bytes(figure, "svg")
        assert first.startswith(b"<?xml")
        assert figure_bytes(figure, "svg") == first


def test_nothing_is_refused() -> None:
    for draw in (
        spread_by_depth_figure,
        lambda one, _: channel_health_figure(one),
        lambda one, _: likeness_by_depth_figure(one),
    ):
        with pytest.raises(ViewError, match="at least one layer"):
            draw(np.zeros(0), np.zeros(0))
    with pytest.raises(ViewError, match="as many deviations"):
        spread_by_depth_figure(np.zeros(2), np.zeros(1))
