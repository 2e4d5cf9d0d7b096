from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.types import ChannelMaps
from hookviz.views import COLORMAPS, mosaic, mosaic_picture, page_count
from hookviz.views.palette import CONSTANT, GAP, NAN, NEGINF, POSINF
from tests.views.decoding import alpha, entries, rgb, tile_entries

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import Scale


def channel_maps(values: npt.NDArray[np.float32], neginf: npt.NDArray[np.bool_] | None = None) -> ChannelMaps:
    none = np.zeros(values.shape, bool)
    negative = none if neginf is None else neginf
    return ChannelMaps(values, none, none, negative, layout="NCHW", shape=(1, *values.shape), dtype="float32")


def test_tiles_lie_in_reading_order_with_a_transparent_gap() -> None:
    maps = np.array([[[0, 249]], [[249, 0]], [[10, 239]]], np.float32)
    canvas = entries(mosaic(maps, scale="shared", columns=2))
    assert canvas.tolist() == [
        [0, 249, GAP, 249, 0],
        [GAP] * 5,
        [10, 239, GAP, GAP, GAP],
    ]
    assert np.array_equal(alpha(mosaic(maps, scale="shared", columns=2)) == 0, canvas == GAP)


@pytest.mark.parametrize("channels", [1, 3, 5, 17])
def test_there_are_exactly_as_many_tiles_as_channels(channels: int) -> None:
    """C17: tile k is channel k, and unused cells are invisible."""
    maps = np.random.default_rng(channels).normal(size=(channels, 4, 6)).astype(np.float32)
    picture = mosaic_picture(maps, scale="shared")
    low, high = float(maps.min()), float(maps.max())
    for channel in range(channels):
        expected = np.rint((maps[channel].astype(np.float64) - low) / (high - low) * 249)
        assert np.array_equal(tile_entries(picture, channel), expected)
    assert np.count_nonzero(alpha(picture.png)) == channels * 24
    assert picture.geometry.channels == tuple(range(channels))


def test_three_channels_are_three_tiles_never_one_colour_image() -> None:
    """C17: C=3."""
    picture = mosaic_picture(np.zeros((3, 5, 5), np.float32))
    assert (picture.geometry.columns, picture.geometry.rows) == (3, 1)
    assert rgb(picture.png).shape == (5, 17, 3)


def test_every_channel_of_a_wide_layer_is_on_one_page() -> None:
    """C16: 2,048 channels make 32 pages, and each channel lies on exactly one."""
    maps = np.arange(2048, dtype=np.float32).reshape(2048, 1, 1)
    shown = [c for page in range(page_count(2048, 64)) for c in mosaic_picture(maps, page=page).geometry.channels]
    assert shown == list(range(2048))


def test_the_last_page_may_be_short() -> None:
    """C16: page count is ceil(C / per_page)."""
    assert page_count(130, 64) == 3
    assert mosaic_picture(np.zeros((130, 2, 2)), page=2).geometry.channels == (128, 129)


def test_four_troubled_channels_look_as_they_should() -> None:
    """C14: constant 7; finite 1..3 with Inf; finite 1..3 with NaN; all NaN."""
    maps = np.array([[[7, 7], [7, 7]], [[1, 2], [3, np.inf]], [[1, 2], [3, np.nan]], [[np.nan] * 2] * 2], np.float32)
    picture = mosaic_picture(maps)
    assert tile_entries(picture, 0).tolist() == [[CONSTANT] * 2] * 2
    assert tile_entries(picture, 1).tolist() == [[0, 124], [249, POSINF]]
    assert tile_entries(picture, 2).tolist() == [[0, 124], [249, NAN]]
    assert tile_entries(picture, 3).tolist() == [[NAN] * 2] * 2
    counts = {entry.label: entry.total for entry in picture.legend if entry.label != "gap"}
    assert counts == {"NaN": 5, "+Inf": 1, "constant": 1}
    np.testing.assert_array_equal(picture.limits.vmin, [7, 1, 1, np.nan])
    np.testing.assert_array_equal(picture.limits.vmax, [7, 3, 3, np.nan])


