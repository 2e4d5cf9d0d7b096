"""What video networks take: a clip of a fixed number of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import functional as transforms
from torchvision.transforms._presets import VideoClassification  # where every weights entry gets its own from

from hookviz.errors import ImageError, ModelError
from hookviz.models.preparation import (
    Box,
    Pictures,
    as_frames,
    as_rgb,
    centre_box,
    refuse_endless,
    shorter_side_resized,
)


@dataclass(frozen=True)
class ClipRecipe:
    """``length`` frames, each resized, centre cropped, scaled to 0..1 and normalised.

    Of more frames, that many are taken evenly from the first to the last; fewer are shown longer, and one picture
    stands still.
    """

    transform: VideoClassification
    length: int

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of an image scaled to 0..1."""
        return tuple(self.transform.mean), tuple(self.transform.std)

    def prepare(self, pictures: Pictures) -> Tensor:
        """The clip, (1, 3, T, H, W) float32 on the CPU: ``weights.transforms()(frames)`` with a batch axis.

        Raises:
            ImageError: not PIL images, of several sizes, or far too long and thin.
        """
        frames = as_frames(pictures)
        if len({frame.size for frame in frames}) > 1:
            raise ImageError("The frames have several sizes; a video's frames all have one.")
        refuse_endless(frames[0], self._resized_size(frames[0]))
        # Each of the frames once, though it may be shown many times: a still picture is resized once.
        wanted = frame_numbers(len(frames), self.length)
        different = sorted(set(wanted))
        made = self.transform(torch.stack([transforms.pil_to_tensor(frames[number]) for number in different]))
        clip = made[:, [different.index(number) for number in wanted]]
        return cast("Tensor", clip.unsqueeze(0))

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """The clip itself."""
        return (batch,)

    def check(self, batch: Tensor) -> None:
        """Refuse everything but one clip."""
        if batch.ndim != 5 or len(batch) != 1:
            raise ModelError(f"A prepared clip has shape (1, 3, frames, height, width), not {tuple(batch.shape)}.")

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees of one frame: resized and cropped, before they are normalised."""
        frame = as_rgb(image)
        refuse_endless(frame, self._resized_size(frame))
        pixels = transforms.resize(
            transforms.pil_to_tensor(frame),
            self.transform.resize_size,
            interpolation=self.transform.interpolation,
            antialias=False,  # as torchvision's own preset has it
        )
        return cast("Image.Image", transforms.to_pil_image(transforms.center_crop(pixels, self.transform.crop_size)))

    def crop_box(self, image: Image.Image) -> Box:
        """Where :meth:`view` lies in ``image``: left, upper, right, lower, in its pixels, as in ``Image.crop``."""
        height, width = self.transform.crop_size
        return centre_box(image, self._resized_size(image), (height, width))

    def note(self, pictures: Pictures) -> str:
        """Says how the frames became ``length``."""
        count = len(as_frames(pictures))
        if count == self.length:
            return ""
        if count == 1:
            return f"This network takes a clip, so the picture stands still for {self.length} frames."
        if count > self.length:
            return f"Of the {count} frames, {self.length} are used, evenly from the first to the last."
        return f"The {count} frames are shown longer, so that they make {self.length}."

    def _resized_size(self, image: Image.Image) -> tuple[int, int]:
        size = self.transform.resize_size
        return shorter_side_resized(image, size[0]) if len(size) == 1 else (size[0], size[1])


def frame_numbers(count: int, length: int) -> list[int]:
    """Which of ``count`` frames make a clip of ``length``: evenly, the first and the last among them where they fit."""
    if length == 1:
        return [0]
    if count >= length:
        return [round(step * (count - 1) / (length - 1)) for step in range(length)]
    return [step * count // length for step in range(length)]
