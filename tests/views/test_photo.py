from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from hookviz.errors import ViewError
from hookviz.samples import load_sample
from hookviz.views import channel_over_photo
from hookviz.views.marks import EDGE, LINE
from hookviz.views.palette import NAN, palette

if TYPE_CHECKING:
    import numpy.typing as npt

WHITE, DARK = list(LINE), list(EDGE)


def plain(height: int, width: int, light: int = 100) -> npt.NDArray[np.uint8]:
    return np.full((height, width, 3), light, np.uint8)


def test_the_map_lies_on_the_crop_and_nowhere_else() -> None:
    """C26: on 400×600, each quarter of a crop of 200×300 has the colour of its value."""
    shown = channel_over_photo(plain(400, 600), (90, 60, 390, 260), np.array([[0.0, 1.0], [2.0, 3.0]]), alpha=1.0)
    colours = palette("viridis")[[0, 83, 166, 249]]
    assert shown.shape == (400, 600, 3)
    for colour, rows, columns in zip(
        colours,
        (slice(60, 160), slice(60, 160), slice(160, 260), slice(160, 260)),
        (slice(90, 240), slice(240, 390), slice(90, 240), slice(240, 390)),
        strict=True,
    ):
        assert (shown[rows, columns] == colour).all()
    shown[60:260, 90:390] = 35
    assert (shown == 35).all()


def test_without_a_map_the_crop_is_the_photo_as_it_is() -> None:
    photo = np.asarray(load_sample("grace_hopper"))
    shown = channel_over_photo(photo, (32, 76, 480, 524), None)
    assert np.array_equal(shown[76:524, 32:480], photo[76:524, 32:480])
    assert np.array_equal(shown[:76], np.rint(photo[:76] * 0.35))


def test_under_a_map_the_photo_is_grey() -> None:
    photo = np.asarray(load_sample("grace_hopper"))
    shown = channel_over_photo(photo, (0, 0, 512, 600), np.zeros((2, 2)), alpha=0.0)
    grey = np.asarray(Image.fromarray(photo).convert("L"))
    assert np.array_equal(shown, np.repeat(grey[..., None], 3, axis=2))


def test_a_crop_beyond_the_photo_keeps_the_map_in_its_place() -> None:
    """A network that adds a border: the middle half of a 4×4 map is what falls on the photo."""
    values = np.arange(16.0).reshape(4, 4)
    shown = channel_over_photo(plain(400, 600), (-300, -200, 900, 600), values, alpha=1.0)
    levels = np.rint(values[1:3, 1:3] / 15 * 249).astype(int)
    assert shown[100, 150].tolist() == palette("viridis")[levels[0, 0]].tolist()
    assert shown[399, 599].tolist() == palette("viridis")[levels[1, 1]].tolist()
    assert (shown[:200, :300] == shown[0, 0]).all()


def test_given_limits_are_those_of_the_tile() -> None:
    """C15: a faint channel on the layer's common scale is faint here too."""
    shown = channel_over_photo(plain(400, 400), (0, 0, 400, 400), np.full((2, 2), 1.0), alpha=1.0, vmin=0.0, vmax=249.0)
    assert (shown == palette("viridis")[1]).all()


def test_what_is_not_finite_has_its_own_colour() -> None:
    """C14."""
    values = np.array([[0.0, np.nan], [1.0, 2.0]])
    shown = channel_over_photo(plain(400, 400), (0, 0, 400, 400), values, alpha=1.0)
    assert (shown[:200, 200:] == palette("viridis")[NAN]).all()


def test_a_large_photo_is_scaled_down_with_everything_in_it() -> None:
    values = np.array([[0.0, 1.0]])
    shown = channel_over_photo(plain(3000, 2000), (0, 1000, 2000, 2000), values, alpha=1.0, longest_side=600)
    assert shown.shape == (600, 400, 3)
    assert (shown[200:400, :200] == palette("viridis")[0]).all()
    assert (shown[200:400, 200:] == palette("viridis")[249]).all()
    assert (shown[:200] == 35).all()


def test_a_tiny_photo_is_scaled_up_without_smoothing() -> None:
    """C27: 8×8, as the digits are."""
    photo = np.zeros((8, 8, 3), np.uint8)
    photo[0, 7] = 200
    shown = channel_over_photo(photo, (0, 0, 8, 8), None)
    assert shown.shape == (384, 384, 3)
    assert np.unique(shown).tolist() == [0, 200]
    assert (shown[:48, 336:] == 200).all()


def test_a_field_is_outlined_along_its_edges_white_between_dark() -> None:
    """C26: a quarter to a half across, a half to three quarters down; the line is two pixels and straddles the edge."""
    shown = channel_over_photo(plain(400, 800), (0, 0, 800, 400), None, field=(0.25, 0.5, 0.5, 0.75))
    across, down = shown[250, 190:410], shown[190:310, 300]
    assert [across[place].tolist() for place in (8, 9, 10, 11)] == [DARK, WHITE, WHITE, DARK]
    assert [across[place].tolist() for place in (208, 209, 210, 211)] == [DARK, WHITE, WHITE, DARK]
    assert [down[place].tolist() for place in (8, 9, 10, 11)] == [DARK, WHITE, WHITE, DARK]
    assert [down[place].tolist() for place in (108, 109, 110, 111)] == [DARK, WHITE, WHITE, DARK]
    assert (across[12:208] == 100).all()
    assert (across[:8] == 100).all()


