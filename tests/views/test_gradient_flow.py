from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import figure_bytes, gradient_flow_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Row:
    name: str
    verdict: str
    mean: float | None = None
    max: float | None = None


ROWS = [
    Row("conv1", "vanishing", 1e-9, 1e-7),
    Row("conv2", "frozen"),
    Row("fc1", "vanishing", 0.0, 0.0),
    Row("fc2", "fine", 2e-3, 0.5),
]


def drawn(rows: list[Row] = ROWS) -> Axes:
    (axes,) = gradient_flow_figure(rows).axes
    return axes


def test_the_line_is_the_means_and_the_bars_reach_the_largest() -> None:
    axes = drawn()
    means: Any = axes.lines[0].get_ydata()
    assert np.array_equal(means, [1e-9, np.nan, np.nan, 2e-3], equal_nan=True)
    tops = [bar.get_y() + bar.get_height() for bar in axes.patches]  # type: ignore[attr-defined]
    assert tops[0] == pytest.approx(1e-7)
    assert tops[3] == pytest.approx(0.5)
    assert axes.get_yscale() == "log"
    assert axes.get_ylim() == pytest.approx((1e-10, 1.0))


def test_zero_and_missing_gradients_are_told_apart() -> None:
    """C48: a frozen layer has its row and its word, and is no zero."""
    axes = drawn()
    zeros: Any = axes.lines[1].get_xdata()
    assert list(zeros) == [2]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["conv1: vanishing", "conv2: frozen", "fc1: vanishing", "fc2"]


@pytest.mark.parametrize(
    "rows",
    [
        [Row("a", "frozen"), Row("b", "unused")],
        [Row("a", "vanishing", 0.0, 0.0)],
        [Row("a", "exploding", 1e300, 1.7e308), Row("b", "vanishing", 5e-324, 5e-324)],
        [Row(f"features.{n}.$x$", "fine", 1.0, 2.0) for n in range(200)],
    ],
    ids=["none", "zero", "extremes", "many"],
)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_anything_can_be_drawn(rows: list[Row], theme: Any) -> None:
    assert figure_bytes(gradient_flow_figure(rows, theme=theme)).startswith(b"\x89PNG")


def test_nothing_is_refused() -> None:
    with pytest.raises(ViewError, match="at least one layer"):
        gradient_flow_figure([])
