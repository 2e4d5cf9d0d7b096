"""Where each tile of a mosaic lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import ViewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

DEFAULT_COLUMNS = 8
MAXIMUM_WIDTH = 1460
"""Pixels: how wide a mosaic with default columns may get, as wide as the page shows it."""


@dataclass(frozen=True, slots=True)
class TileGeometry:
    """A grid of equal tiles, all in pixels, with a gap between neighbours and none around the edge.

    ``channels`` has the channel number of each tile in reading order; the last row may be short.
    """

    columns: int
    rows: int
    tile_height: int
    tile_width: int
    gap: int
    channels: tuple[int, ...]

    @property
    def width(self) -> int:
        """Of the whole picture."""
        return self.columns * (self.tile_width + self.gap) - self.gap

    @property
    def height(self) -> int:
        """Of the whole picture."""
        return self.rows * (self.tile_height + self.gap) - self.gap

    def corner(self, position: int) -> tuple[int, int]:
        """(left, top) of the tile at a position in reading order."""
        row, column = divmod(position, self.columns)
        return column * (self.tile_width + self.gap), row * (self.tile_height + self.gap)


def page_count(channels: int, per_page: int) -> int:
    """How many pages hold so many channels; an empty layer has one page, which says so."""
    if per_page < 1:
        raise ViewError(f"a page needs at least 1 channel, got per_page={per_page}")
    return max(1, -(-channels // per_page))


def page_channels(
    channels: int, *, order: Sequence[int] | npt.NDArray[np.integer] | None, page: int, per_page: int
) -> npt.NDArray[np.intp]:
    """The channel numbers on one page, in reading order.

    Args:
        channels: How many there are.
        order: Channel numbers in the order to show them, not necessarily all; None is 0, 1, 2, ...
        page: Counted from 0.
        per_page: Channels on a full page.

    Raises:
        ViewError: A page or a channel that does not exist.
    """
    listed = np.arange(channels, dtype=np.intp) if order is None else _checked_order(order, channels)
    pages = page_count(len(listed), per_page)
    if not 0 <= page < pages:
        raise ViewError(f"no page {page}; {len(listed)} channels with {per_page} a page have pages 0 to {pages - 1}")
    return listed[page * per_page : (page + 1) * per_page]


def default_columns(tiles: int, tile_width: int, gap: int) -> int:
    """At most 8, no more than there are tiles, and fewer where the picture would be wider than 1,460 pixels."""
    fitting = max(1, (MAXIMUM_WIDTH + gap) // (tile_width + gap))
    return max(1, min(DEFAULT_COLUMNS, tiles, fitting))


def arrange(
    channels: npt.NDArray[np.intp], tile_height: int, tile_width: int, *, columns: int | None, gap: int
) -> TileGeometry:
    """Lay one page of channels out as a grid; ``columns=None`` is :func:`default_columns`.

    Raises:
        ViewError: A grid without columns, or with a negative gap.
    """
    if gap < 0:
        raise ViewError(f"the gap between tiles is 0 pixels or more, got {gap}")
    if columns is not None and columns < 1:
        raise ViewError(f"a mosaic needs at least 1 column, got {columns}")
    tiles = len(channels)
    across = default_columns(tiles, tile_width, gap) if columns is None else min(columns, max(1, tiles))
    rows = max(1, -(-tiles // across))
    return TileGeometry(across, rows, tile_height, tile_width, gap, tuple(channels.tolist()))


def tile(tiles: npt.NDArray[np.uint8], geometry: TileGeometry, *, fill: int) -> npt.NDArray[np.uint8]:
    """Place (n, tile_height, tile_width) into one (height, width) array, with ``fill`` between and after them."""
    cell_height, cell_width = geometry.tile_height + geometry.gap, geometry.tile_width + geometry.gap
    canvas = np.full((geometry.rows, cell_height, geometry.columns, cell_width), fill, np.uint8)
    cells = canvas.transpose(0, 2, 1, 3)[:, :, : geometry.tile_height, : geometry.tile_width]
    full_rows, rest = divmod(len(tiles), geometry.columns)
    whole = full_rows * geometry.columns
    cells[:full_rows] = tiles[:whole].reshape(full_rows, geometry.columns, *tiles.shape[1:])
    if rest:
        cells[full_rows, :rest] = tiles[whole:]
    picture = canvas.reshape(geometry.rows * cell_height, geometry.columns * cell_width)
    return picture[: geometry.height, : geometry.width]


def _checked_order(order: Sequence[int] | npt.NDArray[np.integer], channels: int) -> npt.NDArray[np.intp]:
    listed = np.asarray(order)
    if listed.size == 0:
        return np.empty(0, np.intp)
    if listed.ndim != 1 or listed.dtype.kind not in "iu":
        raise ViewError("order is a flat list of channel numbers")
    outside = listed[(listed < 0) | (listed >= channels)]
    if outside.size:
        raise ViewError(f"no channel {outside[0]}; there are {channels}, numbered from 0")
    return listed.astype(np.intp)
