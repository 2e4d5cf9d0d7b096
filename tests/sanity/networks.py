"""The three networks that faults are planted in, with images that they know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import nn

from hookviz import Model, load_model, load_sample
from hookviz.sanity.items import Label


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
    """A ``resnet18`` with ten classes, trained on digits by the seeded script; here digits of another shape too."""
    wide = Image.new("RGB", (48, 32))
    wide.paste(load_sample("digit_3").resize((32, 32)), (8, 0))
    return Known(
        load=lambda: load_model("resnet18", checkpoint, "cpu"),
        images=(wide, load_sample("digit_8")),
        labels=(3, 8),
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
