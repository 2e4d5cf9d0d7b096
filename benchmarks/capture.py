"""What recording costs: every module of four networks over a plain forward, and one layer with an early end.

Run with ``python -m benchmarks.capture``. Alternating pairs in one process; the medians are to be compared, not single
runs.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import nn
from torchvision import models

from benchmarks.timing import ratio
from hookviz.hooks import record

NETWORKS = ("resnet18", "vgg16", "densenet121", "mobilenet_v3_small")

PAIRS = 40
"""Enough for the median to stand still on a machine that others use too."""


def forward(net: nn.Module, x: torch.Tensor) -> None:
    """A plain forward."""
    with torch.no_grad():
        net(x)


def recorded(net: nn.Module, x: torch.Tensor) -> None:
    """A forward with every module recorded."""
    with torch.no_grad(), record(net):
        net(x)


def first_layer(net: nn.Module, x: torch.Tensor, layer: str) -> None:
    """A forward that ends after its first layer."""
    with torch.no_grad(), record(net, layer, stop=True):
        net(x)


def main() -> None:
    """Print one line per network."""
    x = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    shares = []
    for name in NETWORKS:
        torch.manual_seed(0)
        net = models.get_model(name, weights=None).eval()
        measured = ratio(partial(recorded, net, x), partial(forward, net, x), pairs=PAIRS)
        shares.append(measured.ratio)
        print(measured.line(f"record all of {name}"))
    print(f"geometric mean of the ratios: {math.prod(shares) ** (1 / len(shares)):.3f}")
    vgg = models.vgg16(weights=None).eval()
    stopped = ratio(partial(first_layer, vgg, x, "features.0"), partial(forward, vgg, x))
    print(stopped.line("record vgg16 features.0 with stop=True"))


if __name__ == "__main__":
    main()
