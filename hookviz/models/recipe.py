from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as transforms
from torchvision.transforms._presets import ImageClassification  # where every weights entry gets its own from

from hookviz.errors import ImageError

LARGEST_RESIZED = 100_000_000
"""Pixels. A strip of 1 x 100000 would become 256 x 25600000 before the middle is cut out."""


@dataclass(frozen=True)
class Recipe:
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

    def prepare(self, image: Image.Image) -> Tensor:
        """The network's input, (1, 3, H, W) float32 on the CPU: ``weights.transforms()(image)`` with a batch axis.

        Raises:
            ImageError: not a PIL image, or one so long and thin that resizing its shorter side would not fit in memory.
        """
        return cast("Tensor", self.transform(self._checked(image)).unsqueeze(0))

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees: resized and cropped, before they are normalised."""
        resized = transforms.resize(
            self._checked(image), self.transform.resize_size, interpolation=self.transform.interpolation
        )
        return cast("Image.Image", transforms.center_crop(resized, self.transform.crop_size))

    def crop_box(self, image: Image.Image) -> tuple[float, float, float, float]:
        """Where :meth:`view` lies in ``image``: left, upper, right, lower, in its pixels, as in ``Image.crop``."""
        height, width = self._resized_size(image)
        crop_height, crop_width = self.input_size
        # torchvision's center_crop rounds the offset like this, half to even.
        upper, left = round((height - crop_height) / 2), round((width - crop_width) / 2)
        across, down = image.width / width, image.height / height
        return left * across, upper * down, (left + crop_width) * across, (upper + crop_height) * down

    def _resized_size(self, image: Image.Image) -> tuple[int, int]:
        short = self.transform.resize_size[0]
        long = int(short * max(image.size) / min(image.size))
        return (long, short) if image.height > image.width else (short, long)

    def _checked(self, image: Any) -> Image.Image:
        if not isinstance(image, Image.Image):
            raise ImageError(f"Expected a PIL image, got {type(image).__name__}; read a file with load_image(...).")
        height, width = self._resized_size(image)
        if height * width > LARGEST_RESIZED:
            raise ImageError(
                f"The image is {image.width} x {image.height} pixels, too long and thin to be "
                "resized for this network; crop it first."
            )
        return image if image.mode == "RGB" else image.convert("RGB")
