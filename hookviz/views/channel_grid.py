"""The channels of a layer as a numbered figure, for export and print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.views.canvas import Canvas
from hookviz.views.colour_bar import draw_colour_bar
from hookviz.views.drawing import draw
from hookviz.views.palette import GAP, palette
from hookviz.views.source import original_shape, shape_of
from hookviz.views.theme import theme_colours
from hookviz.views.tile_labels import TileLabels, scale_remarks
from hookviz.views.tiling import arrange, page_channels, page_count, tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.figure import Figure

    from hookviz.types import Scale
    from hookviz.views.drawing import Drawing
    from hookviz.views.source import Maps
    from hookviz.views.theme import Theme, ThemeName
    from hookviz.views.tile_labels import TileLabels, scale_remarks
from hookviz.views.tiling import TileGeometry

_MARGIN = 20
_HEADER = 58
_GAP = 10
_FOOTER = 62
_NARROWEST = 460
_TILE = 112
_STRIP = 32
_LONGEST = 1400
_PIXELS = 16_000_000


@dataclass(frozen=True, slots=True)
class _Zoom:
    """How rows and columns of a map become pixels: only every ``..._stride``-th is kept, and repeated so often."""

    rows: int
    columns: int
    row_stride: int
    column_stride: int

    @property
    def remark(self) -> str:
        strides = {"rows": self.row_stride, "columns": self.column_stride}
        kept = [f"1 of {stride} {axis}" for axis, stride in strides.items() if stride > 1]
        return " and ".join(kept) + " drawn" if kept else ""


def channel_grid_figure(  # noqa: PLR0913 - a picture has this many settings, each with a default and a name at the call
    maps: Maps,
    *,
    scale: Scale = "channel",
    robust: bool = False,
    cmap: str = "viridis",
    order: Sequence[int] | npt.NDArray[np.integer] | None = None,
    page: int = 0,
    per_page: int = 64,
    columns: int | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Figure:
    """One page of channels with their numbers and ranges, a colour bar, and a legend of what is no level of it.

    All tiles are one image in one axes, small maps enlarged by whole factors and nothing smoothed. Above each tile
    stand its channel number and its smallest and largest finite value. Where a map is longer than 1,400
    or a page holds more than 16 million values, only every second (third, ...) row or column is drawn, and the figure
    says so.

    Args:
        maps: Channel maps, or a real (C, H, W) array.
        scale: ``"channel"``, ``"shared"`` or ``"symmetric"``, as for :func:`hookviz.views.mosaic_picture`.
        robust: Limits at the 1st and 99th percentile.
        cmap: A matplotlib colormap.
        order: Channel numbers to show, in this order; None is all, ascending.
        page: Counted from 0.
        per_page: Channels on a full page.
        columns: Tiles in a row; None is at most 8, fewer where they would not fit in 1,460 pixels.
        title: The first line; None is the shape of the tensor.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: A setting, page or channel that does not exist, or maps that are not (C, H, W) of real numbers.
    """
    colours = theme_colours(theme)
    total, height, width = shape_of(maps)
    channels = page_channels(total, order=order, page=page, per_page=per_page)
    drawing = draw(maps, channels, scale=scale, robust=robust, cmap=cmap)
    heading = f"tensor of shape {original_shape(maps)}" if title is None else title
    if drawing.note:
        return _note_figure(heading, drawing.note, colours)
    zoom = _zoom(len(channels), height, width)
    tiles = _zoomed(drawing.entries, zoom)
    labels = TileLabels.of(drawing, channels, tiles.shape[2])
    geometry = arrange(channels, tiles.shape[1] + labels.height, tiles.shape[2], columns=columns, gap=_GAP)
    canvas = Canvas.blank(max(geometry.width, _NARROWEST) + 2 * _MARGIN, geometry.height + _HEADER + _FOOTER, colours)
    canvas.heading(heading)
    pages = page_count(total if order is None else len(order), per_page)
    canvas.text(_MARGIN, 36, "  ·  ".join(_remarks(drawing, zoom, robust, (page, pages))))
    _add_tiles(canvas, tiles, geometry, cmap)
    labels.add_to(canvas, geometry, left=_MARGIN, top=_HEADER)
    draw_colour_bar(canvas, drawing, left=_MARGIN, top=_HEADER + geometry.height + 14)
    return canvas.figure


def _zoom(count: int, height: int, width: int) -> _Zoom:
    row_stride, column_stride = -(-height // _LONGEST), -(-width // _LONGEST)
    pixels = count * (height // row_stride) * (width // column_stride)
    if pixels > _PIXELS:
        more = math.ceil(math.sqrt(pixels / _PIXELS))
        row_stride, column_stride = row_stride * more, column_stride * more
    tall, wide = -(-height // row_stride), -(-width // column_stride)
    if max(tall, wide) > 8 * min(tall, wide):  # strips have no shape to keep, and one pixel is no tile
        return _Zoom(max(1, _STRIP // tall), max(1, -(-_TILE // wide)), row_stride, column_stride)
    both = max(1, -(-_TILE // wide))
    return _Zoom(both, both, row_stride, column_stride)


def _zoomed(entries: npt.NDArray[np.uint8], zoom: _Zoom) -> npt.NDArray[np.uint8]:
    drawn = entries[:, :: zoom.row_stride, :: zoom.column_stride]
    return drawn.repeat(zoom.rows, axis=1).repeat(zoom.columns, axis=2)


def _remarks(drawing: Drawing, zoom: _Zoom, robust: bool, page_of: tuple[int, int]) -> list[str]:
    page, pages = page_of
    return [
        *scale_remarks(drawing, robust=robust),
        *([zoom.remark] if zoom.remark else []),
        *([f"page {page + 1} of {pages}"] if pages > 1 else []),
    ]


def _add_tiles(canvas: Canvas, tiles: npt.NDArray[np.uint8], geometry: TileGeometry, cmap: str) -> None:
    labelled = np.full((len(tiles), geometry.tile_height, geometry.tile_width), GAP, np.uint8)
    labelled[:, geometry.tile_height - tiles.shape[1] :] = tiles
    entries = tile(labelled, geometry, fill=GAP)
    rgba = np.dstack([palette(cmap)[entries], np.where(entries == GAP, 0, 255).astype(np.uint8)])
    axes = canvas.axes(_MARGIN, _HEADER, geometry.width, geometry.height)
    axes.set_axis_off()
    axes.imshow(rgba, interpolation="nearest", aspect="auto", origin="upper")


def _note_figure(heading: str, note: str, theme: Theme) -> Figure:
    canvas = Canvas.blank(_NARROWEST + 2 * _MARGIN, 150, theme)
    canvas.heading(heading)
    canvas.text(canvas.width / 2, 85, note, ha="center", va="center", fontsize=9)
    return canvas.figure