@pytest.mark.parametrize("scale", ["channel", "shared", "symmetric"])
@pytest.mark.parametrize("robust", [False, True])
@pytest.mark.parametrize("filling", [np.nan, np.inf, -np.inf])
def test_a_layer_without_finite_values_shows_its_class_alone(scale: Scale, robust: bool, filling: float) -> None:
    """C14: all NaN, all Inf."""
    picture = mosaic_picture(np.full((2, 3, 3), filling, np.float32), scale=scale, robust=robust)
    expected = {"nan": NAN, "inf": POSINF, "-inf": NEGINF}[str(filling)]
    assert np.unique(tile_entries(picture, 1)).tolist() == [expected]
    assert np.isnan(picture.limits.vmin).all()


def test_one_finite_value_among_nans_is_constant() -> None:
    maps = np.full((1, 2, 2), np.nan)
    maps[0, 1, 0] = -3
    picture = mosaic_picture(maps)
    assert tile_entries(picture, 0).tolist() == [[NAN, NAN], [CONSTANT, NAN]]
    assert (picture.limits.vmin[0], picture.limits.vmax[0]) == (-3, -3)


def test_values_far_from_zero_keep_their_classes() -> None:
    """C14: what stands in for NaN must not leak into the levels of its neighbours."""
    maps = np.array([[[1e30, np.nan, 2e30], [-np.inf, 1.5e30, np.inf]]], np.float32)
    assert tile_entries(mosaic_picture(maps), 0)[0].tolist() == [0, NAN, 249]
    assert tile_entries(mosaic_picture(maps), 0)[1, [0, 2]].tolist() == [NEGINF, POSINF]


@pytest.mark.parametrize("cmap", COLORMAPS)
def test_the_legend_names_the_colours_in_the_picture(cmap: str) -> None:
    maps = np.array([[[0, np.nan, np.inf, -np.inf, 1]], [[5, 5, 5, 5, 5]]])
    picture = mosaic_picture(maps, cmap=cmap, columns=2)
    pixels = rgb(picture.png)[0]
    drawn = {entry.label: entry.colour for entry in picture.legend}
    expected = {"NaN": 1, "+Inf": 2, "-Inf": 3, "gap": 5, "constant": 6}
    assert drawn == {label: f"#{pixels[column].tobytes().hex()}" for label, column in expected.items()}


def test_masks_outrank_the_values_of_channel_maps() -> None:
    """C29: the masks come from the original dtype."""
    one = np.array([[[True, False], [False, False]]])
    maps = channel_maps(np.array([[[5, 1], [2, 3]]], np.float32), neginf=one)
    picture = mosaic_picture(maps)
    assert tile_entries(picture, 0).tolist() == [[NEGINF, 0], [124, 249]]


def test_an_infinity_that_was_finite_before_float32_is_drawn_as_the_largest_value() -> None:
    maps = channel_maps(np.array([[[0, np.inf]]], np.float32))
    picture = mosaic_picture(maps)
    assert tile_entries(picture, 0).tolist() == [[0, 249]]
    assert picture.legend == ()


