from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from hookviz.errors import ViewError
from hookviz.views import enlarge, overlay
from hookviz.views.overlay import Interpolation
from hookviz.views.palette import NAN, palette


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
@pytest.mark.parametrize(("height", "width"), [(64, 160), (5, 7), (13, 3)])
def test_enlarging_agrees_with_torch(interpolation: Interpolation, height: int, width: int) -> None:
    """C26: equals F.interpolate of the same map, height before width."""
    channel_map = np.random.default_rng(0).normal(size=(8, 20))
    options = {"align_corners": False} if interpolation == "bilinear" else {}
    tensor = torch.from_numpy(channel_map)[None, None]
    expected = functional.interpolate(tensor, size=(height, width), mode=interpolation, **options)[0, 0].numpy()
    np.testing.assert_allclose(enlarge(channel_map, height, width, interpolation=interpolation), expected, atol=1e-12)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_light_at_the_top_right_stays_there(interpolation: Interpolation) -> None:
    """C26: only the pixel (row 0, last column) is lit, on an image of 64×160."""
    channel_map = np.zeros((4, 10), np.float32)
    channel_map[0, 9] = 1
    image = np.zeros((64, 160, 3), np.uint8)
    blended = overlay(image, channel_map, alpha=1.0, cmap="gray", interpolation=interpolation)
    assert blended.shape == (64, 160, 3)
    assert blended[0, 159].tolist() == [255, 255, 255]
    lit = np.argwhere(blended[..., 0] > 0)
    assert lit[:, 0].max() < 32
    assert lit[:, 1].min() >= 128


def test_alpha_runs_from_the_image_to_the_map() -> None:
    image = np.full((2, 2, 3), 100, np.uint8)
    channel_map = np.array([[0.0, 1.0], [0.0, 1.0]])
    black_white = np.array([[0, 255], [0, 255]])
    assert np.array_equal(overlay(image, channel_map, alpha=0.0), image)
    assert np.array_equal(overlay(image, channel_map, alpha=1.0, cmap="gray")[..., 1], black_white)
    assert overlay(image, channel_map, alpha=0.25, cmap="gray")[0, :, 0].tolist() == [75, 139]


def test_given_limits_clamp() -> None:
    image = np.zeros((1, 3, 3), np.uint8)
    blended = overlay(image, np.array([[-5.0, 0.5, 9.0]]), alpha=1.0, cmap="gray", vmin=0, vmax=1)
    assert blended[0, [0, 2], 0].tolist() == [0, 255]


def test_a_nan_cell_is_painted_and_leaves_its_neighbours_alone() -> None:
    """C14: one NaN does not blank the map."""
    channel_map = np.array([[1.0, np.nan], [1.0, 3.0]])
    blended = overlay(np.zeros((8, 8, 3), np.uint8), channel_map, alpha=1.0)
    assert (blended[:4, 4:] == palette("viridis")[NAN]).all()
    assert (blended[:4, :2] == palette("viridis")[0]).all()
    assert blended[7, 7].tolist() == palette("viridis")[249].tolist()


def test_a_map_without_finite_values_is_painted_throughout() -> None:
    blended = overlay(np.zeros((4, 4, 3), np.uint8), np.full((2, 2), np.nan), alpha=1.0)
    assert (blended == palette("viridis")[NAN]).all()


def test_a_constant_map_is_one_colour() -> None:
    blended = overlay(np.zeros((4, 4, 3), np.uint8), np.full((2, 2), 7.0), alpha=1.0)
    assert (blended == palette("viridis")[0]).all()


def test_wrong_inputs_are_refused_in_a_sentence() -> None:
    image, channel_map = np.zeros((4, 4, 3), np.uint8), np.ones((2, 2))
    with pytest.raises(ViewError, match=r"\(H, W, 3\) uint8 image, got float64"):
        overlay(image.astype(float), channel_map)
    with pytest.raises(ViewError, match=r"one map \(h, w\) with at least one value, got shape \(0, 2\)"):
        overlay(image, channel_map[:0])
    with pytest.raises(ViewError, match=r"alpha is 0 .* to 1 .*, got 2"):
        overlay(image, channel_map, alpha=2)
    with pytest.raises(ViewError, match="no interpolation 'cubic'; choose one of nearest, bilinear"):
        overlay(image, channel_map, interpolation="cubic")  # type: ignore[arg-type]  # wrong on purpose
