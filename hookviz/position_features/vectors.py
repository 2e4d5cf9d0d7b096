"""Each position of a layer as one vector of all its channels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import LayoutError

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import BoolArray, ChannelMaps

ROUNDING = 1e-12
"""A share of the variance below this is rounding, not structure: the sums are in float64."""


def position_vectors(maps: ChannelMaps) -> tuple[npt.NDArray[np.float64], BoolArray]:
    """The finite positions (n, C) float64 in reading order, and which of all positions (H * W) those are.

    Raises:
        LayoutError: there are no channels or no positions.
    """
    channels, height, width = maps.maps.shape
    if not maps.maps.size:
        raise LayoutError(f"There are no positions to compare in {channels} channels of {height}×{width}.")
    flat = maps.maps.reshape(channels, -1)
    troubled = [maps.nan, maps.posinf, maps.neginf, ~np.isfinite(maps.maps)]
    known = ~np.any([mask.reshape(channels, -1).any(axis=0) for mask in troubled], axis=0)
    return flat[:, known].T.astype(np.float64), known


def centred(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The vectors less their mean; exactly zero in a channel that is constant."""
    if not len(vectors):
        return vectors
    apart = vectors - vectors[0]
    return np.asarray(apart - apart.mean(axis=0))
