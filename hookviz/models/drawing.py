"""Results drawn into their picture with torchvision's own utilities."""

from __future__ import annotations

from functools import singledispatch

import torch
from PIL import Image
from torch import Tensor
from torchvision import utils
from torchvision.transforms import functional as transforms

from hookviz.models.preparation import as_rgb
from hookviz.models.results import ClassMap, Detections, Flow

CERTAIN = 0.5
"""Things with a smaller score are not drawn: a detector returns up to 300, most of them guesses."""

_OPACITY = 0.6
_POINT = "yellow"


def draw(image: Image.Image, result: object) -> Image.Image:
    """The ``image`` with a network's ``result`` in it, in the image's own size.

    Boxes with class and score, masks and keypoints of things with a score of at least ``CERTAIN``; one colour per class
    of a class map, the background left as it is; of optical flow only the colours: hue for the direction, saturation
    for the length.

    Raises:
        TypeError: not a result that can be drawn; class probabilities are a table.
    """
    return _drawn(result, as_rgb(image))


@singledispatch
def _drawn(result: object, picture: Image.Image) -> Image.Image:  # noqa: ARG001 - what cannot be drawn needs no picture
    raise TypeError(f"A {type(result).__name__} cannot be drawn into a picture.")


@_drawn.register
def _draw_detections(result: Detections, picture: Image.Image) -> Image.Image:
    found = result.above(CERTAIN)
    if not len(found):
        return picture.copy()
    pixels = transforms.pil_to_tensor(picture)
    if found.masks is not None:
        pixels = utils.draw_segmentation_masks(pixels, torch.from_numpy(found.masks), alpha=_OPACITY)
    captions = [f"{label} {score:.2f}" for label, score in zip(found.labels, found.scores, strict=True)]
    width = max(1, round(max(picture.size) / 300))
    pixels = utils.draw_bounding_boxes(pixels, torch.from_numpy(found.boxes), captions, width=width)
    if found.keypoints is not None:
        points = torch.from_numpy(found.keypoints)
        visible = points[:, :, 2] > 0
        pixels = utils.draw_keypoints(pixels, points[:, :, :2], visibility=visible, colors=_POINT, radius=2 * width)
    return _picture(pixels)


@_drawn.register
def _draw_class_map(result: ClassMap, picture: Image.Image) -> Image.Image:
    classes = torch.from_numpy(result.classes)[None]
    fitted = transforms.resize(classes, [picture.height, picture.width], transforms.InterpolationMode.NEAREST)[0]
    # Class 0 is the background of all of torchvision's weights.
    masks = torch.stack([fitted == index for index in range(1, len(result.categories))])
    return _picture(utils.draw_segmentation_masks(transforms.pil_to_tensor(picture), masks, alpha=_OPACITY))


@_drawn.register
def _draw_flow(result: Flow, picture: Image.Image) -> Image.Image:
    colours = _picture(utils.flow_to_image(torch.from_numpy(result.vectors)))
    return colours if colours.size == picture.size else colours.resize(picture.size, Image.Resampling.NEAREST)


def _picture(pixels: Tensor) -> Image.Image:
    picture: Image.Image = transforms.to_pil_image(pixels)
    return picture
