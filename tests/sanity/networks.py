"""The three networks that faults are planted in, with images that they know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

from hookviz import Model, load_model, load_sample
from hookviz.models.recipe import Recipe
from hookviz.sanity.items import Label
from scripts.train_digits_resnet import SIDE


@dataclass(frozen=True)
class Known:
    """A network; ``inner`` is a layer with weights in its middle, ``rectified`` one whose bias decides what passes."""

    load: Callable[[], Model]
    images: tuple[Image.Image, ...]
    labels: tuple[Label, ...]
    first: str
    inner: str
    head: str
    is_grey: bool = False
    is_square: bool = False


def lite0() -> Known:
    """EfficientNet-Lite0 and Grace Hopper."""
    return Known(
        load=lambda: load_model("efficientnet_lite0", device="cpu"),
        images=(load_sample("grace_hopper"),),
        labels=("military uniform",),
        first="conv_stem",
        inner="blocks.2.0.conv_pwl",
        head="classifier",
    )


def teaching() -> Known:
    """The teaching network and its digits."""
    return Known(
        load=lambda: load_model("simple_cnn", device="cpu"),
        images=(load_sample("digit_3"), load_sample("digit_8")),
        labels=("3", 8),
        first="conv1",
        inner="conv2",
        head="fc2",
        is_grey=True,
        is_square=True,
    )


def digits_resnet(checkpoint: Path) -> Known:
    """A ``resnet18`` with ten classes, trained on digits by the seeded script, with the recipe it was trained with.

    The images are digits that it was not trained on, the first on a wider ground.
    """
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    recipe = Recipe.of(resize=SIDE, crop=SIDE, mean=mean, std=std, interpolation="bilinear")
    levels, digits = load_digits(return_X_y=True)
    pictures = [Image.fromarray((one.reshape(8, 8) * 15.9375).astype(np.uint8)) for one in levels[:40:5]]
    wide = Image.new("L", (12, 8))
    wide.paste(pictures[0], (2, 0))
    return Known(
        load=lambda: replace(load_model("resnet18", checkpoint, "cpu"), recipe=recipe),
        images=tuple(one.convert("RGB") for one in (wide, *pictures[1:])),
        labels=tuple(int(one) for one in digits[:40:5]),
        first="conv1",
        inner="layer2.0.conv1",
        head="fc",
        is_grey=True,
    )


def layer(model: Model, name: str) -> nn.Conv2d | nn.Linear:
    """A layer with weights."""
    found = model.module.get_submodule(name)
    assert isinstance(found, (nn.Conv2d, nn.Linear))
    return found
