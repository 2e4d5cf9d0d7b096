from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.utils import flow_to_image

from hookviz.models import ClassMap, Detections, Flow, draw
from hookviz.types import Prediction

GRAY = 100


@pytest.fixture
def gray() -> Image.Image:
    return Image.new("RGB", (180, 40), (GRAY, GRAY, GRAY))


def things(*scores: float, masks: np.ndarray | None = None, keypoints: np.ndarray | None = None) -> Detections:
    """Boxes of 20 x 20, so far from each other that no caption reaches the next."""
    count = len(scores)
    boxes = [[2 + 150 * one, 15, 22 + 150 * one, 35] for one in range(count)]
    return Detections(
        boxes=np.array(boxes, dtype=np.float32).reshape(count, 4),
        classes=np.ones(count, dtype=np.int64),
        labels=("person",) * count,
        scores=np.array(scores, dtype=np.float32),
        masks=masks,
        keypoints=keypoints,
    )


def changed(before: Image.Image, after: Image.Image) -> np.ndarray:
    """Which pixels differ, (H, W)."""
    differs: np.ndarray = (np.asarray(before) != np.asarray(after)).any(axis=2)
    return differs


def test_a_box_is_drawn_around_what_is_certain(gray: Image.Image) -> None:
    differs = changed(gray, draw(gray, things(0.9, 0.49)))
    assert differs[15:36, [2, 22]].all()
    assert differs[[15, 35], 2:23].all()
    assert not differs[:, 150:].any()


def test_nothing_certain_leaves_the_picture_as_it_is(gray: Image.Image) -> None:
    """C11: and nothing found at all does too."""
    for found in (things(), things(0.2)):
        drawn = draw(gray, found)
        assert not changed(gray, drawn).any()
        assert drawn is not gray


def test_masks_and_keypoints_are_drawn_inside(gray: Image.Image) -> None:
    masks = np.zeros((1, 40, 180), dtype=bool)
    masks[0, 25:30, 5:10] = True
    assert changed(gray, draw(gray, things(0.9, masks=masks)))[25:30, 5:10].all()
    points = np.array([[[15, 30, 1], [160, 30, 0]]], dtype=np.float32)
    differs = changed(gray, draw(gray, things(0.9, keypoints=points)))
    assert differs[30, 15]
    assert not differs[:, 150:].any()


def test_a_class_map_is_fitted_to_the_picture_and_its_background_left(gray: Image.Image) -> None:
    classes = np.array([[0, 1, 2]])
    drawn = np.asarray(draw(gray, ClassMap(classes, ("background", "cat", "dog"))))
    assert (drawn[:, :60] == GRAY).all()
    cat, dog = drawn[0, 60], drawn[0, 120]
    assert (drawn[:, 60:120] == cat).all()
    assert (drawn[:, 120:] == dog).all()
    assert len({(GRAY,) * 3, tuple(cat.tolist()), tuple(dog.tolist())}) == 3


def test_optical_flow_is_torchvision_s_colours(gray: Image.Image) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 40, 180)).astype(np.float32)
    expected = flow_to_image(torch.from_numpy(vectors)).permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(np.asarray(draw(gray, Flow(vectors))), expected)


def test_a_table_of_classes_is_not_drawn(gray: Image.Image) -> None:
    with pytest.raises(TypeError, match=r"^A tuple cannot be drawn into a picture\.$"):
        draw(gray, (Prediction(0, "tench", 1.0),))


def test_results_of_other_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^boxes must be \(1, 4\) for 1 scores, got shape \(4,\)$"):
        Detections(np.zeros(4, np.float32), np.zeros(1, np.int64), ("a",), np.zeros(1, np.float32))
    with pytest.raises(ValueError, match=r"^1 scores need as many classes and labels, got 2$"):
        Detections(np.zeros((1, 4), np.float32), np.zeros(2, np.int64), ("a",), np.zeros(1, np.float32))
    with pytest.raises(ValueError, match=r"^classes must be \(height, width\), got shape \(3,\)$"):
        ClassMap(np.zeros(3, np.int64), ("a",))
    with pytest.raises(ValueError, match=r"^vectors must be \(2, height, width\), got shape \(3, 2, 2\)$"):
        Flow(np.zeros((3, 2, 2), np.float32))
