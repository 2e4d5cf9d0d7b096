from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as transforms
from torchvision.transforms._presets import ImageClassification  # where every weights entry gets its own from

from hookviz.models.preparation import (
    Box,
    OnePicture,
    Pictures,
    centre_box,
    first_frame,
    refuse_endless,
    shorter_side_resized,
)


@dataclass(frozen=True)
class Recipe(OnePicture):
    """How an image becomes a network's input: shorter side resized, centre cropped, scaled to 0..1, normalised.

    ``transform`` is torchvision's own object for the weights, so that the input is the one they were measured with.
    """

    transform: ImageClassification

    @classmethod
    def of(
        cls, *, resize: int, crop: int, mean: tuple[float, ...], std: tuple[float, ...], interpolation: str
    ) -> Recipe:
        """A recipe from its numbers: sizes in pixels, ``mean`` and ``std`` per channel of an image scaled to 0..1."""
        return cls(
            ImageClassification(
                resize_size=resize, crop_size=crop, mean=mean, std=std, interpolation=InterpolationMode(interpolation)
            )
        )

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of an image scaled to 0..1."""
        return tuple(self.transform.mean), tuple(self.transform.std)

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the network's input, in pixels."""
        height, width = self.transform.crop_size[0], self.transform.crop_size[-1]
        return height, width

    def prepare(self, pictures: Pictures) -> Tensor:
        """The network's input, (1, 3, H, W) float32 on the CPU: ``weights.transforms()(image)`` with a batch axis.

        Raises:
            ImageError: not a PIL image, or one so long and thin that resizing its shorter side would not fit in memory.
        """
        return cast("Tensor", self.transform(self._checked(first_frame(pictures))).unsqueeze(0))

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees: resized and cropped, before they are normalised."""
        resized = transforms.resize(
            self._checked(first_frame(image)), self.transform.resize_size, interpolation=self.transform.interpolation
        )
        return cast("Image.Image", transforms.center_crop(resized, self.transform.crop_size))

    def crop_box(self, image: Image.Image) -> Box:
        """Where :meth:`view` lies in ``image``: left, upper, right, lower, in its pixels, as in ``Image.crop``."""
        return centre_box(image, self._resized_size(image), self.input_size)

    def _resized_size(self, image: Image.Image) -> tuple[int, int]:
        return shorter_side_resized(image, self.transform.resize_size[0])

    def _checked(self, image: Image.Image) -> Image.Image:
        refuse_endless(image, self._resized_size(image))
        return image
