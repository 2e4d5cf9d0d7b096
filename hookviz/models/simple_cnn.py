from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.bundled import bundled_file
from hookviz.models.architecture import Architecture, TrainedWeights
from hookviz.models.initialization import skipped_initialization
from hookviz.models.recipe import Recipe

NAME = "simple_cnn"
WEIGHTS_FILE = "simple_cnn.safetensors"
RECIPE = Recipe.of(resize=32, crop=32, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), interpolation="bilinear")
CATEGORIES = tuple("0123456789")
_SOURCE = "hookviz simple_cnn, MIT"


class SimpleCNN(nn.Module):
    """The small network of hook tutorials, for 32x32 images: two convolutions, two linear layers, ten digits.

    Its ReLUs are functions, not modules, so hooks see each layer's output before it is rectified.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, kernel_size=3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.fc1 = nn.Linear(32 * 8 * 8, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, 10) of images (N, 3, 32, 32)."""
        features = self.pool(F.relu(self.conv1(images)))
        features = self.pool(F.relu(self.conv2(features)))
        hidden = F.relu(self.fc1(features.flatten(1)))
        logits: Tensor = self.fc2(hidden)
        return logits


def architecture() -> Architecture:
    """The teaching network, trained on scikit-learn's handwritten digits by ``scripts/train_simple_cnn.py``."""
    weights = TrainedWeights(
        name="bundled",
        recipe=RECIPE,
        categories=CATEGORIES,
        source=f"{_SOURCE}, trained on the UCI handwritten digits (CC BY 4.0)",
        build=lambda _: _trained(),
    )
    return Architecture(name=NAME, source=_SOURCE, build=SimpleCNN, trained=(weights,))


def _trained() -> nn.Module:
    from safetensors.torch import load_file  # here, since most models never need it

    with skipped_initialization():
        module = SimpleCNN()
    module.load_state_dict(load_file(bundled_file(WEIGHTS_FILE)))
    return module
