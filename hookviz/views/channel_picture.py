"""One channel, large."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import ViewError
from hookviz.views.mosaic import mosaic
from hookviz.views.source import numbers, read, shape_of

if TYPE_CHECKING:
    from hookviz.types import Scale
    from hookviz.views.source import Maps


def channel_picture(
    maps: Maps, channel: int, *, scale: Scale = "channel", robust: bool = False, cmap: str = "viridis"
) -> bytes:
    """One channel as a palette PNG, a pixel for each value, in the colours of its tile in the mosaic.

    The settings are those of :func:`~hookviz.views.mosaic`. Enlarge it with nearest neighbour (CSS ``image-rendering:
    pixelated``).

    Raises:
        ViewError: A channel or a setting that does not exist, or maps that are not (C, H, W) of real numbers.
    """
    return mosaic(maps, order=[channel], scale=scale, robust=robust, cmap=cmap, columns=1, gap=0)


def maximum_of(maps: Maps, channel: int) -> tuple[int, int] | None:
    """Row and column of a channel's largest finite value, the first in reading order; None where none is finite.

    Raises:
        ViewError: A channel that does not exist, or maps that are not (C, H, W) of real numbers.
    """
    channels, _, width = shape_of(maps)
    if not 0 <= channel < channels:
        raise ViewError(f"no channel {channel}; there are {channels}, numbered from 0")
    source = read(maps, slice(channel, channel + 1))
    values = source.values[0].astype(np.int8 if numbers(maps) == "boolean" else source.values.dtype)
    if source.finite is not None:
        values = np.where(source.finite[0], values, -np.inf)
    if values.size == 0 or (source.finite is not None and not source.finite.any()):
        return None
    row, column = divmod(int(values.argmax()), width)
    return row, column
