"""Sequences, one row of values for each channel, as small line charts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import ViewError
from hookviz.views.canvas import Canvas
from hookviz.views.drawing import draw
from hookviz.views.envelope import envelope
from hookviz.views.labels import MINUS
from hookviz.views.palette import CONSTANT, css
from hookviz.views.source import original_shape, read, shape_of
from hookviz.views.theme import theme_colours
from hookviz.views.tile_labels import TileLabels, scale_remarks
from hookviz.views.tiling import TileGeometry, arrange, page_channels, page_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.types import Scale
    from hookviz.views.drawing import Drawing
    from hookviz.views.scaling import Limits
    from hookviz.views.source import Maps, Source
    from hookviz.views.theme import ThemeName

_MARGIN, _HEADER, _FOOTER, _GAP = 20, 58, 34, 12
_FEW = 16
_FEW_WIDE, _MANY_WIDE, _TALL = 216, 118, 56
_POINTS_A_PIXEL = 2
_MARKED = 40
"""Positions that are so few have a dot each: a value between two that are not finite shows too."""


def sequence_figure(  # noqa: PLR0913 - a picture has this many settings, each with a default and a name at the call
    maps: Maps,
    *,
    scale: Scale = "channel",
    robust: bool = False,
    order: Sequence[int] | npt.NDArray[np.integer] | None = None,
    page: int = 0,
    per_page: int = 64,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """One page of sequences, each a line from its first position to its last, and a hair line at zero.

    NaN and infinite values break a line. Of sequences that are longer than two positions a pixel, the smallest and
    largest of several neighbours are joined, and the figure says so.

    Args:
        maps: Channel maps (C, 1, L), or a real array of that shape.
        scale: How high the lines go: ``"channel"`` has each between its own ends, ``"shared"`` and ``"symmetric"`` all
            between the same, as for :func:`hookviz.views.mosaic_picture`.
        robust: Limits at the 1st and 99th percentile.
        order: Channel numbers to show, in this order; None is all, ascending.
        page: Counted from 0.
        per_page: Channels on a full page.
        title: The first line; None is the shape of the tensor.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: Maps of more than one row, or a setting, page or channel that does not exist.
    """
    look = theme_colours(theme)
    total, rows, length = shape_of(maps)
    if rows != 1:
        raise ViewError(f"a sequence has one row for each channel, got maps of {rows}×{length}")
    channels = page_channels(total, order=order, page=page, per_page=per_page)
    drawing = draw(maps, channels, scale=scale, robust=robust, cmap="viridis")
    heading = f"tensor of shape {original_shape(maps)}" if title is None else title
    if drawing.note:
        canvas = Canvas.blank(460, 120, look)
        canvas.heading(heading)
        canvas.text(_MARGIN, 60, drawing.note, fontsize=9)
        return canvas.figure
    wide = _FEW_WIDE if len(channels) <= _FEW else _MANY_WIDE
    labels = TileLabels.of(drawing, channels, wide)
    columns = 4 if wide == _FEW_WIDE else 8
    geometry = arrange(channels, _TALL + labels.height, wide, columns=columns, gap=_GAP)
    canvas = Canvas.blank(max(geometry.width, 460) + 2 * _MARGIN, _HEADER + geometry.height + _FOOTER, look)
    canvas.heading(heading)
    pages = page_count(total if order is None else len(order), per_page)
    remarks = [*scale_remarks(drawing, robust=robust), *_remarks(length, wide, page, pages)]
    canvas.text(_MARGIN, 36, "  ·  ".join(remarks))
    _draw_lines(canvas, read(maps, channels), drawing.limits, geometry, labels.height)
    labels.add_to(canvas, geometry, left=_MARGIN, top=_HEADER)
    _count_not_finite(canvas, drawing, top=_HEADER + geometry.height + 12)
    return canvas.figure


def _remarks(length: int, wide: int, page: int, pages: int) -> list[str]:
    remarks = [f"positions 0 to {length - 1:,} from left to right"]
    step = -(-length // (_POINTS_A_PIXEL * wide))
    if step > 1:
        remarks.append(f"smallest and largest of every {step} positions")
    if pages > 1:
        remarks.append(f"page {page + 1} of {pages}")
    return remarks


def _draw_lines(canvas: Canvas, source: Source, limits: Limits, geometry: TileGeometry, label_height: int) -> None:
    """All lines as one, broken between the channels: an axes for each would take seconds."""
    axes = canvas.axes(_MARGIN, _HEADER, geometry.width, geometry.height)
    axes.set_axis_off()
    axes.set_xlim(0, geometry.width)
    axes.set_ylim(geometry.height, 0)
    corners = np.array([geometry.corner(position) for position in range(len(source.values))], float)
    left, top = corners[:, 0, None], corners[:, 1, None] + label_height
    axes.hlines(top + _TALL, left, left + geometry.tile_width, color=canvas.theme.line, linewidth=0.6, clip_on=False)
    zero = _heights(np.zeros((len(left), 1)), limits, clip=False)
    inside = ((zero > 0) & (zero < 1))[:, 0]
    levels, begin = (top + _TALL * (1 - zero))[inside], left[inside]
    axes.hlines(levels, begin, begin + geometry.tile_width, color=canvas.theme.line, linewidth=0.6)
    across, upward = _points(source, limits, geometry.tile_width)
    x, y = left + geometry.tile_width * across, top + _TALL * (1 - upward)
    between = np.full((len(left), 1), np.nan)
    marker = "o" if source.values.shape[2] <= _MARKED else ""
    lines = (np.hstack([np.broadcast_to(part, upward.shape), between]).ravel() for part in (x, y))
    axes.plot(*lines, color=canvas.theme.accent, linewidth=1.0, marker=marker, markersize=2.2, clip_on=False)


def _points(source: Source, limits: Limits, wide: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Places along the sequence (n,) and heights (channels, n), both 0 to 1, NaN where a line is broken."""
    values = source.values[:, 0].astype(np.float64)
    if source.classes is not None:
        values[source.classes[:, 0] != 0] = np.nan
    low, high, step = envelope(values, _POINTS_A_PIXEL * wide)
    joined = low if step == 1 else np.stack([low, high], axis=-1).reshape(len(low), -1)
    count = low.shape[1]
    places = np.arange(count) / max(1, count - 1) if count > 1 else np.array([0.5])
    return places if step == 1 else places.repeat(2), _heights(joined, limits, clip=True)


def _heights(values: npt.NDArray[np.float64], limits: Limits, *, clip: bool) -> npt.NDArray[np.float64]:
    """0 at the lower limit and 1 at the upper; a constant runs through the middle. Halves: a range may overflow."""
    low, high = limits.vmin[:, None] / 2, limits.vmax[:, None] / 2
    ranged = high > low
    place = (values / 2 - np.where(ranged, low, 0.0)) / np.where(ranged, high - low, 1.0)
    place = np.where(ranged, place, np.where(np.isnan(values), np.nan, 0.5))
    return np.clip(place, 0.0, 1.0) if clip else place


def _count_not_finite(canvas: Canvas, drawing: Drawing, top: float) -> None:
    constant = css(drawing.cmap, CONSTANT)
    counts = [entry for entry in drawing.legend if entry.colour != constant and entry.label not in {"false", "true"}]
    words = "  ·  ".join(f"{entry.label.replace('-', MINUS)} {entry.total:,}" for entry in counts)
    canvas.text(_MARGIN, top, words, fontweight="bold", color=canvas.theme.warning)
