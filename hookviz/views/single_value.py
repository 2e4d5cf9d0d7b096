"""A tensor of one value: a number in large type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import ViewError
from hookviz.views.canvas import Canvas
from hookviz.views.labels import MINUS, value_text
from hookviz.views.palette import CLASS_NAMES
from hookviz.views.source import numbers, original_shape, read, shape_of
from hookviz.views.theme import theme_colours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hookviz.views.source import Maps
    from hookviz.views.theme import ThemeName

_FLOAT32_DIGITS = 7


def value_figure(values: Maps, *, title: str | None = None, theme: ThemeName = "light") -> Figure:
    """One number in large type.

    Args:
        values: Channel maps, or a real array, of a single value.
        title: The first line; None is the shape of the tensor.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: More or less than one value, or a theme that does not exist.
    """
    canvas = Canvas.blank(460, 130, theme_colours(theme))
    canvas.heading(f"tensor of shape {original_shape(values)}" if title is None else title)
    canvas.text(20, 62, single_value(values), fontsize=26, color=canvas.theme.ink)
    return canvas.figure


def single_value(values: Maps) -> str:
    """The one number of such maps in words, with every digit that a float32 has.

    Raises:
        ViewError: More or less than one value.
    """
    if isinstance(values, np.ndarray) and values.size == 1:
        values = values.reshape(1, 1, 1)
    if shape_of(values) != (1, 1, 1):
        raise ViewError(f"one value makes a number, got maps of shape {shape_of(values)}")
    source = read(values, slice(None))
    if source.classes is not None and source.classes.item():
        return CLASS_NAMES[source.classes.item()].replace("-", MINUS)
    return value_text(float(source.values.item()), numbers(values), _FLOAT32_DIGITS)
