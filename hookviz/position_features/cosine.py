"""How alike positions are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import LayoutError
from hookviz.position_features.vectors import position_vectors

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import ChannelMaps


def cosine_to(maps: ChannelMaps, position: tuple[int, int]) -> npt.NDArray[np.float64]:
    """How alike every position is to one of them: the cosine of the angle between their vectors, -1 to 1.

    Args:
        maps: all channels of a layer.
        position: row and column.

    Returns:
        (H, W) float64. It is NaN where a vector is zero, which has no direction, or not finite; and throughout where
        the chosen one is.

    Raises:
        LayoutError: no channels or positions, or no such position.
    """
    vectors, known = position_vectors(maps)
    height, width = maps.maps.shape[1:]
    row, column = position
    if not (0 <= row < height and 0 <= column < width):
        raise LayoutError(
            f"There is no position {position} in maps of {height}×{width}: rows and columns count from 0."
        )
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(invalid="ignore"):  # 0 / 0, a vector without a direction
        scaled = vectors / largest
        directions = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    every = np.full((height * width, maps.channels), np.nan)
    every[known] = directions
    cosines = every @ every[row * width + column]
    return np.asarray(np.clip(cosines, -1.0, 1.0).reshape(height, width))
