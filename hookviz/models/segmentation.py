"""Networks that give each pixel a class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from PIL import Image
from torch import Tensor
from torchvision.transforms import functional as transforms
from torchvision.transforms._presets import SemanticSegmentation  # where every weights entry gets its own from

from hookviz.errors import ModelError
from hookviz.models.preparation import Box, OnePicture, Pictures, first_frame, refuse_endless, shorter_side_resized
from hookviz.models.results import ClassMap

if TYPE_CHECKING:
    from hookviz.models.model import Model


@dataclass(frozen=True)
class SegmentationRecipe(OnePicture):
    """The whole picture with its shorter side resized, scaled to 0..1, normalised."""

    transform: SemanticSegmentation

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of an image scaled to 0..1."""
        return tuple(self.transform.mean), tuple(self.transform.std)

    def prepare(self, pictures: Pictures) -> Tensor:
        """The network's input, (1, 3, H, W) float32 on the CPU: ``weights.transforms()(image)`` with a batch axis.

        Raises:
            ImageError: not a PIL image, or one so long and thin that resizing its shorter side would not fit in memory.
        """
        return cast("Tensor", self.transform(self._checked(pictures)).unsqueeze(0))

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees: resized, before they are normalised."""
        resized = transforms.resize(
            self._checked(image), self.transform.resize_size, interpolation=self.transform.interpolation
        )
        return cast("Image.Image", resized)

    def crop_box(self, image: Image.Image) -> Box:
        """All of ``image``."""
        return 0.0, 0.0, float(image.width), float(image.height)

    def _checked(self, pictures: Pictures) -> Image.Image:
        image = first_frame(pictures)
        refuse_endless(image, shorter_side_resized(image, self.transform.resize_size[0]))
        return image


@dataclass(frozen=True)
class Segmentation:
    """The most probable class of each pixel."""

    name: str = "segmentation"

    def check(self, model: Model, k: int) -> None:
        """Nothing can be wrong: ``k`` does not matter, and torchvision's networks all have classes."""

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> ClassMap:  # noqa: ARG002 - every pixel has one class, whatever the picture's size
        """The class with the largest value per pixel, of the picture as the network saw it; equal ones by index.

        Raises:
            ModelError: values that are not finite.
        """
        scores: Tensor = output["out"][0].float()
        if not scores.isfinite().all():
            raise ModelError(f"The output of {model.name} is not finite for this image, so its classes have no order.")
        return ClassMap(scores.numpy().argmax(axis=0), model.categories)


SEGMENTATION = Segmentation()
