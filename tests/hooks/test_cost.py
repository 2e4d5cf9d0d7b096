from __future__ import annotations

import time

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.cost import hook_cost
from tests.nets import ReusedReLUNet, fingerprint, same


class Sleeper(nn.Module):
    """Takes 20 ms, so that what else a forward takes hardly counts."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.runs = 0

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        time.sleep(0.02)
        return self.linear(x)  # type: ignore[no-any-return]


def test_the_bytes_are_those_of_the_outputs_of_every_call() -> None:
    cost = hook_cost(ReusedReLUNet(), torch.ones(2, 4), layers=["relu", "first"], pairs=1)
    assert cost.by_layer == {"first": 2 * 6 * 4, "relu": 2 * (6 + 3) * 4}
    assert cost.bytes == 48 + 72


def test_times_are_seconds_and_forwards_are_counted() -> None:
    net = Sleeper()
    cost = hook_cost(net, torch.ones(1, 4), pairs=3)
    assert net.runs == 8
    assert cost.plain >= 0.02
    assert cost.recorded >= 0.02
    assert 0.1 < cost.ratio < 10


def test_the_network_is_left_as_found_in_its_own_mode() -> None:
    """O5."""
    net, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)), torch.randn(3, 4)
    before, state = fingerprint(net), torch.get_rng_state()
    hook_cost(net, x, pairs=1)
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), state)


def test_mistakes_are_said_before_anything_is_timed() -> None:
    with pytest.raises(UnknownLayerError, match="no layer 'x'"):
        hook_cost(nn.Linear(2, 2), torch.ones(1, 2), layers="x")
    with pytest.raises(HookvizError, match="pairs is 0"):
        hook_cost(nn.Linear(2, 2), torch.ones(1, 2), pairs=0)
