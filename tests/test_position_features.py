from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import cosine_similarity

from hookviz.errors import LayoutError
from hookviz.layout import channel_maps
from hookviz.position_features import UNKNOWN, cluster_positions, cosine_to, pca_rgb

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import ChannelMaps


def maps_of(values: npt.ArrayLike) -> ChannelMaps:
    return channel_maps(torch.as_tensor(np.asarray(values)), "CHW")


def random_maps(channels: int, height: int, width: int, seed: int = 0) -> ChannelMaps:
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(channels, 5)) * [9, 5, 3, 1, 0.5]
    values = mixing @ random.normal(size=(5, height * width)) + 4
    return maps_of(values.reshape(channels, height, width).astype(np.float32))


def rows(maps: ChannelMaps) -> npt.NDArray[np.float64]:
    """The vectors of all positions, in reading order."""
    return maps.maps.reshape(maps.channels, -1).T.astype(np.float64)


@pytest.mark.parametrize("shape", [(6, 9, 11), (200, 5, 7), (3, 8, 8)], ids=str)
def test_components_are_those_of_scikit_learn(shape: tuple[int, int, int]) -> None:
    """Fewer channels than positions, and more; equal but for the sign, of which the largest weight is positive."""
    maps = random_maps(*shape)
    expected = PCA(3, svd_solver="full").fit(rows(maps))
    picture = pca_rgb(maps)
    for found, component in zip(picture.components, expected.components_, strict=True):
        upright = component * np.sign(component[np.abs(component).argmax()])
        np.testing.assert_allclose(found, upright, atol=1e-6)
    np.testing.assert_allclose(picture.explained, expected.explained_variance_ratio_, rtol=1e-6)
    by_hand = (rows(maps) - rows(maps).mean(0)) @ picture.components.T
    np.testing.assert_allclose(picture.scores.reshape(-1, 3), by_hand, atol=1e-5)


def test_colours_run_from_the_first_to_the_last_percentile() -> None:
    picture = pca_rgb(random_maps(6, 20, 20))
    low, high = np.percentile(picture.scores.reshape(-1, 3), [1, 99], axis=0)
    expected = np.clip((picture.scores - low) / (high - low), 0, 1)
    np.testing.assert_allclose(picture.rgb, expected, atol=1e-6)
    assert (picture.rgb.shape, picture.rgb.dtype.name) == ((20, 20, 3), "float32")


def test_fewer_than_three_directions_leave_mid_grey() -> None:
    """C17: one channel is one direction, red alone; constant channels none at all."""
    one = pca_rgb(maps_of([[[0.0, 1.0], [2.0, 3.0]]]))
    assert one.explained == (1.0, 0.0, 0.0)
    assert one.rgb[..., 1:].tolist() == [[[0.5, 0.5]] * 2] * 2
    assert one.rgb[..., 0].argsort(axis=None).tolist() == [0, 1, 2, 3]
    constant = pca_rgb(maps_of(np.full((5, 3, 4), 0.1, np.float32)))
    assert (constant.rgb == 0.5).all()
    assert constant.explained == (0.0, 0.0, 0.0)
    assert not constant.components.any()
    assert (pca_rgb(maps_of(np.ones((7, 1, 1)))).rgb == 0.5).all()


def test_positions_that_are_not_finite_take_no_part() -> None:
    """C14."""
    maps = random_maps(6, 9, 11)
    values = maps.maps.copy()
    values[2, 0, 0], values[4, 3, 5] = np.nan, np.inf
    picture = pca_rgb(maps_of(values))
    missing = np.zeros((9, 11), bool)
    missing[[0, 3], [0, 5]] = True
    assert np.array_equal(np.isnan(picture.rgb).any(-1), missing)
    assert np.array_equal(np.isnan(picture.scores).all(-1), missing)
    expected = PCA(3, svd_solver="full").fit(rows(maps)[~missing.ravel()])
    np.testing.assert_allclose(picture.explained, expected.explained_variance_ratio_, rtol=1e-6)
    nothing = pca_rgb(maps_of(np.full((4, 2, 2), np.nan)))
    assert np.isnan(nothing.rgb).all()
    assert nothing.explained == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_very_large_and_very_small_values_have_components_too(scale: float) -> None:
    """C33: their squares leave float32."""
    plain, scaled = random_maps(6, 9, 11), maps_of(random_maps(6, 9, 11).maps * np.float32(scale))
    np.testing.assert_allclose(pca_rgb(scaled).rgb, pca_rgb(plain).rgb, atol=1e-4)
    assert np.array_equal(cluster_positions(scaled, 4), cluster_positions(plain, 4))
    np.testing.assert_allclose(cosine_to(scaled, (2, 3)), cosine_to(plain, (2, 3)), atol=1e-5)


