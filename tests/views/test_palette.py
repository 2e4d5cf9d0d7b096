from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import COLORMAPS
from hookviz.views.palette import LEVELS, colour_distances, css, palette


@pytest.mark.parametrize("cmap", COLORMAPS)
def test_both_ends_are_the_colormaps_own(cmap: str) -> None:
    """C80: the pixels of the lowest and the highest value equal matplotlib's colours."""
    colours = palette(cmap)
    assert tuple(colours[0]) == mpl.colormaps[cmap](0 / 255, bytes=True)[:3]
    assert tuple(colours[LEVELS - 1]) == mpl.colormaps[cmap](255 / 255, bytes=True)[:3]


def test_viridis_runs_from_purple_to_yellow() -> None:
    """C80: known numbers, so that red and blue cannot be exchanged unnoticed."""
    assert palette("viridis")[0].tolist() == [68, 1, 84]
    assert palette("viridis")[LEVELS - 1].tolist() == [253, 231, 36]


@pytest.mark.parametrize("cmap", COLORMAPS)
def test_every_class_stands_apart_from_every_level_and_class(cmap: str) -> None:
    classes = palette(cmap)[LEVELS:]
    assert colour_distances(classes, palette(cmap)[:LEVELS]).min() >= 20
    between = colour_distances(classes, classes)
    assert between[~np.eye(len(classes), dtype=bool)].min() >= 20


def test_colour_distances_agree_with_published_lab_values() -> None:
    black_white_red = np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0]], np.uint8)
    # Red is L 53.24, a 80.09, b 67.20 under D65: its distance from black is the length of that vector.
    expected = [[0, 100.0, 117.33], [100.0, 0, 114.54]]
    np.testing.assert_allclose(colour_distances(black_white_red[:2], black_white_red), expected, atol=0.1)


def test_a_palette_holds_at_most_256_entries() -> None:
    assert palette("turbo").shape == (255, 3)


def test_an_unknown_colormap_is_refused_by_name() -> None:
    with pytest.raises(ViewError, match=r"no colormap 'virids'; choose one of viridis, magma"):
        palette("virids")


def test_css_is_the_palette_entry_in_hexadecimal() -> None:
    assert css("viridis", 0) == "#440154"
