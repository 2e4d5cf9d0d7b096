"""The key of a channel figure: a colour bar with numbers, and swatches for what is no level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.views.canvas import FONT
from hookviz.views.labels import MINUS, NO_FINITE, value_text
from hookviz.views.palette import LEVELS, palette

if TYPE_CHECKING:
    from hookviz.views.canvas import Canvas
    from hookviz.views.drawing import Drawing

_LENGTH = 220
_THICKNESS = 10


def draw_colour_bar(canvas: Canvas, drawing: Drawing, *, left: float, top: float) -> None:
    """Put the colour bar of a drawing at a place in pixels, and its legend to the right; booleans need no bar."""
    if drawing.numbers == "boolean":
        _draw_legend(canvas, drawing, left=left, top=top)
        return
    axes = canvas.axes(left, top, _LENGTH, _THICKNESS)
    axes.imshow(palette(drawing.cmap)[None, :LEVELS], extent=(0, 1, 0, 1), aspect="auto", interpolation="nearest")
    ticks = _ticks(drawing)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.set_yticks([])
    for place, label in zip(ticks, axes.get_xticklabels(), strict=True):
        label.set(horizontalalignment={0.0: "left", 1.0: "right"}.get(place, "center"), fontfamily=FONT)
    _draw_legend(canvas, drawing, left=left + _LENGTH + 28, top=top)


def _draw_legend(canvas: Canvas, drawing: Drawing, *, left: float, top: float) -> None:
    for position, entry in enumerate(drawing.legend):
        row, column = divmod(position, 2)
        x, y = left + 110 * column, top + 18 * row
        canvas.swatch(x, y, _THICKNESS, entry.colour)
        words = f"{entry.label.replace('-', MINUS)}  {entry.total:,}"
        canvas.text(x + 16, y + _THICKNESS / 2, words, va="center_baseline")


def _ticks(drawing: Drawing) -> dict[float, str]:
    if drawing.scale == "channel":
        return {0.0: "channel's min", 1.0: "channel's max"}
    low, high = float(drawing.limits.vmin[0]), float(drawing.limits.vmax[0])
    if np.isnan(low):
        return {0.5: NO_FINITE}
    if low == high:
        return {0.5: f"constant {value_text(low, drawing.numbers)}"}
    # Weighted ends: their difference may be too large for a float.
    places = {part: low * (1 - part) + high * part for part in (0.0, 0.5, 1.0)}
    if drawing.numbers == "integer" and not places[0.5].is_integer():
        del places[0.5]
    return {part: value_text(value, drawing.numbers) for part, value in places.items()}
