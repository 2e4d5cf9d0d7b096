from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.errors import HookvizError
from hookviz.hooks.clamp import clamp_flowing_gradients
from tests.nets import CheckpointNet, InplaceReLUNet, ResidualInplaceNet, fingerprint, same


class TwiceNet(nn.Module):
    """Uses its input by two ways inside one call."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 + x.square()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def gradients(net: nn.Module) -> dict[str, Any]:
    return {name: one.grad for name, one in net.named_parameters()}


def test_only_the_share_through_the_layer_is_clamped() -> None:
    """C40, C47: in y = conv(x); y += x the shortcut's gradient stays whole, and so does the layer's own weight's."""
    net, x = ResidualInplaceNet().double(), picture(1, 3, 5, 5).requires_grad_()
    other = copy.deepcopy(net)
    z = x.detach().clone().requires_grad_()
    y = other.conv(z)
    out = F.relu(y + x.detach())
    out.square().sum().backward()
    at_sum = 2 * out.detach()
    with clamp_flowing_gradients(net, "conv", 0.1) as clamp:
        net(x).square().sum().backward()
    assert z.grad is not None
    assert same(x.grad, z.grad.clamp(-0.1, 0.1) + at_sum)
    assert same(gradients(net), gradients(other))
    assert clamp.clamped["conv"] == int((z.grad.abs() > 0.1).sum()) > 0


def test_an_inplace_relu_itself_can_be_chosen() -> None:
    net, x = InplaceReLUNet().double(), picture(2, 3, 6, 6)
    other = copy.deepcopy(net)
    y = other[0](x)
    y.register_hook(lambda gradient: gradient.clamp(-0.5, 0.5))
    F.relu(y).square().sum().backward()
    with clamp_flowing_gradients(net, "1", 0.5):
        net(x).square().sum().backward()
    assert same(gradients(net), gradients(other))


def test_what_arrives_by_two_ways_inside_one_call_is_clamped_as_a_sum() -> None:
    """Gradients 2 and 2x: with x = -0.9 they make 0.2, though each alone is beyond the limit."""
    net, x = nn.Sequential(TwiceNet()), torch.tensor([-0.9, 3.0, -5.0], dtype=torch.float64).requires_grad_()
    with clamp_flowing_gradients(net, "0", 1.0):
        net(x).sum().backward()
    torch.testing.assert_close(x.grad, torch.tensor([0.2, 1.0, -1.0], dtype=torch.float64))


@pytest.mark.parametrize("reentrant", [False, True])
def test_inside_a_checkpoint(reentrant: bool) -> None:
    """C45"""
    net, x = CheckpointNet(reentrant=reentrant).double(), picture(2, 3).requires_grad_()
    z = x.detach().clone().requires_grad_()
    hidden = net.block[0](z)
    hidden.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
    net.head(net.block[1](hidden)).sum().backward()
    with clamp_flowing_gradients(net, "block.1", 0.01):
        net(x).sum().backward()
    torch.testing.assert_close(x.grad, z.grad)


def test_what_is_not_finite_flows_on_and_is_counted() -> None:
    """C46: an infinity clamped to the limit would hide the overflow."""
    net, x = nn.Sequential(nn.Linear(1, 3, bias=False), nn.ReLU()), torch.ones(1, 1)
    with torch.no_grad():
        net.get_parameter("0.weight").fill_(1.0)
    with clamp_flowing_gradients(net, "1", 0.5) as clamp:
        (net(x) * torch.tensor([math.inf, math.nan, 7.0])).sum().backward()
    assert same(net.get_parameter("0.weight").grad, torch.tensor([[math.inf], [math.nan], [0.5]]))
    assert (clamp.nonfinite["1"], clamp.clamped["1"], clamp.skip_step) == (2, 1, True)


@pytest.mark.parametrize(
    ("name", "layer", "after"),
    [("resnet18", "layer1", "maxpool"), ("densenet121", "features.norm5", "features.denseblock4")],
)
def test_real_networks(name: str, layer: str, after: str) -> None:
    """The layer's only input is the output of the one before it, so torch's tensor hook there is the same clamp."""
    net = hookviz.load_model(name, weights=None, device="cpu").module.double()
    other, x = copy.deepcopy(net), picture(1, 3, 32, 32)
    other.get_submodule(after).register_forward_hook(
        lambda _, __, output: output.register_hook(lambda gradient: gradient.clamp(-1e-4, 1e-4)) and None
    )
    other(x).square().sum().backward()
    before = fingerprint(net)["hooks"]
    with clamp_flowing_gradients(net, layer, 1e-4) as clamp:
        net(x).square().sum().backward()
    torch.testing.assert_close(gradients(net), gradients(other))
    assert clamp.clamped[layer] > 0
    assert fingerprint(net)["hooks"] == before


def test_a_limit_that_is_not_positive_is_refused() -> None:
    with pytest.raises(HookvizError, match="limit larger than 0"), clamp_flowing_gradients(nn.ReLU(), "", 0.0):
        pass
