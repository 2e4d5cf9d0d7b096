from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

import hookviz
from hookviz.errors import HookvizError
from hookviz.hooks.clamp import clamp_flowing_gradients
from hookviz.hooks.clip import ClipReport, clip_parameter_gradients
from tests.nets import CheckpointNet, ReusedReLUNet, fingerprint, hook_count, same

NAN, INF = math.nan, math.inf


class GivenGradients(nn.Module):
    """Parameters whose gradients are the given numbers."""

    def __init__(self, **gradients: list[float]) -> None:
        super().__init__()
        self.given = {name: torch.tensor(values) for name, values in gradients.items()}
        for name, values in self.given.items():
            self.register_parameter(name, nn.Parameter(torch.zeros_like(values)))

    def forward(self) -> Tensor:
        return sum(((self.get_parameter(name) * values).sum() for name, values in self.given.items()), torch.zeros(()))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def gradients(net: nn.Module) -> dict[str, Any]:
    return {name: one.grad for name, one in net.named_parameters()}


def report(net: nn.Module, factor: float = 1.0, **limits: Any) -> ClipReport:
    with clip_parameter_gradients(net, **limits) as clipping:
        (net() * factor).backward()
    assert clipping.last is not None
    return clipping.last


@pytest.mark.parametrize("scale", [1.0, 1024.0])
def test_the_whole_model_is_clipped_by_its_global_norm(scale: float) -> None:
    """C47: norms 3 and 4, limit 1: both by 1/5, and the norm reported is 5 also when the loss is scaled."""
    net = GivenGradients(a=[3.0], b=[0.0, 4.0])
    seen = report(net, scale, max_norm=1.0, scale=lambda: scale)
    assert seen.norm == 5.0
    torch.testing.assert_close(net.a.grad, torch.tensor([0.6]) * scale)
    torch.testing.assert_close(net.b.grad, torch.tensor([0.0, 0.8]) * scale)


def test_each_layer_by_its_own_norm() -> None:
    """C47: per layer 1 and 1, and labelled so."""
    net = nn.ModuleDict({"x": GivenGradients(a=[3.0]), "y": GivenGradients(b=[0.0, 4.0], c=[3.0])})
    with clip_parameter_gradients(net, max_norm=1.0, per="layer") as clipping:
        (net["x"]() + net["y"]()).backward()
    assert clipping.last is not None
    assert clipping.last.per == "layer"
    assert [(group.name, group.norm) for group in clipping.last.groups] == [("x", 3.0), ("y", 5.0)]
    assert clipping.last.norm == math.sqrt(34)
    found = {name: one.grad for name, one in net.named_parameters()}
    expected = {"x.a": torch.tensor([1.0]), "y.b": torch.tensor([0.0, 0.8]), "y.c": torch.tensor([0.6])}
    torch.testing.assert_close(found, expected)


def test_a_layer_is_clipped_before_earlier_layers_have_their_gradients() -> None:
    net = ReusedReLUNet()
    seen: list[tuple[bool, float]] = []
    with clip_parameter_gradients(net, max_norm=1e-3, per="layer"):
        for one in (net.first.weight, net.first.bias):
            one.register_post_accumulate_grad_hook(
                lambda _: seen.append((net.second.weight.grad is not None, _norm(net.second)))
            )
        net(picture(5, 4).float()).square().sum().backward()
    assert [there for there, _ in seen] == [True, True]
    assert [norm for _, norm in seen] == pytest.approx([1e-3, 1e-3], rel=1e-2)


def _norm(layer: nn.Module) -> float:
    return float(torch.cat([one.grad.flatten() for one in layer.parameters() if one.grad is not None]).norm())


@pytest.mark.parametrize("per", ["model", "layer"])
@pytest.mark.parametrize("limits", [{"max_norm": 1.0}, {"max_value": 0.5}])
def test_what_is_not_finite_is_left_and_named(per: str, limits: dict[str, float]) -> None:
    """C46"""
    net = GivenGradients(a=[INF, 1.0], b=[NAN], c=[7.0])
    seen = report(net, per=per, **limits)
    assert seen.nonfinite == ("a", "b")
    assert seen.skip_step
    assert same(gradients(net), net.given)


def test_huge_gradients_do_not_become_zeros() -> None:
    """C46: [1e20, 1, 1] clipped to 1 is [1, 1e-20, 1e-20]."""
    net = GivenGradients(a=[1e20, 1.0, 1.0])
    seen = report(net, max_norm=1.0)
    assert seen.norm == pytest.approx(1e20, rel=1e-7)
    torch.testing.assert_close(net.a.grad, torch.tensor([1.0, 1e-20, 1e-20]), rtol=1e-6, atol=0)
    assert not seen.skip_step


