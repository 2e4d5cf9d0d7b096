from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.update import own_update
from tests.nets import InplaceReLUNet, ReusedReLUNet, fingerprint, same


def post_hooks(net: nn.Module) -> int:
    return sum(len(one._post_accumulate_grad_hooks or ()) for one in net.parameters())


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def by_hand(parameter: Tensor, *, lr: float, l1: float, l2: float, sign: bool) -> Tensor:
    assert parameter.grad is not None
    direction = parameter.grad.sign() if sign else parameter.grad
    with torch.no_grad():
        return parameter - lr * ((direction + l1 * parameter.sign()) + l2 * parameter)


@pytest.mark.parametrize(
    ("l1", "l2", "sign"), [(0.0, 0.0, False), (0.1, 0.0, False), (0.0, 0.3, True), (0.1, 0.3, True)]
)
def test_equals_the_rule_written_by_hand_to_the_last_bit(l1: float, l2: float, sign: bool) -> None:
    net = InplaceReLUNet()
    other, x = copy.deepcopy(net), picture(2, 3, 6, 6)
    other(x).square().sum().backward()
    expected = {name: by_hand(one, lr=0.05, l1=l1, l2=l2, sign=sign) for name, one in other.named_parameters()}
    with own_update(net, "0", lr=0.05, l1=l1, l2=l2, sign=sign) as updated:
        net(x).square().sum().backward()
    assert updated == ("0.weight", "0.bias")
    assert same(expected, {name: one.detach() for name, one in net.named_parameters()})


def test_the_optimizer_passes_over_the_layer_and_moves_the_others() -> None:
    net = ReusedReLUNet()
    other, x = copy.deepcopy(net), picture(5, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    plain = torch.optim.SGD(other.second.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    other(x).sum().backward()
    expected = by_hand(other.first.weight, lr=0.5, l1=0.0, l2=0.0, sign=False)
    plain.step()
    with own_update(net, "first", lr=0.5):
        net(x).sum().backward()
        assert net.first.weight.grad is None
        optimizer.step()
    assert torch.equal(net.first.weight, expected)
    assert torch.equal(net.second.weight, other.second.weight)


def test_a_layer_used_twice_steps_once_by_the_whole_gradient() -> None:
    layer = nn.Linear(3, 3)
    net, x = nn.Sequential(layer, nn.Tanh(), layer), picture(2, 3)
    other = copy.deepcopy(net)
    other(x).sum().backward()
    twin: Any = other[0]
    expected = by_hand(twin.weight, lr=0.1, l1=0.0, l2=0.0, sign=False)
    with own_update(net, "0", lr=0.1):
        net(x).sum().backward()
    assert torch.equal(layer.weight, expected)


def test_the_gradients_of_other_layers_are_those_without_it() -> None:
    """The layer's weight changes in the middle of backward; what flows on was computed with the old one."""
    net = hookviz.load_model("simple_cnn").module
    other, x = copy.deepcopy(net), picture(2, 3, 32, 32)
    other(x).square().sum().backward()
    with own_update(net, "conv2", lr=1.0):
        net(x).square().sum().backward()
    theirs: Any = other.get_parameter("conv1.weight").grad
    assert torch.equal(net.get_parameter("conv1.weight").grad, theirs)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_real_networks_with_inplace_relus(name: str) -> None:
    net = models.get_model(name, weights=None).eval()
    other, x = copy.deepcopy(net), picture(1, 3, 32, 32)
    layer = "conv1" if name == "resnet18" else "features.0.0"
    other(x).sum().backward()
    expected = by_hand(other.get_parameter(f"{layer}.weight"), lr=0.1, l1=0.0, l2=0.0, sign=False)
    with own_update(net, layer, lr=0.1):
        net(x).sum().backward()
    assert torch.equal(net.get_parameter(f"{layer}.weight"), expected)


def test_undone_after_an_error_in_the_middle() -> None:
    net = ReusedReLUNet()
    before = fingerprint(net)
    with pytest.raises(KeyboardInterrupt), own_update(net, "first", lr=0.1):
        assert post_hooks(net) == 2
        raise KeyboardInterrupt
    assert same(before, fingerprint(net))
    assert post_hooks(net) == 0
    net(picture(2, 4)).sum().backward()
    assert net.first.weight.grad is not None


def test_layers_without_trainable_parameters_are_refused() -> None:
    net = ReusedReLUNet()
    with pytest.raises(HookvizError, match="no parameter that requires a gradient"), own_update(net, "relu", lr=0.1):
        pass
    with pytest.raises(UnknownLayerError, match="did you mean 'first'"), own_update(net, "frist", lr=0.1):
        pass
