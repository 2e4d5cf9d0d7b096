"""The fast picture: many channels as one palette PNG, one pixel for each value."""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from hookviz.views.drawing import LegendEntry, draw
from hookviz.views.palette import CLASS_NAMES, GAP, css, palette
from hookviz.views.source import shape_of
from hookviz.views.tiling import TileGeometry, arrange, page_channels, tile

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hookviz.types import Scale
    from hookviz.views.labels import Numbers
    from hookviz.views.scaling import Limits
    from hookviz.views.source import Maps

_EMPTY_TILE = 8


@dataclass(frozen=True, slots=True, eq=False)
class Mosaic:
    """A page of channels as PNG bytes, and what is needed to label it.

    ``limits`` has ``vmin`` and ``vmax``, the values of the first and the last colour, and ``extremes`` the smallest and
    the largest finite value, both as float64 arrays in the order of ``geometry.channels``, NaN for a channel without a
    finite value. ``scale`` is the scale as used: ``"shared"`` where ``"channel"`` was asked for 1×1 maps, of which each
    would be constant. ``clipped`` counts finite values outside robust limits, drawn in the end colours. ``legend``
    names every class present that is no level of the colormap, and of booleans both colours. ``note`` says why there is
    nothing to see, else ``""``. ``numbers`` says whether values are ``"real"``, ``"integer"`` or ``"boolean"``.
    """

    png: bytes
    geometry: TileGeometry
    limits: Limits
    extremes: Limits
    legend: tuple[LegendEntry, ...]
    scale: Scale
    robust: bool
    cmap: str
    clipped: int
    note: str
    numbers: Numbers = "real"


def mosaic(  # noqa: PLR0913 - a picture has this many settings, each with a default and a name at the call
    maps: Maps,
    *,
    scale: Scale = "channel",
    robust: bool = False,
    cmap: str = "viridis",
    order: Sequence[int] | npt.NDArray[np.integer] | None = None,
    page: int = 0,
    per_page: int = 64,
    columns: int | None = None,
    gap: int | None = None,
) -> bytes:
    """The PNG of :func:`mosaic_picture`, which describes the arguments."""
    picture = mosaic_picture(
        maps,
        scale=scale,
        robust=robust,
        cmap=cmap,
        order=order,
        page=page,
        per_page=per_page,
        columns=columns,
        gap=gap,
    )
    return picture.png


def mosaic_picture(  # noqa: PLR0913 - as mosaic
    maps: Maps,
    *,
    scale: Scale = "channel",
    robust: bool = False,
    cmap: str = "viridis",
    order: Sequence[int] | npt.NDArray[np.integer] | None = None,
    page: int = 0,
    per_page: int = 64,
    columns: int | None = None,
    gap: int | None = None,
    like: Maps | None = None,
) -> Mosaic:
    """Draw one page of channels, a pixel for each value, as a palette PNG.

    250 palette entries are levels of the colormap, both ends exact. NaN, +Inf, -Inf and channels without any range have
    entries of their own, and the gap another one, transparent, so that the page behind shows through. Nothing is
    smoothed: enlarge the picture with nearest neighbour (CSS ``image-rendering: pixelated``). The same input gives the
    same bytes.

    Args:
        maps: Channel maps, whose masks say what is not finite, or a real (C, H, W) array of any dtype.
        scale: ``"channel"`` colours each channel over its own range, ``"shared"`` all over the range of the whole
            layer, ``"symmetric"`` all over one range around zero, as far as the largest magnitude in the layer.
        robust: Limits at the 1st and 99th percentile instead of the extremes, unless these two are equal.
        cmap: A matplotlib colormap; ``views.COLORMAPS`` are those where every class stands apart.
        order: Channel numbers to show, in this order; None is all, ascending.
        page: Counted from 0.
        per_page: Channels on a full page.
        columns: Tiles in a row. By default 8, or as many as there are tiles, or as many as fit in 1,460 pixels,
            whichever is least (a single tile may be wider than that).
        gap: Pixels between tiles. By default 1, and 0 where every map is a single value: a vector is a heat strip.
        like: Other maps, whose channels of the same numbers share limits with these: the same colour is the same value
            in both pictures, where the other is drawn with these as its ``like``.

    Raises:
        ViewError: A setting, page or channel that does not exist, or maps that are not (C, H, W) of real numbers.
    """
    height, width = shape_of(maps)[1:]
    channels = page_channels(shape_of(maps)[0], order=order, page=page, per_page=per_page)
    between = int(height * width != 1) if gap is None else gap
    drawing = draw(maps, channels, scale=scale, robust=robust, cmap=cmap, like=like)
    if drawing.note:
        geometry = arrange(channels[:0], _EMPTY_TILE, _EMPTY_TILE, columns=columns, gap=between)
        canvas = np.full((geometry.height, geometry.width), GAP, np.uint8)
    else:
        geometry = arrange(channels, height, width, columns=columns, gap=between)
        canvas = tile(drawing.entries, geometry, fill=GAP)
    return Mosaic(
        png=_palette_png(canvas, cmap),
        geometry=geometry,
        limits=drawing.limits,
        extremes=drawing.extremes,
        legend=drawing.legend + _gap_entry(canvas.size - drawing.entries.size, cmap),
        scale=drawing.scale,
        robust=robust,
        cmap=cmap,
        clipped=drawing.clipped,
        note=drawing.note,
        numbers=drawing.numbers,
    )


def _gap_entry(pixels: int, cmap: str) -> tuple[LegendEntry, ...]:
    return (LegendEntry(CLASS_NAMES[GAP], css(cmap, GAP), pixels),) if pixels else ()


def _palette_png(canvas: npt.NDArray[np.uint8], cmap: str) -> bytes:
    image = Image.fromarray(np.ascontiguousarray(canvas))
    image.putpalette(palette(cmap).tobytes())
    stream = io.BytesIO()
    # Runs and Huffman codes only: half the time of searching for matches, which activations hardly have, at equal size.
    image.save(stream, format="PNG", compress_level=1, compress_type=zlib.Z_RLE, transparency=GAP)
    return stream.getvalue()
