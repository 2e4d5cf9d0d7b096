"""All channels in one picture: principal components as colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hookviz.position_features.vectors import ROUNDING, centred, position_vectors

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import ChannelMaps

COLOURS = 3
DISPLAYED_PERCENTILES = (1.0, 99.0)


@dataclass(frozen=True, slots=True, eq=False)
class PcaPicture:
    """The three directions in which positions differ most, as red, green and blue.

    ``rgb`` is (H, W, 3) float32 from 0 to 1, NaN where a position is not finite. ``scores`` is (H, W, 3) float64, how
    far each position lies along each direction from the mean, and ``components`` (3, C) float64 has the directions,
    each of length 1 with its largest weight positive. ``explained`` has their shares of the variance, 0 to 1. Where
    positions differ in fewer than three directions the others are zero, and mid-grey in ``rgb``.
    """

    rgb: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float64]
    components: npt.NDArray[np.float64]
    explained: tuple[float, float, float]


def pca_rgb(maps: ChannelMaps) -> PcaPicture:
    """Turn all channels into one colour picture by principal component analysis over the positions.

    Exact: the eigenvectors of the smaller of the two product matrices, channels × channels or positions × positions, in
    float64. Each colour runs from its component's 1st to its 99th percentile. Positions with a value that is not finite
    take no part.

    Raises:
        LayoutError: there are no channels or no positions.
    """
    vectors, known = position_vectors(maps)
    apart = centred(vectors)
    scale = float(np.abs(apart).max(initial=0.0)) or 1.0  # squares of very large or small numbers leave float64
    components, variances, total = _principal(apart / scale)
    height, width = maps.maps.shape[1:]
    scores, rgb = (np.full((height * width, COLOURS), np.nan) for _ in range(2))
    scores[known] = apart @ components.T
    rgb[known] = _stretched(scores[known])
    first, second, third = (float(one) / total if total else 0.0 for one in variances)
    return PcaPicture(
        rgb=rgb.reshape(height, width, COLOURS).astype(np.float32),
        scores=scores.reshape(height, width, COLOURS),
        components=components,
        explained=(first, second, third),
    )


def _principal(
    apart: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], float]:
    """The first three directions (3, C), zero where there are fewer, their variances, and the variance in all."""
    positions, channels = apart.shape
    total = float(np.square(apart).sum())
    if channels <= positions:
        values, directions = np.linalg.eigh(apart.T @ apart)
        directions = directions.T
    else:
        values, sides = np.linalg.eigh(apart @ apart.T)
        with np.errstate(invalid="ignore", divide="ignore"):  # directions without variance are dropped below
            directions = (sides.T @ apart) / np.sqrt(np.maximum(values, 0.0))[:, None]
    components, variances = np.zeros((COLOURS, channels)), np.zeros(COLOURS)
    for place, number in enumerate(np.argsort(-values, kind="stable")[:COLOURS]):
        if values[number] > ROUNDING * total:
            components[place], variances[place] = _upright(directions[number]), values[number]
    return components, variances, total


def _upright(direction: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Of the two signs, the one that makes the largest weight positive; of nearly equal ones, the first."""
    sizes = np.abs(direction)
    leading = int(np.flatnonzero(sizes > sizes.max() * (1 - 1e-6))[0])
    return np.asarray(direction * np.sign(direction[leading]))


def _stretched(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Each column from 0 to 1 between its percentiles; mid-grey where it has no range."""
    if not len(scores):
        return scores
    low, high = np.percentile(scores, DISPLAYED_PERCENTILES, axis=0)
    full_low, full_high = scores.min(axis=0), scores.max(axis=0)
    narrow = low >= high
    low, high = np.where(narrow, full_low, low), np.where(narrow, full_high, high)
    spread = np.where(high > low, high - low, 1.0)
    return np.where(high > low, np.clip((scores - low) / spread, 0.0, 1.0), 0.5)
