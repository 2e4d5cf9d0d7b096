from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from matplotlib.patches import StepPatch

from hookviz.errors import ViewError
from hookviz.statistics import summarize
from hookviz.types import Summary
from hookviz.views import SignedLogAxis, figure_bytes, ridge_figure
from tests.views.summaries import summary_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Layers = list[tuple[str, Summary]]


def layers(count: int) -> Layers:
    """Layers whose spread grows by a tenth each time."""
    draw = np.random.default_rng(3).normal
    return [(f"block.{number}.conv", summary_of(draw(0, 1.1**number, 2_000), 64)) for number in range(count)]


def curves(figure: Figure) -> list[StepPatch]:
    (plot,) = figure.axes
    return [patch for patch in plot.patches if isinstance(patch, StepPatch)]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def colour_of(figure: Figure, text: str) -> Any:
    return next(one.get_color() for one in figure.texts if one.get_text() == text)


def test_every_curve_is_the_histogram_itself() -> None:
    rows = layers(12)
    figure = ridge_figure(rows)
    axis = SignedLogAxis.of_summaries(summary for _, summary in rows)
    assert len(curves(figure)) == 12
    for curve, (_, summary) in zip(curves(figure), rows, strict=True):
        counts, edges, _ = curve.get_data()
        assert np.array_equal(counts, summary.histogram.counts)
        assert np.sinh(edges) * axis.linear == pytest.approx(summary.histogram.edges, rel=1e-12)


def test_layers_stand_in_order_the_first_on_top_each_in_its_own_row() -> None:
    figure = ridge_figure(layers(5))
    figure.canvas.draw()
    (plot,) = figure.axes
    to_data = plot.transData.inverted()
    rows = []
    for curve in curves(figure):
        corners = curve.get_transform().transform(curve.get_path().vertices)
        heights = to_data.transform(corners)[:, 1]
        rows.append((round(heights.min(), 6), round(heights.max(), 6)))
    assert rows == [(4, 4.92), (3, 3.92), (2, 2.92), (1, 1.92), (0, 0.92)]
    assert plot.get_ylim() == (0, 5)
    names = [text for text in words(figure) if text.startswith("block")]
    assert names == [f"block.{number}.conv" for number in range(5)]
    places = [text.get_position()[1] for text in figure.texts if text.get_text() in names]
    assert places == sorted(places, reverse=True)


def test_the_axis_is_shared_has_zero_and_says_what_it_is() -> None:
    rows = [("small", summary_of(np.array([-0.2, 0.1, 0.3]))), ("large", summary_of(np.array([-900.0, 5.0, 2000.0])))]
    figure = ridge_figure(rows)
    (plot,) = figure.axes
    figure.canvas.draw()
    labels = [label.get_text() for label in plot.get_xticklabels()]
    assert labels == ["−100", "−10", "−1", "−0.1", "0", "0.1", "1", "10", "100", "1000"]
    assert "linear up to ±0.1, logarithmic beyond" in words(figure)[1]
    low, high = plot.get_xlim()
    assert low < np.arcsinh(-9000) < np.arcsinh(20000) < high


def test_another_figure_can_have_the_same_axis() -> None:
    rows = layers(8)
    axis = SignedLogAxis.of_summaries(summary for _, summary in rows)
    limits = [ridge_figure(part, axis=axis).axes[0].get_xlim() for part in (rows[:4], rows[4:], rows)]
    assert limits[0] == limits[1] == limits[2]


def test_values_that_are_not_finite_are_counted_in_words_and_mark_the_row() -> None:
    rows = [
        ("fine", summary_of(np.array([1.0, 2.0]))),
        ("broken", summary_of(np.array([1.0, np.nan, np.nan, np.inf]))),
        ("lost", summary_of(np.array([np.nan, -np.inf]))),
        ("nothing", summary_of(np.array([]))),
        ("same", summary_of(np.full(9, 7.0))),
    ]
    figure = ridge_figure(rows)
    assert words(figure)[2:] == [
        *("fine", "1 … 2"),
        *("broken", "2 NaN, 1 +Inf"),
        *("lost", "no finite values, 1 NaN, 1 −Inf"),
        *("nothing", "empty"),
        *("same", "constant 7"),
    ]
    assert len(curves(figure)) == 3
    assert colour_of(figure, "broken") == colour_of(figure, "lost") == "#b4007d"
    assert colour_of(figure, "fine") == colour_of(figure, "same") == "#1e293b"


@pytest.mark.parametrize("count", [1, 150])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_one_layer_and_many_are_readable_rows(count: int, theme: Any) -> None:
    figure = ridge_figure(layers(count), theme=theme)
    figure.canvas.draw()
    tall = figure.axes[0].get_window_extent().height / count
    assert tall >= 12
    boxes = [text.get_window_extent() for text in figure.texts[2:]]
    assert all(box.height <= tall + 1 for box in boxes)
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)


@pytest.mark.parametrize(
    "values",
    [
        np.array([-1.7e308, 1.7e308]),
        np.array([5e-324, 0.0]),
        np.array([1e30, 1e30]),
        np.zeros(4),
        np.array([-1e-40, 1e300]),
    ],
    ids=["ends of float64", "smallest", "large constant", "zeros", "both"],
)
def test_any_magnitude_can_be_drawn(values: Any) -> None:
    rows = [("extreme", summarize(torch.from_numpy(values))), ("usual", summary_of(np.array([-1.0, 0.5, 1.0])))]
    figure = ridge_figure(rows)
    assert figure_bytes(figure).startswith(b"\x89PNG")
    for curve in curves(figure):
        assert np.isfinite(curve.get_data()[1]).all()


def test_no_words_are_cut_off() -> None:
    lost = np.full(2_000_000, np.nan)
    lost[:900_000], lost[900_000:1_000_000] = np.inf, -np.inf
    rows = [("a" * 80, summary_of(lost)), ("b", summary_of(np.array([-1.234e-30, 1.234e30])))]
    figure = ridge_figure(rows)
    boxes = [text.get_window_extent() for text in figure.texts]
    assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)
    plot = figure.axes[0].get_window_extent()
    assert all(box.x1 < plot.x0 or box.x0 > plot.x1 for box in boxes[2:])


def test_names_are_words_not_formulas_and_long_ones_keep_their_end() -> None:
    rows = [("$x$", layers(1)[0][1]), ("stage." * 12 + "conv", layers(1)[0][1])]
    figure = ridge_figure(rows)
    assert words(figure)[2] == "$x$"
    assert words(figure)[4] == "…" + ("stage." * 12 + "conv")[-31:]
    assert figure_bytes(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_same_layers_give_the_same_bytes(kind: Any) -> None:
    assert figure_bytes(ridge_figure(layers(3)), kind) == figure_bytes(ridge_figure(layers(3)), kind)


def test_no_layers_are_refused() -> None:
    with pytest.raises(ViewError, match="at least one layer"):
        ridge_figure([])
