"""The weights of one channel as a picture: in colours where they read colours, else one tile for each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import ViewError
from hookviz.views.mosaic import mosaic_picture
from hookviz.views.palette import NAN, palette
from hookviz.views.picture import png_bytes
from hookviz.views.source import shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from hookviz.views.tiling import TileGeometry

CMAP = "RdBu_r"
TILE_SIDE, RGB_SIDE = 36, 96
"""Pixels that the longer side of a kernel has at least; each weight is a square of whole pixels."""

_GAP = 3


@dataclass(frozen=True, slots=True, eq=False)
class KernelPicture:
    """A PNG, and what is needed to label it.

    ``reach`` is the size of the weight that has the strongest colour, positive or negative; 0 where all are zero.
    ``geometry`` says where the tile of each input lies (its ``channels`` are places in ``weights``), and is None for a
    coloured kernel.
    """

    png: bytes
    reach: float
    geometry: TileGeometry | None


def kernel_picture(
    weights: npt.NDArray[np.floating],
    *,
    is_rgb: bool = False,
    order: Sequence[int] | None = None,
    columns: int | None = None,
    cmap: str = CMAP,
) -> KernelPicture:
    """Draw the weights that make one channel, on one scale around zero.

    Args:
        weights: (inputs, kH, kW), as ``ChannelKernel.weights``.
        is_rgb: Draw three inputs as red, green and blue of one picture, in which zero is mid-grey.
        order: Which inputs to show as tiles and in what order, such as ``ChannelKernel.strongest(9)``; None is all. The
            scale is that of all inputs, whichever are shown.
        columns: Tiles in a row, as for ``mosaic``.
        cmap: A diverging matplotlib colormap for the tiles.

    Raises:
        ViewError: Weights that are not (inputs, kH, kW), or not three of them for RGB; an order or a colormap that does
            not exist.
    """
    inputs, height, width = shape_of(weights)
    finite = weights[np.isfinite(weights)].astype(np.float64)
    reach = float(np.abs(finite).max(initial=0.0))
    if not is_rgb:
        tiles = mosaic_picture(
            _enlarged(weights, TILE_SIDE),
            scale="symmetric",
            cmap=cmap,
            order=order,
            per_page=max(1, inputs),
            columns=columns,
            gap=_GAP if height * width > 1 else None,
        )
        return KernelPicture(tiles.png, reach, tiles.geometry)
    if inputs != 3:
        raise ViewError(f"a coloured kernel reads red, green and blue, but this one reads {inputs} inputs")
    return KernelPicture(png_bytes(_coloured(_enlarged(weights, RGB_SIDE), reach)), reach, None)


def _enlarged(weights: npt.NDArray[np.floating], side: int) -> npt.NDArray[np.floating]:
    factor = max(1, side // max(1, *weights.shape[1:]))
    return np.asarray(weights.repeat(factor, axis=1).repeat(factor, axis=2))


def _coloured(weights: npt.NDArray[np.floating], reach: float) -> npt.NDArray[np.uint8]:
    """Mid-grey is zero, and the largest weight fully light or dark in its colour."""
    finite = np.isfinite(weights)
    shares = np.where(finite, weights, 0.0).astype(np.float64) / (reach or 1.0)
    pixels = np.rint((shares + 1.0) * 127.5).astype(np.uint8).transpose(1, 2, 0)
    pixels[~finite.all(axis=0)] = palette(CMAP)[NAN]
    return np.ascontiguousarray(pixels)
