"""What layers returned, found without hookviz's hooks."""

from __future__ import annotations

from functools import cache

import torch
from PIL import Image
from torch import Tensor

from hookviz.models import Model, load_model
from hookviz.samples import load_sample
from tests.nets import clones_at_hook_time


@cache
def network(name: str, weights: str | None = "default") -> Model:
    """A model on the CPU."""
    return load_model(name, weights, "cpu")


def returned(name: str, image: Image.Image | str, weights: str | None = "default") -> dict[str, list[Tensor]]:
    """Every layer's calls, by torch's own hooks that clone at once, on a deepcopy; of a picture or a sample."""
    model = network(name, weights)
    picture = load_sample(image) if isinstance(image, str) else image
    with torch.no_grad():
        _, seen = clones_at_hook_time(model.module, model.prepare(picture))
    return seen
