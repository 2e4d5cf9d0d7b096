"""The same view without a page: a few lines as anybody would write them in a notebook."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image
from torch import Tensor

from hookviz.hooks import record
from hookviz.layout import channel_maps
from hookviz.models import Model, load_model
from hookviz.samples import load_sample
from hookviz.views import mosaic

ChannelValue = Callable[[npt.NDArray[np.float32]], float]


@cache
def network(name: str, weights: str | None = None) -> Model:
    """A model on the CPU; untrained unless said otherwise."""
    return load_model(name, weights, "cpu")


def output(model: Model, image: Image.Image, layer: str, call: int = 0) -> Tensor:
    with torch.no_grad(), record(model.module, [layer]) as rec:
        model.module(model.prepare(image))
    value: Tensor = rec[layer][call].output
    return value


def picture(tensor: Tensor, by: ChannelValue | None = None, **display: Any) -> bytes:
    """The mosaic's bytes; ``by`` gives each channel a value to sort by, largest first."""
    maps = channel_maps(tensor)
    order = None if by is None else sorted(range(maps.channels), key=lambda channel: -by(maps.maps[channel]))
    return mosaic(maps, order=order, **display)


def layer_picture(model: Model, image: Image.Image, layer: str, **display: Any) -> bytes:
    return picture(output(model, image, layer), **display)


def top_labels(model: Model, image: Image.Image) -> list[str]:
    with torch.no_grad():
        scores: Tensor = model.module(model.prepare(image))
    return [model.categories[index] for index in scores[0].topk(5).indices.tolist()]


def seen(model: Model, image: Image.Image) -> npt.NDArray[np.float64]:
    """The network's input in 0..1, (H, W, 3), by undoing the normalisation."""
    mean, std = (np.asarray(values)[:, None, None] for values in model.normalization)
    batch = model.prepare(image)[0].double().numpy()
    unit: npt.NDArray[np.float64] = (batch * std + mean).transpose(1, 2, 0)
    return unit


def pixels(png: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def hopper() -> Image.Image:
    return load_sample("grace_hopper")
