from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.penalty import PenaltyKind, activity_penalty
from tests.nets import CheckpointNet, InplaceReLUNet, ResidualInplaceNet, ReusedReLUNet, fingerprint, same

FORMULA = {"l1": lambda y: y.abs().sum(), "l2": lambda y: y.square().sum()}


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def gradients(net: nn.Module) -> dict[str, Any]:
    return {name: one.grad for name, one in net.named_parameters()}


@pytest.mark.parametrize("kind", ["l1", "l2"])
def test_equals_the_sum_of_both_losses_though_a_relu_overwrites_the_layer(kind: PenaltyKind) -> None:
    """C01: the penalty is on values before the in-place ReLU, negative ones included."""
    net = InplaceReLUNet()
    other, x = copy.deepcopy(net), picture(2, 3, 6, 6)
    y = other[0](x)
    penalty = 0.25 * FORMULA[kind](y)
    (y.clamp(min=0).square().sum() + penalty).backward()
    with activity_penalty(net, "0", 0.25, kind) as seen:
        net(x).square().sum().backward()
    assert same(gradients(net), gradients(other))
    assert seen.value == pytest.approx(penalty.item(), rel=1e-6)


def test_every_call_of_a_reused_layer_counts() -> None:
    """C02"""
    net = ReusedReLUNet()
    other, x = copy.deepcopy(net), picture(5, 4)
    hidden = other.relu(other.first(x))
    out = other.relu(other.second(hidden))
    (out.sum() + 0.5 * hidden.square().sum() + 0.5 * out.square().sum()).backward()
    with activity_penalty(net, "relu", 0.5, "l2") as seen:
        net(x).sum().backward()
        net(x)
    torch.testing.assert_close(gradients(net), gradients(other))
    expected = 0.5 * (hidden.square().sum() + out.square().sum()).item()
    assert seen.value == pytest.approx(expected, rel=1e-6)  # of the last forward, not of both


def test_before_an_inplace_sum() -> None:
    """C07: ``y += x`` follows the layer."""
    net = ResidualInplaceNet()
    other, x = copy.deepcopy(net), picture(1, 3, 5, 5)
    y = other.conv(x)
    (torch.relu(y + x).sum() + 0.1 * y.abs().sum()).backward()
    with activity_penalty(net, "conv", 0.1):
        net(x).sum().backward()
    assert same(gradients(net), gradients(other))


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_checkpointed_layers_are_charged_once(reentrant: bool | None) -> None:
    """C45"""
    net = CheckpointNet(reentrant=reentrant)
    other, x = copy.deepcopy(net), picture(2, 3).requires_grad_()
    hidden = other.block(x)
    (other.head(hidden).sum() + 0.5 * hidden.abs().sum()).backward()
    with activity_penalty(net, "block", 0.5) as seen:
        net(x).sum().backward()
    torch.testing.assert_close(gradients(net), gradients(other))
    assert seen.value == pytest.approx(0.5 * hidden.abs().sum().item(), rel=1e-6)


@pytest.mark.parametrize(
    ("name", "layer"), [("resnet18", "bn1"), ("densenet121", "features.norm0"), ("simple_cnn", "conv2")]
)
def test_real_networks(name: str, layer: str) -> None:
    net = hookviz.load_model(name, weights=None, device="cpu").module
    other, x = copy.deepcopy(net), picture(1, 3, 32, 32)
    kept: list[Tensor] = []
    other.get_submodule(layer).register_forward_hook(lambda _, __, output: kept.append(output.clone()))
    out = other(x).sum()
    (out + 0.01 * kept[0].square().sum()).backward()
    with activity_penalty(net, layer, 0.01, "l2"):
        net(x).sum().backward()
    torch.testing.assert_close(gradients(net), gradients(other), rtol=1e-4, atol=1e-4)
    before_layer = next(iter(net.parameters())).grad
    assert before_layer is not None
    assert before_layer.abs().max() > 0


def test_undone_after_an_error_in_the_middle() -> None:
    net, x = InplaceReLUNet(), picture(1, 3, 6, 6)
    before = fingerprint(net)
    with pytest.raises(KeyboardInterrupt), activity_penalty(net, "0", 1.0):
        loss = net(x).sum()
        raise KeyboardInterrupt
    assert same(before, fingerprint(net))
    loss.backward()
    plain = copy.deepcopy(net)
    plain.zero_grad()
    plain(x).sum().backward()
    assert same(gradients(net), gradients(plain))  # C44: a hook that was removed charges nothing


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownLayerError), activity_penalty(InplaceReLUNet(), "9", 1.0):
        pass
    unknown: Any = "l3"
    with (
        pytest.raises(HookvizError, match="choose one of l1, l2"),
        activity_penalty(InplaceReLUNet(), "0", 1.0, unknown),
    ):
        pass
