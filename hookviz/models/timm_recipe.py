from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Any, cast

from PIL import Image
from torch import Tensor

from hookviz.models.preparation import (
    Box,
    OnePicture,
    Pictures,
    centre_box,
    first_frame,
    refuse_endless,
    shorter_side_resized,
)

_SEEN = 2
"""Of timm's transforms for evaluation, the first two resize and crop; what follows makes numbers of the pixels."""


@dataclass(frozen=True, eq=False)
class TimmRecipe(OnePicture):
    """How timm makes a network's input of an image, by its own ``transform``.

    ``config`` is what ``timm.data.resolve_data_config`` gives for the weights. Its ``crop_mode`` says what becomes of
    an image of another shape: ``"center"`` cuts off what is too long, ``"squash"`` ignores the shape, ``"border"``
    adds a border of the mean colour.
    """

    config: dict[str, Any]
    transform: Any

    @classmethod
    def of(cls, pretrained_config: dict[str, Any]) -> TimmRecipe:
        """The recipe of one of timm's ``pretrained_cfg``, as a dictionary."""
        from timm.data import create_transform, resolve_data_config  # here, since it imports a thousand architectures

        config = resolve_data_config(pretrained_cfg=pretrained_config)
        return cls(config, create_transform(**config, is_training=False))

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel, of an image scaled to 0..1."""
        return tuple(self.config["mean"]), tuple(self.config["std"])

    @property
    def input_size(self) -> tuple[int, int]:
        """Height and width of the network's input, in pixels."""
        _, height, width = self.config["input_size"]
        return height, width

    def prepare(self, pictures: Pictures) -> Tensor:
        """The network's input, (1, 3, H, W) float32 on the CPU: timm's own transform with a batch axis.

        Raises:
            ImageError: not a PIL image, or one so long and thin that resizing its shorter side would not fit in memory.
        """
        return cast("Tensor", self.transform(self._checked(pictures)).unsqueeze(0))

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees: resized and cropped, before they are normalised."""
        seen = self._checked(image)
        for step in self.transform.transforms[:_SEEN]:
            seen = step(seen)
        return seen

    def crop_box(self, image: Image.Image) -> Box:
        """Where :meth:`view` lies in ``image``, as in ``Image.crop``; with ``"border"`` it reaches beyond it."""
        return centre_box(image, self._resized_size(image), self.input_size)

    def _resized_size(self, image: Image.Image) -> tuple[int, int]:
        # As in https://github.com/huggingface/pytorch-image-models/blob/main/timm/data/transforms_factory.py
        height, width = (floor(side / self.config["crop_pct"]) for side in self.input_size)
        mode = self.config["crop_mode"]
        if mode == "squash":
            return height, width
        if mode != "border" and height == width:
            return shorter_side_resized(image, height)
        ratios = image.height / height, image.width / width
        ratio = max(ratios) if mode == "border" else min(ratios)
        return round(image.height / ratio), round(image.width / ratio)

    def _checked(self, pictures: Pictures) -> Image.Image:
        image = first_frame(pictures)
        refuse_endless(image, self._resized_size(image))
        return image