@pytest.mark.parametrize("light", [0, 255])
def test_lines_show_on_black_and_on_white(light: int) -> None:
    shown = channel_over_photo(plain(400, 400, light), (0, 0, 400, 400), None, field=(0.2, 0.2, 0.6, 0.6))
    row = shown[160, 70:90].astype(int)
    assert np.abs(np.diff(row[:, 0])).max() > 200
    assert {WHITE[0], DARK[0]} <= set(row[:, 0].tolist())


def test_a_field_of_the_whole_image_is_drawn_within_the_picture() -> None:
    shown = channel_over_photo(plain(400, 400), (0, 0, 400, 400), None, field=(0.0, 0.0, 1.0, 1.0))
    for line in (shown[200, :4], shown[200, ::-1][:4], shown[:4, 200], shown[::-1, 200][:4]):
        assert line.tolist() == [DARK, WHITE, WHITE, DARK]


def test_a_field_of_one_pixel_is_a_box_one_can_see() -> None:
    shown = channel_over_photo(plain(400, 400), (0, 0, 400, 400), None, field=(0.5, 0.5, 0.5025, 0.5025))
    assert (shown == LINE).all(-1).sum() >= 24
    assert shown[200, 200].tolist() == [100, 100, 100]


def test_the_maximum_has_a_ring_and_the_position_a_cross() -> None:
    """C26: row 1, column 2 of 2×4 on 400×800 is centred at 300 down, 500 across."""
    dark = np.zeros((2, 4))
    ringed = channel_over_photo(plain(400, 800, 0), (0, 0, 800, 400), dark, alpha=0.0, maximum=(1, 2))
    lit = np.argwhere((ringed == LINE).all(-1))
    np.testing.assert_allclose(lit.mean(0) + 0.5, [300, 500], atol=1e-9)
    assert np.hypot(*(lit + 0.5 - [300, 500]).T).min() > 8
    crossed = channel_over_photo(plain(400, 800, 0), (0, 0, 800, 400), dark, alpha=0.0, position=(1, 2))
    lit = np.argwhere((crossed == LINE).all(-1))
    np.testing.assert_allclose(lit.mean(0) + 0.5, [300, 500], atol=1e-9)
    assert crossed[300, 500].tolist() == WHITE


def test_a_small_field_needs_no_cross_inside() -> None:
    settings: dict[str, Any] = {"alpha": 0.0, "field": (0.5, 0.5, 0.52, 0.52)}
    photo, values = plain(400, 400), np.zeros((50, 50))
    with_position = channel_over_photo(photo, (0, 0, 400, 400), values, position=(25, 25), **settings)
    assert np.array_equal(with_position, channel_over_photo(photo, (0, 0, 400, 400), values, **settings))


def test_a_mark_at_the_corner_stays_in_the_picture() -> None:
    shown = channel_over_photo(plain(400, 400, 0), (0, 0, 400, 400), np.zeros((100, 100)), alpha=0.0, maximum=(0, 0))
    assert (shown[:20, :20] == LINE).all(-1).any()
    assert not shown[40:].any()


def test_the_photo_is_left_alone_and_the_same_input_gives_the_same_pixels() -> None:
    photo = np.asarray(load_sample("grace_hopper"))
    before = photo.copy()
    settings: dict[str, Any] = {"field": (0, 0, 0.5, 0.5), "maximum": (1, 1)}
    first = channel_over_photo(photo, (0, 0, 512, 512), np.eye(3), **settings)
    assert np.array_equal(first, channel_over_photo(photo, (0, 0, 512, 512), np.eye(3), **settings))
    assert np.array_equal(photo, before)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"photo": np.zeros((4, 4), np.uint8)}, r"a photo is an \(H, W, 3\) uint8 image, got uint8 of shape \(4, 4\)"),
        ({"crop": (5, 0, 5, 4)}, "a crop is left, upper, right, lower"),
        ({"crop": (400, 0, 500, 400)}, "lies outside a photo of 400 × 400 pixels"),
        ({"maximum": (2, 0)}, r"no position \(2, 0\) in a map of 2×2"),
        ({"channel_map": None, "maximum": (0, 0)}, "a position is marked in a map"),
        ({"cmap": "nope"}, "no colormap 'nope'"),
        ({"alpha": 2}, "alpha is 0"),
    ],
)
def test_what_does_not_exist_is_refused_in_a_sentence(changed: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"photo": plain(400, 400), "crop": (0, 0, 400, 400), "channel_map": np.eye(2)} | changed
    with pytest.raises(ViewError, match=sentence):
        channel_over_photo(**given)
