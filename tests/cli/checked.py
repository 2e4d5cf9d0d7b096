"""Networks and folders of images for ``hookviz check``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from hookviz.bundled import bundled_file

NETS = """\
import time
from pathlib import Path

import torch
from torch import nn

from hookviz import Network, load_model

teaching = load_model("simple_cnn", device="cpu")


def broken():
    network = load_model("simple_cnn", device="cpu")
    with torch.no_grad():
        network.module.conv2.weight[3, 0, 0, 0] = float("nan")
    return Network(network.module, network.prepare, network.categories)


class Slow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = load_model("simple_cnn", device="cpu").module

    def forward(self, x):
        if Path("be slow").exists():
            time.sleep(0.12)
        return self.net(x)


def slow():
    return Network(Slow(), teaching.prepare, teaching.categories)


def unnormalised(image):
    return (teaching.prepare(image) + 1) / 2
"""


def write_nets(folder: Path) -> None:
    """``nets.py``: the teaching network with NaN in it, and one that is slow while there is a file ``be slow``."""
    (folder / "nets.py").write_text(NETS)


def write_digits(folder: Path, count: int) -> None:
    """The first handwritten digits of 8 × 8 pixels, the one numbered 7 as ``007.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, values in enumerate(load_digits().images[:count]):
        Image.fromarray((values * 15.9).astype(np.uint8)).save(folder / f"{number:03}.png")


def copy_sample(name: str, path: Path) -> None:
    """A bundled PNG as a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bundled_file(f"{name}.png").read_bytes())


def strict(text: str) -> Any:
    """JSON without NaN and infinities."""
    return json.loads(text, parse_constant=pytest.fail)
