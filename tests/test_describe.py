from __future__ import annotations

import pytest
import torch

from hookviz.channels import channel_statistics
from hookviz.describe import constant_channels, dead_channels, kind, size, title
from hookviz.types import LayerInfo

MAPS = torch.tensor([[[0.0, 0.0]], [[2.0, 2.0]], [[0.0, 1.0]], [[float("nan"), float("nan")]]])
"""Four channels of two values: zero everywhere, constant, neither, without a number."""


def test_a_layer_is_its_class_and_an_operation_a_call() -> None:
    assert kind(LayerInfo("conv1", "Conv2d", 1, 8)) == "Conv2d"
    assert kind(LayerInfo("layer1.0.add", "add", 3, 0, is_operation=True)) == "add()"


@pytest.mark.parametrize(
    ("shape", "text"), [((1, 64, 56, 56), "64 × 56 × 56"), ((1, 10), "10"), ((7,), "7"), ((), "scalar")]
)
def test_a_size_leaves_the_batch_out(shape: tuple[int, ...], text: str) -> None:
    assert size(shape) == text


def test_the_root_is_the_whole_network() -> None:
    assert title("conv1") == "conv1"
    assert title("") == "(whole network)"


def test_constant_and_dead_channels_are_counted() -> None:
    """By hand: channels 0 and 1 are constant, channel 0 is dead, and of channel 3 nothing is known."""
    statistics = channel_statistics(MAPS)
    assert constant_channels(statistics) == 2
    assert dead_channels(statistics, "ReLU") == 1
    assert dead_channels(statistics, "GELU") is None


def test_channels_of_one_value_are_neither_constant_nor_dead() -> None:
    statistics = channel_statistics(torch.zeros(3, 1, 1))
    assert constant_channels(statistics) is None
    assert dead_channels(statistics, "ReLU") is None
