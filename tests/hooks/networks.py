"""The four networks every function is tested on: plain, residual in place, concatenating, residual with a view."""

from __future__ import annotations

import copy
from functools import cache

import torch
import torchvision
from torch import Tensor, nn

from hookviz.models import load_model

NETWORKS = ("simple_cnn", "resnet18", "densenet121", "mobilenet_v2")


def network(name: str) -> nn.Module:
    """The network in eval mode, a new one at each call; those of torchvision are untrained but seeded.

    It runs on one thread for the rest of the test: on so small a batch several would only wait for each other.
    """
    torch.set_num_threads(1)
    return copy.deepcopy(_built(name))


@cache
def _built(name: str) -> nn.Module:
    if name == "simple_cnn":
        return load_model(name, device="cpu").module.eval()
    torch.manual_seed(0)
    made: nn.Module = torchvision.models.get_model(name, weights=None)
    return made.eval()


def example(name: str) -> Tensor:
    """A batch of two that the network takes."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(2, 3, 32, 32, generator=generator)
