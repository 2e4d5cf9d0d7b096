"""Positions that are alike, in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hookviz.errors import LayoutError
from hookviz.position_features.vectors import ROUNDING, centred, position_vectors

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import ChannelMaps

ATTEMPTS = 4
SAMPLE = 4096
MOST_ROUNDS = 50
SETTLED = 1e-3
"""A grouping is done when a smaller share of positions changes places."""

UNKNOWN = -1
"""The label of a position that has a value which is not finite."""


def cluster_positions(maps: ChannelMaps, k: int, *, seed: int = 0) -> npt.NDArray[np.int64]:
    """Group positions whose vectors are alike: k-means from k-means++ starts, the same for the same seed.

    Positions with a value that is not finite are ``UNKNOWN``, -1. Where there are fewer than ``k`` different vectors,
    there are fewer groups.

    Args:
        maps: all channels of a layer.
        k: how many groups at most.
        seed: of the starts.

    Returns:
        (H, W) labels from 0, the largest group first, equal ones in reading order.

    Raises:
        LayoutError: no channels or positions, or ``k`` below 1.
    """
    if k < 1:
        raise LayoutError(f"Positions fall into at least 1 group, got k={k}.")
    vectors, known = position_vectors(maps)
    labels = np.full(known.size, UNKNOWN, np.int64)
    if len(vectors):
        apart = centred(vectors)
        scaled = apart / (np.abs(apart).max() or 1.0)  # squares of very large or small numbers leave float64
        labels[known] = _by_size(_k_means(scaled, k, np.random.default_rng(seed)))
    return labels.reshape(maps.maps.shape[1:])


def _k_means(vectors: npt.NDArray[np.float64], k: int, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """The tightest of several groupings; of many positions, an even sample decides which that is."""
    sample = vectors[:: -(-len(vectors) // SAMPLE)]
    attempts = [_settled(sample, _starts(sample, k, random)) for _ in range(ATTEMPTS)]
    best = min(attempts, key=lambda labels: _looseness(sample, labels))
    return best if len(sample) == len(vectors) else _settled(vectors, _means(sample, best, int(best.max()) + 1))


def _settled(vectors: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    labels = _nearest(vectors, centres)
    for _ in range(MOST_ROUNDS):
        centres = _means(vectors, labels, len(centres))
        moved = _nearest(vectors, centres)
        changed = np.count_nonzero(moved != labels)
        labels = moved
        if changed <= SETTLED * len(labels):
            break
    return labels


def _looseness(vectors: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> float:
    """The sum of squared distances to the means, less what is the same for all groupings."""
    groups = int(labels.max()) + 1
    sums = _sums(vectors, labels, groups)
    counts = np.bincount(labels, minlength=groups)
    return -float((np.einsum("ij,ij->i", sums, sums) / np.maximum(counts, 1)).sum())


def _starts(vectors: npt.NDArray[np.float64], k: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """k-means++ (Arthur and Vassilvitskii, 2007): each next centre far from those before, by chance of distance²."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    chosen = [int(random.integers(len(vectors)))]
    distance = np.full(len(vectors), np.inf)
    while True:
        last = vectors[chosen[-1]]
        distance = np.minimum(distance, np.maximum(squares - 2 * (vectors @ last) + last @ last, 0.0))
        distance[chosen] = 0.0
        # What rounding leaves between equal vectors is no distance.
        far = np.where(distance > ROUNDING * max(float(squares.max()), 1e-300), distance, 0.0)
        if len(chosen) == k or not far.any():
            return vectors[chosen]
        along = np.cumsum(far)
        chosen.append(int(np.searchsorted(along, random.random() * along[-1], side="right")))


def _nearest(vectors: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    distances = np.einsum("ij,ij->i", centres, centres) - 2 * (vectors @ centres.T)
    return np.asarray(distances.argmin(axis=1), np.int64)


def _means(vectors: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.float64]:
    """The mean of every group that has members; a group that has lost them all is dropped."""
    counts = np.bincount(labels, minlength=groups)
    return _sums(vectors, labels, groups)[counts > 0] / counts[counts > 0, None]


def _sums(vectors: npt.NDArray[np.float64], labels: npt.NDArray[np.int64], groups: int) -> npt.NDArray[np.float64]:
    """The sum of every group's vectors, one channel after another: a product with so few rows is no faster."""
    return np.stack([np.bincount(labels, weights=column, minlength=groups) for column in vectors.T], axis=1)


def _by_size(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found, first, places, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(found), np.int64)
    rank[order] = np.arange(len(found))
    return rank[places]
