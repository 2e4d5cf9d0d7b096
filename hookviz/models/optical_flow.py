"""Networks that say where each pixel of one frame is in the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor
from torchvision.transforms._presets import OpticalFlow  # where every weights entry gets its own from

from hookviz.errors import ImageError, ModelError
from hookviz.models.preparation import Box, Pictures, as_frames, as_rgb
from hookviz.models.results import Flow

if TYPE_CHECKING:
    from hookviz.models.model import Model

_STEP, _LEAST = 8, 128
"""RAFT's sides are multiples of 8, and its four correlation levels need 128 pixels."""

LARGEST_FRAME = 1024 * 1024
"""Pixels. RAFT compares every 8 x 8 of one frame with every one of the other, which takes 1.4 GB here."""


@dataclass(frozen=True)
class FlowRecipe:
    """Two frames as they are, scaled to -1..1; edges are repeated on the right and below up to a size that fits."""

    transform: OpticalFlow

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of an image scaled to 0..1."""
        return (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)

    def prepare(self, pictures: Pictures) -> Tensor:
        """Both frames, (2, 3, H, W) float32 on the CPU: ``weights.transforms()(first, second)``, one after the other.

        Raises:
            ImageError: not PIL images, of two sizes, or too large to be compared.
        """
        frames = as_frames(pictures)
        first, second = frames[0], frames[min(1, len(frames) - 1)]
        if first.size != second.size:
            raise ImageError(f"The frames are {_sides(first)} and {_sides(second)} pixels; both must have one size.")
        if first.width * first.height > LARGEST_FRAME:
            raise ImageError(
                f"The frames are {_sides(first)} pixels, and comparing all their pixels would not fit in memory; "
                "shrink them to 1024 x 1024 first."
            )
        pair = torch.stack(self.transform(first, second))
        down, right = (max(_LEAST, -(-side // _STEP) * _STEP) - side for side in pair.shape[2:])
        return F.pad(pair, (0, right, 0, down), mode="replicate") if down or right else pair

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """The two frames, (1, 3, H, W) each."""
        return batch[:1], batch[1:]

    def check(self, batch: Tensor) -> None:
        """Refuse everything but two frames."""
        if batch.ndim != 4 or len(batch) != 2:
            raise ModelError(f"A prepared pair of frames has shape (2, 3, height, width), not {tuple(batch.shape)}.")

    def view(self, image: Image.Image) -> Image.Image:
        """All pixels."""
        return as_rgb(image)

    def crop_box(self, image: Image.Image) -> Box:
        """All of ``image``."""
        return 0.0, 0.0, float(image.width), float(image.height)

    def note(self, pictures: Pictures) -> str:
        """Says which two frames are compared, where there are not two."""
        count = len(as_frames(pictures))
        if count == 1:
            return "This network compares two frames, so the picture is compared with itself."
        return "" if count == 2 else f"Only the first two of {count} frames are compared."


def _sides(image: Image.Image) -> str:
    return f"{image.width} x {image.height}"


@dataclass(frozen=True)
class FlowTask:
    """Where each pixel of the first frame went."""

    name: str = "optical flow"

    def check(self, model: Model, k: int) -> None:
        """Nothing can be wrong: neither ``k`` nor classes matter."""

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> Flow:  # noqa: ARG002 - there is nothing to rank
        """The last of RAFT's refinements, without the repeated edges where the frames' ``size`` is known.

        Raises:
            ModelError: vectors that are not finite.
        """
        vectors: Tensor = output[-1][0].float()
        if not vectors.isfinite().all():
            raise ModelError(f"The output of {model.name} is not finite for these frames.")
        height, width = size or vectors.shape[1:]
        return Flow(vectors[:, :height, :width].numpy())


OPTICAL_FLOW = FlowTask()