def test_gradients_near_the_largest_float() -> None:
    net = GivenGradients(a=[3e38, 3e38])
    net.double()
    net.given["a"] = torch.tensor([1e200, 1e200], dtype=torch.float64)
    assert report(net, max_norm=1.0).norm == pytest.approx(math.sqrt(2) * 1e200, rel=1e-15)
    torch.testing.assert_close(net.a.grad, torch.full((2,), math.sqrt(0.5), dtype=torch.float64))


@pytest.mark.parametrize("order", [1.0, 2.0, INF])
@pytest.mark.parametrize("max_norm", [0.5, 1e6])
def test_equals_torchs_clipping_in_float64(order: float, max_norm: float) -> None:
    net = hookviz.load_model("simple_cnn").module.double()
    other, x = copy.deepcopy(net), picture(2, 3, 32, 32)
    other(x).square().sum().backward()
    expected = clip_grad_norm_(other.parameters(), max_norm, norm_type=order)
    with clip_parameter_gradients(net, max_norm=max_norm, norm_type=order) as clipping:
        net(x).square().sum().backward()
    assert clipping.last is not None
    assert clipping.last.norm == pytest.approx(expected.item(), rel=1e-14)
    torch.testing.assert_close(gradients(net), gradients(other), rtol=1e-13, atol=0)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_equals_torchs_clipping_on_real_networks(name: str) -> None:
    net = hookviz.load_model(name, weights=None, device="cpu").module
    other, x = copy.deepcopy(net), picture(1, 3, 32, 32).float()
    other(x).square().sum().backward()
    clip_grad_norm_(other.parameters(), 0.5)
    with clip_parameter_gradients(net, max_norm=0.5):
        net(x).square().sum().backward()
    torch.testing.assert_close(gradients(net), gradients(other), rtol=1e-5, atol=1e-9)
    assert hook_count(net) == 0


def test_by_value_equals_torchs_and_counts() -> None:
    net = GivenGradients(a=[3.0, -0.2], b=[-4.0])
    other = copy.deepcopy(net)
    other().backward()
    clip_grad_value_(other.parameters(), 0.5)
    seen = report(net, max_value=0.5)
    assert same(gradients(net), gradients(other))
    assert seen.groups[0].clamped == 2
    assert seen.norm == pytest.approx(math.sqrt(9 + 0.04 + 16), rel=1e-7)


def test_gradients_that_are_none_stay_none() -> None:
    """C47"""
    net = ReusedReLUNet()
    net.first.requires_grad_(False)
    with clip_parameter_gradients(net, max_norm=0.1, per="layer") as clipping:
        net(picture(2, 4).float()).sum().backward()
    assert net.first.weight.grad is None
    assert clipping.last is not None
    assert [group.name for group in clipping.last.groups] == ["second"]


@pytest.mark.parametrize("per", ["model", "layer"])
@pytest.mark.parametrize("reentrant", [None, False, True])
def test_after_the_last_gradient_though_checkpoints_deliver_early(per: Any, reentrant: bool | None) -> None:
    """C45: a re-entrant checkpoint is a backward pass inside the backward pass."""
    net = CheckpointNet(reentrant=reentrant).double()
    other, x = copy.deepcopy(net), picture(2, 3).requires_grad_()
    other.reentrant = None
    other(x).sum().backward()
    for one in [other] if per == "model" else [other.block, other.head]:
        clip_grad_norm_(one.parameters(), 0.01)
    with clip_parameter_gradients(net, max_norm=0.01, per=per):
        net(x).sum().backward()
    torch.testing.assert_close(gradients(net), gradients(other), rtol=1e-13, atol=0)


def test_a_pass_that_broke_off_does_not_stop_the_next() -> None:
    net, x = ReusedReLUNet(), picture(2, 4).float()
    with clip_parameter_gradients(net, max_norm=1e-3) as clipping:
        loss = net(x).sum()
        handle = net.first.weight.register_hook(_fail)
        with pytest.raises(ValueError, match="broken"):
            loss.backward()
        handle.remove()
        net.zero_grad()
        net(x).sum().backward()
    assert clipping.last is not None
    assert clipping.last.groups[0].factor < 1


def _fail(_: Tensor) -> None:
    raise ValueError("broken")


def test_undone_after_an_error_in_the_middle() -> None:
    net = ReusedReLUNet()
    before = fingerprint(net)
    for attaching in (
        lambda: clip_parameter_gradients(net, max_norm=1.0),
        lambda: clamp_flowing_gradients(net, "relu", 1.0),
    ):
        _interrupt(attaching)
        assert same(before, fingerprint(net))
        assert not any(one._post_accumulate_grad_hooks for one in net.parameters())


def _interrupt(attaching: Callable[[], Any]) -> None:
    with pytest.raises(KeyboardInterrupt), attaching():
        raise KeyboardInterrupt


@pytest.mark.parametrize("limits", [{}, {"max_norm": 1.0, "max_value": 1.0}, {"max_norm": 0.0}, {"max_value": NAN}])
def test_limits_that_say_nothing_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(HookvizError, match="either max_norm or max_value"):
        report(GivenGradients(a=[1.0]), **limits)