@pytest.mark.parametrize("shape", [(0, 4, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
@pytest.mark.parametrize("scale", ["channel", "shared", "symmetric"])
@pytest.mark.parametrize("robust", [False, True])
def test_an_empty_layer_is_one_empty_tile_that_says_so(shape: tuple[int, int, int], scale: Scale, robust: bool) -> None:
    """C34: no boxes, no channels, no positions."""
    picture = mosaic_picture(np.zeros(shape, np.float32), scale=scale, robust=robust)
    assert picture.note == f"empty (0 elements, shape {shape})"
    assert np.unique(entries(picture.png)).tolist() == [GAP]
    assert picture.geometry.channels == ()


def test_an_empty_layer_names_the_shape_of_the_tensor_it_came_from() -> None:
    """C34: the original shape, with the batch."""
    picture = mosaic_picture(channel_maps(np.zeros((0, 7, 7), np.float32)))
    assert picture.note == "empty (0 elements, shape (1, 0, 7, 7))"


def test_order_chooses_and_arranges_channels() -> None:
    maps = np.arange(4, dtype=np.float32).reshape(4, 1, 1)
    picture = mosaic_picture(maps, order=[3, 0], columns=2, gap=1)
    assert picture.geometry.channels == (3, 0)
    assert entries(picture.png).tolist() == [[249, GAP, 0]]


def test_an_order_of_nothing_says_so() -> None:
    assert mosaic_picture(np.ones((4, 2, 2)), order=[]).note == "no channels chosen"


def test_the_same_input_gives_the_same_bytes() -> None:
    maps = np.random.default_rng(3).normal(size=(5, 9, 9))
    assert mosaic(maps) == mosaic(maps.copy()) == mosaic_picture(maps).png


def test_the_input_is_left_alone() -> None:
    maps = np.array([[[1, np.nan], [np.inf, 2]]])
    before = maps.copy()
    mosaic(maps, robust=True, scale="symmetric")
    np.testing.assert_array_equal(maps, before)


def test_a_transposed_view_is_drawn_as_it_reads() -> None:
    maps = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert mosaic(maps.transpose(0, 2, 1)) == mosaic(np.ascontiguousarray(maps.transpose(0, 2, 1)))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"page": 2}, r"no page 2; 5 channels with 4 a page have pages 0 to 1"),
        ({"page": -1}, r"no page -1"),
        ({"per_page": 0}, r"at least 1 channel, got per_page=0"),
        ({"columns": 0}, r"at least 1 column, got 0"),
        ({"gap": -1}, r"0 pixels or more, got -1"),
        ({"order": [0, 5]}, r"no channel 5; there are 5, numbered from 0"),
        ({"order": [True, False]}, r"flat list of channel numbers"),
        ({"cmap": "nope"}, r"no colormap 'nope'"),
    ],
)
def test_what_does_not_exist_is_refused_in_a_sentence(settings: dict[str, int], sentence: str) -> None:
    with pytest.raises(ViewError, match=sentence):
        mosaic(np.ones((5, 2, 2)), **({"per_page": 4} | settings))  # type: ignore[arg-type]  # wrong on purpose


def test_two_axes_are_refused() -> None:
    with pytest.raises(ViewError, match=r"\(channels, height, width\), got shape \(2, 2\)"):
        mosaic(np.ones((2, 2)))


def test_a_vector_is_a_strip_without_gaps() -> None:
    """C28: one pixel a value, side by side, over one range."""
    picture = mosaic_picture(np.arange(20, dtype=np.float32).reshape(20, 1, 1))
    assert (picture.geometry.width, picture.geometry.height) == (8, 3)
    assert picture.scale == "shared"
    assert mosaic(np.zeros((2, 1, 2), np.float32), gap=3) != mosaic(np.zeros((2, 1, 2), np.float32))


@pytest.mark.parametrize("scale", ["channel", "shared", "symmetric"])
def test_booleans_have_two_colours_with_names_under_every_scale(scale: Scale) -> None:
    """C31: false is the first colour and true the last, also where a channel has but one of them."""
    truths = np.array([[[True, False]], [[False, False]], [[True, True]]])
    picture = mosaic_picture(truths, scale=scale)
    assert [tile_entries(picture, position).tolist() for position in range(3)] == [[[249, 0]], [[0, 0]], [[249, 249]]]
    assert [(entry.label, entry.total) for entry in picture.legend[:2]] == [("false", 3), ("true", 3)]
    assert [entry.colour for entry in picture.legend[:2]] == ["#440154", "#fde724"]
    assert picture.numbers == "boolean"


def test_integers_are_known_as_such() -> None:
    """C31."""
    assert mosaic_picture(np.array([[[1, 2]]])).numbers == "integer"
    assert mosaic_picture(np.array([[[1.0, 2.0]]])).numbers == "real"


@pytest.mark.parametrize("scale", ["channel", "shared", "symmetric"])
def test_two_pictures_drawn_like_each_other_give_the_same_value_the_same_colour(scale: Scale) -> None:
    """C15 across two pictures: limits are those of both together, counted by hand."""
    one = np.array([[[0, 1]], [[2, 4]]], np.float32)
    other = np.array([[[-3, 0.5]], [[3, np.nan]]], np.float32)
    ends = {"channel": [(-3, 1), (2, 4)], "shared": [(-3, 4)] * 2, "symmetric": [(-4, 4)] * 2}[scale]
    for maps, like in ((one, other), (other, one)):
        picture = mosaic_picture(maps, scale=scale, like=like)
        for channel, (low, high) in enumerate(ends):
            place = np.rint((maps[channel].astype(np.float64) - low) / (high - low) * 249)
            assert np.array_equal(tile_entries(picture, channel), np.where(np.isnan(place), NAN, place))
        assert picture.limits.vmin.tolist() == [low for low, _ in ends]
