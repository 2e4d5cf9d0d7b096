"""Networks that find things in a picture: they take it as it is, and resize and normalise inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from PIL import Image
from torch import Tensor
from torchvision.transforms._presets import ObjectDetection  # where every weights entry gets its own from

from hookviz.errors import ModelError
from hookviz.models.preparation import Box, OnePicture, Pictures, as_rgb, first_frame
from hookviz.models.results import Detections

if TYPE_CHECKING:
    from hookviz.models.model import Model

_INSIDE = 0.5
"""From this probability on a pixel belongs to a thing, as in torchvision's own examples."""


@dataclass(frozen=True)
class DetectionRecipe(OnePicture):
    """A picture of any size, scaled to 0..1: the network's first module resizes and normalises it."""

    transform: ObjectDetection

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """None: the mean 0 and the standard deviation 1."""
        return (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)

    def prepare(self, pictures: Pictures) -> Tensor:
        """The picture, (1, 3, H, W) float32 from 0 to 1 on the CPU: ``weights.transforms()(image)`` with a batch axis.

        Raises:
            ImageError: not a PIL image.
        """
        return cast("Tensor", self.transform(first_frame(pictures)).unsqueeze(0))

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """The list of (3, H, W) tensors that torchvision's detectors take."""
        return (list(batch),)

    def view(self, image: Image.Image) -> Image.Image:
        """All pixels."""
        return as_rgb(image)

    def crop_box(self, image: Image.Image) -> Box:
        """All of ``image``."""
        return 0.0, 0.0, float(image.width), float(image.height)


@dataclass(frozen=True)
class Detection:
    """Boxes with a class and a score each, and where the network has them, masks or keypoints."""

    name: str

    def check(self, model: Model, k: int) -> None:
        """Nothing can be wrong: ``k`` does not matter, and torchvision's detectors all have classes."""

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> Detections:  # noqa: ARG002 - all detections are kept, in the picture's own pixels
        """The things found in the first picture.

        Raises:
            ModelError: boxes or scores that are not finite.
        """
        found = {name: tensor.numpy() for name, tensor in output[0].items()}
        if not (np.isfinite(found["boxes"]).all() and np.isfinite(found["scores"]).all()):
            raise ModelError(f"The output of {model.name} is not finite for this image, so nothing can be said of it.")
        masks = found.get("masks")
        return Detections(
            boxes=found["boxes"],
            classes=found["labels"],
            labels=tuple(model.categories[index] for index in found["labels"].tolist()),
            scores=found["scores"],
            masks=None if masks is None else masks[:, 0] >= _INSIDE,
            keypoints=found.get("keypoints"),
        )


DETECTION = Detection("detection")
INSTANCE_SEGMENTATION = Detection("instance segmentation")
KEYPOINTS = Detection("keypoints")
