from __future__ import annotations

import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.views import cluster_colours, cluster_picture, pca_picture
from hookviz.views.palette import NAN, palette
from tests.views.decoding import rgb

MAGENTA = palette("viridis")[NAN].tolist()


def test_colours_are_those_given_and_the_unknown_stand_out() -> None:
    """C14, C26, C80."""
    colours = np.array([[[0, 0.5, 1], [1, 0, 0], [np.nan] * 3]], np.float32)
    assert rgb(pca_picture(colours)).tolist() == [[[0, 128, 255], [255, 0, 0], MAGENTA]]


def test_each_group_has_its_own_colour_and_the_unknown_stand_out() -> None:
    labels = np.array([[0, 1, -1], [2, 0, 1]])
    drawn = rgb(cluster_picture(labels))
    first, second, third = ([int(one[place : place + 2], 16) for place in (1, 3, 5)] for one in cluster_colours(3))
    assert drawn.tolist() == [[first, second, MAGENTA], [third, first, second]]


@pytest.mark.parametrize("groups", [1, 10, 11, 20])
def test_colours_of_groups_differ(groups: int) -> None:
    assert len(set(cluster_colours(groups))) == groups
    assert cluster_colours(2)[:1] == cluster_colours(10)[:1] == ("#1f77b4",)


def test_a_picture_of_unknown_positions_alone_can_be_drawn() -> None:
    assert (rgb(cluster_picture(np.full((2, 2), -1))) == MAGENTA).all()
    assert (rgb(pca_picture(np.full((2, 2, 3), np.nan))) == MAGENTA).all()


def test_other_shapes_are_refused_in_a_sentence() -> None:
    with pytest.raises(ViewError, match=r"colours of positions are \(height, width, 3\), got shape \(2, 2\)"):
        pca_picture(np.ones((2, 2)))
    with pytest.raises(ViewError, match=r"labels of positions are \(height, width\), got shape \(4,\)"):
        cluster_picture(np.ones(4, int))