def blobs() -> tuple[ChannelMaps, npt.NDArray[np.int64]]:
    """Three far-apart kinds of positions, 30 %, 20 % and 50 % of 20×20."""
    kinds = np.repeat([0, 1, 2], [120, 80, 200])
    random = np.random.default_rng(1)
    random.shuffle(kinds)
    centres = np.array([[9, 0, 0, 0], [0, 9, 0, 0], [0, 0, 9, 9]])
    values = centres[kinds] + random.normal(size=(400, 4))
    return maps_of(values.T.reshape(4, 20, 20).astype(np.float32)), kinds


def test_groups_are_the_kinds_there_are_the_largest_first() -> None:
    maps, kinds = blobs()
    assert np.array_equal(cluster_positions(maps, 3).ravel(), np.array([1, 2, 0])[kinds])


def test_groups_are_as_tight_as_those_of_scikit_learn() -> None:
    maps = random_maps(8, 24, 24)
    labels, vectors = cluster_positions(maps, 6).ravel(), rows(maps)
    loose = sum(((vectors[labels == one] - vectors[labels == one].mean(0)) ** 2).sum() for one in range(6))
    assert loose <= 1.02 * KMeans(6, n_init=10, random_state=0).fit(vectors).inertia_
    assert (np.diff(np.bincount(labels)) <= 0).all()


def test_the_same_seed_gives_the_same_groups_and_draws_from_nobody_else() -> None:
    maps = random_maps(8, 24, 24)
    np.random.seed(5)  # noqa: NPY002 - the state that must not be touched
    before = np.random.get_state()[1].copy()  # type: ignore[index]  # noqa: NPY002
    assert np.array_equal(cluster_positions(maps, 6, seed=3), cluster_positions(maps, 6, seed=3))
    assert np.array_equal(np.random.get_state()[1], before)  # type: ignore[index]  # noqa: NPY002


def test_there_are_no_more_groups_than_different_vectors() -> None:
    two = maps_of(np.array([[[0.1, 0.1, 0.7], [0.1, 0.7, 0.1]]], np.float32))
    assert cluster_positions(two, 5).tolist() == [[0, 0, 1], [0, 1, 0]]
    assert not cluster_positions(maps_of(np.full((3, 4, 4), 0.1)), 4).any()
    assert cluster_positions(maps_of([[[1.0, 2.0]]]), 2).tolist() == [[0, 1]]


def test_what_is_not_finite_is_in_no_group() -> None:
    """C14."""
    labels = cluster_positions(maps_of([[[0.0, np.nan], [0.0, 5.0]]]), 2)
    assert labels.tolist() == [[0, UNKNOWN], [0, 1]]
    assert (cluster_positions(maps_of(np.full((2, 2, 2), np.inf)), 2) == UNKNOWN).all()


def test_cosines_are_those_of_scikit_learn() -> None:
    """C26: row before column."""
    maps = random_maps(8, 5, 9)
    expected = cosine_similarity(rows(maps), rows(maps)[[3 * 9 + 7]])[:, 0].reshape(5, 9)
    found = cosine_to(maps, (3, 7))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[3, 7] == pytest.approx(1.0)
    assert found.dtype == np.float64


def test_a_vector_without_a_direction_is_like_nothing() -> None:
    maps = maps_of([[[1.0, 0.0, -2.0, np.nan]], [[0.0, 0.0, 0.0, 1.0]]])
    np.testing.assert_array_equal(cosine_to(maps, (0, 0)), [[1.0, np.nan, -1.0, np.nan]])
    assert np.isnan(cosine_to(maps, (0, 1))).all()
    assert np.isnan(cosine_to(maps, (0, 3))).all()


def test_what_does_not_exist_is_refused_in_a_sentence() -> None:
    """C34."""
    maps = random_maps(3, 4, 5)
    with pytest.raises(LayoutError, match=r"There is no position \(4, 0\) in maps of 4×5"):
        cosine_to(maps, (4, 0))
    with pytest.raises(LayoutError, match="at least 1 group, got k=0"):
        cluster_positions(maps, 0)
    for function in (pca_rgb, lambda empty: cluster_positions(empty, 2), lambda empty: cosine_to(empty, (0, 0))):
        with pytest.raises(LayoutError, match="There are no positions to compare in 3 channels of 0×5"):
            function(maps_of(np.zeros((3, 0, 5), np.float32)))


@pytest.mark.parametrize("shape", [(2048, 7, 7), (64, 112, 112)], ids=str)
def test_many_channels_and_large_maps_take_seconds_at_most(shape: tuple[int, int, int]) -> None:
    """C16."""
    maps = maps_of(np.random.default_rng(0).normal(size=shape).astype(np.float32))
    began = time.perf_counter()
    pca_rgb(maps)
    cluster_positions(maps, 6)
    cosine_to(maps, (0, 0))
    assert time.perf_counter() - began < 10
