"""What every way from pictures to a network's input has in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from PIL import Image
from torch import Tensor

from hookviz.errors import ImageError, ModelError

Pictures: TypeAlias = Image.Image | Sequence[Image.Image]
"""One picture, or the frames of a moving one in their order."""

Box: TypeAlias = tuple[float, float, float, float]
"""Left, upper, right, lower, in pixels, as in ``Image.crop``."""

LARGEST_RESIZED = 100_000_000
"""Pixels. A strip of 1 x 100000 would become 256 x 25600000 before the middle is cut out."""


class Preparation(Protocol):
    """How pictures become a network's input, by the recipe of its weights."""

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel that :meth:`prepare` uses, of an image scaled to 0..1."""

    def prepare(self, pictures: Pictures) -> Tensor:
        """The network's input as one tensor on the CPU, with a batch axis."""

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """What the network is called with for a ``batch`` that :meth:`prepare` made."""

    def check(self, batch: Tensor) -> None:
        """Refuse a tensor that :meth:`prepare` cannot have made.

        Raises:
            ModelError: another shape.
        """

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees of ``image``, before they are normalised."""

    def crop_box(self, image: Image.Image) -> Box:
        """Where :meth:`view` lies in ``image``; it may reach beyond it where a border is added."""

    def note(self, pictures: Pictures) -> str:
        """A sentence where the pictures are not used as they are, else ``""``."""


class OnePicture:
    """The part of a preparation that all networks share which take one picture as one batch."""

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """The batch itself."""
        return (batch,)

    def check(self, batch: Tensor) -> None:
        """Refuse everything but one picture."""
        if batch.ndim != 4 or len(batch) != 1:
            raise ModelError(f"A prepared input has shape (1, 3, height, width), not {tuple(batch.shape)}.")

    def note(self, pictures: Pictures) -> str:
        """Says so where there are several frames, of which the first is taken."""
        count = len(as_frames(pictures))
        return "" if count == 1 else f"This network takes one picture, so only the first of {count} frames is used."


def as_frames(pictures: Any) -> list[Image.Image]:
    """The frames as RGB, one where there is one picture.

    Raises:
        ImageError: something else than pictures, or none.
    """
    frames = list(pictures) if isinstance(pictures, (list, tuple)) else [pictures]
    if not frames:
        raise ImageError("There are no frames; pass at least one picture.")
    return [as_rgb(frame) for frame in frames]


def as_rgb(image: Any) -> Image.Image:
    """``image`` in the mode RGB.

    Raises:
        ImageError: not a PIL image.
    """
    if not isinstance(image, Image.Image):
        raise ImageError(f"Expected a PIL image, got {type(image).__name__}; read a file with load_image(...).")
    return image if image.mode == "RGB" else image.convert("RGB")


def first_frame(pictures: Any) -> Image.Image:
    """The picture, or the first of several frames, as RGB."""
    return as_frames(pictures)[0]


def refuse_endless(image: Image.Image, resized: tuple[int, int]) -> None:
    """Raise where ``image`` would be resized to a (height, width) beyond any memory.

    Raises:
        ImageError: it is far too long and thin.
    """
    if resized[0] * resized[1] > LARGEST_RESIZED:
        raise ImageError(
            f"The image is {image.width} x {image.height} pixels, too long and thin to be "
            "resized for this network; crop it first."
        )


def shorter_side_resized(image: Image.Image, short: int) -> tuple[int, int]:
    """Height and width after torchvision's ``resize`` to one number: the shorter side is that, the longer cut off."""
    long = int(short * max(image.size) / min(image.size))
    return (long, short) if image.height > image.width else (short, long)


def centre_box(image: Image.Image, resized: tuple[int, int], crop: tuple[int, int]) -> Box:
    """Where the middle ``crop`` of ``image``, ``resized`` first, lies in it; both are (height, width)."""
    (height, width), (crop_height, crop_width) = resized, crop
    upper, left = _centre_offset(height, crop_height), _centre_offset(width, crop_width)
    across, down = image.width / width, image.height / height
    return left * across, upper * down, (left + crop_width) * across, (upper + crop_height) * down


def _centre_offset(side: int, crop: int) -> int:
    """Where the crops of torchvision and timm begin on a side: half to even inside, towards 0 where they pad."""
    return round((side - crop) / 2) if side >= crop else -((crop - side) // 2)
