"""How a picture becomes the input of somebody's own network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torchvision.transforms import functional as transforms

from hookviz.errors import HookvizError, ModelError
from hookviz.hooks.structure import leaves, map_leaves
from hookviz.models.preparation import Box, OnePicture, Pictures, as_frames, first_frame
from hookviz.models.timm_recipe import TimmRecipe

_SIDE = 224
"""Pixels, where neither the network nor an example input says how large a picture it takes."""

Normalization = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation per channel, of an image scaled to 0..1."""

IMAGENET: Normalization = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""What torchvision's and timm's ImageNet weights were trained with, and most networks trained since."""


@dataclass(frozen=True, eq=False)
class OwnRecipe(OnePicture):
    """The network's own ``prepare``, or one that follows from what is known of it; ``said`` says which.

    ``example`` is the tuple of arguments that the network takes, in which ``place`` is where the picture goes: the path
    of a tensor, None where no picture fits and the example itself is the input.
    """

    make: Callable[[Image.Image], Any]
    normalization: Normalization
    said: str = ""
    example: tuple[Any, ...] | None = None
    place: str | None = None

    @classmethod
    def of(cls, module: nn.Module, prepare: Callable[[Image.Image], Any] | None, example: Any) -> OwnRecipe:
        """The recipe for a network, with what its factory said about it."""
        arguments = example if isinstance(example, tuple) or example is None else (example,)
        tensors = dict(leaves(arguments, Tensor))
        place = next((path for path, tensor in tensors.items() if _holds_picture(tensor)), None)
        make, normalization, said = _preparation(module, prepare, None if place is None else tensors[place])
        if arguments is not None and place is None:
            said = "This network takes no picture, so its example input is used."
        return cls(make, normalization, said, arguments, place)

    def prepare(self, pictures: Pictures) -> Tensor:
        """The network's input as one tensor on the CPU; (1, C, H, W) where it takes a picture.

        Raises:
            ImageError: not a PIL image.
            ModelError: the network's own ``prepare`` fails, or gives no tensor.
        """
        picture = first_frame(pictures)
        if self.example is not None and self.place is None:
            return _first_tensor(self.example)
        return prepared_by(self.make, picture, whose="The network's prepare")

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """The batch, among the other arguments where there are any."""
        if self.example is None:
            return (batch,)
        place = self.place if self.place is not None else next(leaves(self.example, Tensor))[0]
        return cast(
            "tuple[Any, ...]",
            map_leaves(self.example, Tensor, lambda path, one: batch if path == place else one.to(batch.device)),
        )

    def check(self, batch: Tensor) -> None:
        """Every tensor may be right: the network itself knows."""

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees, or the picture where its input cannot be turned back into pixels."""
        pixels = self.pixels(self.prepare(image))
        return as_frames(image)[0] if pixels is None else Image.fromarray(pixels)

    def pixels(self, batch: Tensor) -> np.ndarray | None:
        """A batch of :meth:`prepare` as (H, W, 3) uint8; None where it has no picture in it.

        Where nothing tells what ``prepare`` subtracted and divided by, the values are stretched from black to white.
        """
        if batch.ndim != 4 or batch.shape[1] not in {1, 3}:
            return None
        mean, std = (torch.tensor(values, dtype=torch.float64)[:, None, None] for values in self.normalization)
        unit = batch[0].detach().cpu().double() * std + mean
        if unit.min() < -0.02 or unit.max() > 1.02:
            unit = (unit - unit.min()) / (unit.max() - unit.min()).clamp_min(1e-12)
        return (unit.clamp(0, 1) * 255).round().byte().expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()

    def crop_box(self, image: Image.Image) -> Box:
        """All of ``image``: what a network's own ``prepare`` cuts off is not known."""
        return 0.0, 0.0, float(image.width), float(image.height)

    def note(self, pictures: Pictures) -> str:
        """Says what was assumed."""
        return " ".join(filter(None, (self.said, super().note(pictures))))


def prepared_by(make: Callable[[Image.Image], Any], picture: Image.Image, *, whose: str) -> Tensor:
    """What somebody's own function makes of a picture, with a batch axis; ``whose`` names it where it cannot be used.

    Raises:
        ModelError: it fails, or gives no tensor.
    """
    try:
        made = make(picture)
    except HookvizError:
        raise
    except Exception as error:  # it is somebody else's code
        raise ModelError(f"{whose} failed with {type(error).__name__}: {error}") from error
    if not isinstance(made, Tensor):
        raise ModelError(f"{whose} gives {type(made).__name__}; let it return a tensor (C, H, W) or (1, C, H, W).")
    return made.unsqueeze(0) if made.ndim == 3 else made


def _preparation(
    module: nn.Module, prepare: Callable[[Image.Image], Any] | None, example: Tensor | None
) -> tuple[Callable[[Image.Image], Any], Normalization, str]:
    if prepare is not None:
        return prepare, _normalization(prepare), ""
    config = getattr(module, "pretrained_cfg", None)
    if isinstance(config, dict) and example is None:
        recipe = TimmRecipe.of(config)
        return recipe.prepare, recipe.normalization, ""
    channels = _channels(module) if example is None else example.shape[-3]
    height, width = (_SIDE, _SIDE) if example is None else example.shape[-2:]
    if channels not in {1, 3}:
        raise ModelError(f"The network takes {channels} channels; give it a prepare that makes them of a picture.")
    normalization = IMAGENET if channels == 3 else ((0.0,), (1.0,))
    numbers = "normalised as for ImageNet" if channels == 3 else "made grey from 0 to 1"
    said = f"The network has no prepare of its own, so the picture is cut to {width} × {height} and {numbers}."
    return lambda picture: _fitted(picture, channels, (height, width), normalization), normalization, said


def _fitted(picture: Image.Image, channels: int, size: tuple[int, int], normalization: Normalization) -> Tensor:
    height, width = size
    fitted = ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR)
    unit = transforms.to_tensor(fitted if channels == 3 else fitted.convert("L"))
    return cast("Tensor", transforms.normalize(unit, *normalization))


def _channels(module: nn.Module) -> int:
    """What the first convolution takes."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d) and not is_lazy(layer.weight):
            return layer.in_channels
    return 3


def _normalization(prepare: Any) -> Normalization:
    """Mean and standard deviation of torchvision's transforms, and of a Compose that ends with one that has them."""
    for transform in reversed([prepare, *getattr(prepare, "transforms", ())]):
        mean, std = getattr(transform, "mean", None), getattr(transform, "std", None)
        if mean is not None and std is not None:
            return tuple(map(float, mean)), tuple(map(float, std))
    return (0.0,), (1.0,)


def _holds_picture(tensor: Tensor) -> bool:
    return tensor.ndim in {3, 4} and tensor.is_floating_point() and min(tensor.shape[-2:]) > 1


def _first_tensor(arguments: tuple[Any, ...]) -> Tensor:
    for _, tensor in leaves(arguments, Tensor):
        return tensor
    raise ModelError("The network's example input holds no tensor; give what the module is called with.")
