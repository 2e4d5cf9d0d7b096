"""A vector, one value for each channel, as a chart of bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from hookviz.errors import ViewError
from hookviz.types import ChannelMaps
from hookviz.views.canvas import FONT, Canvas
from hookviz.views.envelope import envelope
from hookviz.views.labels import MINUS, NO_FINITE, value_text
from hookviz.views.palette import CLASS_NAMES
from hookviz.views.source import numbers, original_shape, read, shape_of
from hookviz.views.theme import theme_colours
from hookviz.views.tiling import page_channels
from hookviz.views.value_axis import ValueAxis

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hookviz.views.labels import Numbers
    from hookviz.views.source import Maps
    from hookviz.views.theme import Theme, ThemeName

_WIDTH = 720
_MARGIN, _LEFT, _RIGHT, _TOP = 20, 64, 24, 88
_PLOT_WIDTH, _PLOT_HEIGHT = _WIDTH - _LEFT - _RIGHT, 190
_AXIS, _LINE, _BOTTOM = 48, 17, 10
_MOST_BARS = _PLOT_WIDTH // 2
_APART = 64
"""So many bars stand apart; more of them touch."""
_LARGEST = 5
_FONT_SIZE = 8.5


@dataclass(frozen=True, slots=True, eq=False)
class _Vector:
    """The channels in the order they are drawn; ``values`` is float64, NaN where ``not_finite`` counts one."""

    channels: npt.NDArray[np.intp]
    values: npt.NDArray[np.float64]
    not_finite: dict[str, int]
    numbers: Numbers
    shows: str
    names: Sequence[str] | None

    @property
    def largest(self) -> npt.NDArray[np.intp]:
        """Places of the five largest, from the largest down; of booleans none stands out."""
        if self.numbers == "boolean":
            return np.empty(0, np.intp)
        places = np.argsort(-self.values, kind="stable")[:_LARGEST]
        return places[~np.isnan(self.values[places])]

    @property
    def remarks(self) -> list[str]:
        remarks = [] if self.shows == "value" else [self.shows]
        remarks.append(f"{len(self.values):,} values")
        if self.numbers == "boolean":
            remarks.append(f"true {int(np.count_nonzero(self.values)):,}")
        elif not np.isnan(self.values).all():
            low, high = (value_text(f(self.values), self.numbers) for f in (np.nanmin, np.nanmax))
            remarks.append(f"{low} to {high}")
        if len(self.values) > _MOST_BARS:
            spanned = envelope(self.values, _MOST_BARS).step
            remarks.append(f"a bar spans {spanned} channels, from the smallest to the largest")
        return remarks


def vector_figure(
    values: Maps,
    *,
    names: Sequence[str] | None = None,
    order: Sequence[int] | npt.NDArray[np.integer] | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """A bar from zero for each channel's one value, and the five largest in numbers.

    NaN and infinite values have no bar; they are counted in words. Of more than 316 channels a bar spans several, from
    the smallest to the largest of them, and the figure says so.

    Args:
        values: Channel maps of 1×1, or a real array (C, 1, 1) or (C,).
        names: What the channels are called, such as a classifier's classes; they stand beside the largest.
        order: Channel numbers to show, in this order; None is all, ascending.
        title: The first line; None is the shape of the tensor.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: Not one value for each channel, or not as many names, or a channel or theme that does not exist.
    """
    vector, look = _read(values, names, order), theme_colours(theme)
    rows = _largest_in_words(vector)
    canvas = Canvas.blank(_WIDTH, _TOP + _PLOT_HEIGHT + _AXIS + _LINE * len(rows) + _BOTTOM, look)
    canvas.heading(f"tensor of shape {original_shape(values)}" if title is None else title)
    canvas.text(_MARGIN, 38, "  ·  ".join(vector.remarks), fontsize=_FONT_SIZE)
    counts = "  ·  ".join(f"{name} {count:,}" for name, count in vector.not_finite.items())
    canvas.text(_MARGIN, 56, counts, fontweight="bold", color=look.warning)
    if np.isnan(vector.values).all():
        text = NO_FINITE if len(vector.values) else "empty"
        canvas.text(_WIDTH / 2, _TOP + _PLOT_HEIGHT / 2, text, ha="center", va="center", fontsize=10)
        return canvas.figure
    axes = canvas.axes(_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT)
    _draw_bars(axes, vector, look)
    _number_channels(axes, vector.channels, look, sorted_=order is not None)
    for place, words in enumerate(rows):
        canvas.text(_LEFT, _TOP + _PLOT_HEIGHT + _AXIS + _LINE * place, words, color=look.ink, fontsize=_FONT_SIZE)
    return canvas.figure


def _read(values: Maps, names: Sequence[str] | None, order: Sequence[int] | npt.NDArray[np.integer] | None) -> _Vector:
    maps = values if isinstance(values, ChannelMaps) or np.ndim(values) != 1 else np.asarray(values)[:, None, None]
    count, height, width = shape_of(maps)
    if height * width != 1:
        raise ViewError(f"a vector has one value for each channel, got maps of {height}×{width}")
    if names is not None and len(names) != count:
        raise ViewError(f"{count} channels need {count} names, got {len(names)}")
    channels = page_channels(count, order=order, page=0, per_page=max(1, count))
    source = read(maps, channels)
    drawn = source.values.reshape(-1).astype(np.float64)
    counts = {}
    if source.classes is not None:
        drawn[source.classes.reshape(-1) != 0] = np.nan
        counts = {name: int(np.count_nonzero(source.classes == entry)) for entry, name in CLASS_NAMES.items()}
    return _Vector(
        channels=channels,
        values=drawn,
        not_finite={name.replace("-", MINUS): count for name, count in counts.items() if count},
        numbers=numbers(maps),
        shows=maps.shows if isinstance(maps, ChannelMaps) else "value",
        names=names,
    )


def _largest_in_words(vector: _Vector) -> list[str]:
    """One line for all of them, or where they have names one for each."""
    channels, values = vector.channels[vector.largest], vector.values[vector.largest]
    texts = [value_text(value, vector.numbers) for value in values]
    if vector.names is not None:
        return [f"{channel}  {vector.names[channel]}  {text}" for channel, text in zip(channels, texts, strict=True)]
    pairs = "   ·   ".join(f"{channel}: {text}" for channel, text in zip(channels, texts, strict=True))
    return [f"largest channels   {pairs}"] if len(channels) else []


def _draw_bars(axes: Axes, vector: _Vector, look: Theme) -> None:
    low, high, step = envelope(vector.values, _MOST_BARS)
    upright = ValueAxis.around([np.array([min(0.0, float(np.nanmin(low))), max(0.0, float(np.nanmax(high)))])])
    upright.apply_upright(axes, vector.numbers, look)
    edges = np.append(np.arange(len(low)) * step, len(vector.values)) - 0.5
    foot, head = (upright.place(np.nan_to_num(part, nan=0.0)) for part in (np.fmin(low, 0), np.fmax(high, 0)))
    if len(low) <= _APART:
        axes.bar(np.arange(len(low)), head - foot, 0.8, bottom=foot, color=look.bars, linewidth=0)
    else:
        axes.stairs(head, edges, baseline=foot, fill=True, color=look.bars, linewidth=0)
    axes.axhline(0, color=look.line, linewidth=0.8)
    axes.plot(
        vector.largest,
        upright.place(vector.values[vector.largest]),
        "o",
        color=look.accent,
        markersize=3.5,
        linewidth=0,
    )
    if upright.unit:
        axes.set_title(upright.unit.strip(" ()"), loc="left", fontsize=8, color=look.quiet, fontfamily=FONT, pad=3)
    axes.set_xlim(edges[0], edges[-1])


def _number_channels(axes: Axes, channels: npt.NDArray[np.intp], look: Theme, *, sorted_: bool) -> None:
    words = "channel, in the order chosen" if sorted_ else "channel"
    axes.set_xlabel(words, color=look.quiet, fontsize=8, fontfamily=FONT)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: _channel_at(channels, place)))


def _channel_at(channels: npt.NDArray[np.intp], place: float) -> str:
    return str(channels[int(place)]) if 0 <= place < len(channels) and place == int(place) else ""
