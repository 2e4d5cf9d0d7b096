from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import hookviz
from hookviz.errors import GradientError, HookvizError
from hookviz.hooks.gradient_flow import GradientFlow, gradient_flow
from hookviz.hooks.gradient_monitor import GradientMonitor
from tests.nets import CheckpointNet, InplaceReLUNet, ReusedReLUNet, fingerprint, same


class BackToFrontNet(nn.Module):
    """Declares its layers in the opposite of the order in which they run, and one that never runs."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(4, 4)
        self.body = nn.Linear(4, 4)
        self.stem = nn.Linear(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)).tanh())  # type: ignore[no-any-return]


class DetachingNet(BackToFrontNet):
    """Cuts the graph in the middle."""

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x).detach()))  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def verdicts(flow: GradientFlow) -> dict[str, str]:
    return {one.name: one.verdict for one in flow.layers}


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("simple_cnn", "conv1", "fc2"),
        ("resnet18", "conv1", "fc"),
        ("densenet121", "features.conv0", "classifier"),
        ("mobilenet_v2", "features.0.0", "classifier.1"),
    ],
)
def test_numbers_equal_numpys_and_nothing_changes(name: str, first: str, last: str) -> None:
    weights = "default" if name == "simple_cnn" else None
    net = hookviz.load_model(name, weights=weights, device="cpu").module
    before = fingerprint(net)
    loss = net(picture(1, 3, 32, 32)).square().sum()
    flow = gradient_flow(net, loss)
    assert same(before, fingerprint(net))
    loss.backward()
    for key, parameter in net.named_parameters():
        assert parameter.grad is not None
        gradient = parameter.grad.double().numpy()
        row = flow[key]
        expected = (np.linalg.norm(gradient), np.abs(gradient).mean(), np.abs(gradient).max())
        assert (row.norm, row.mean, row.max) == pytest.approx(expected, rel=1e-12, abs=0)
        assert row.zeros == (gradient == 0).mean()
    assert (flow.layers[0].name, flow.layers[-1].name) == (first, last)
    weight, bias = (flow[f"{last}.{which}"].norm for which in ("weight", "bias"))
    assert weight is not None
    assert bias is not None
    assert flow[last].norm == pytest.approx(math.hypot(weight, bias), rel=1e-12)


def test_the_order_is_that_of_the_forward() -> None:
    """C39: not the order of firing, nor that of declaring."""
    net = BackToFrontNet()
    order = ["stem", "body", "head", "spare"]
    assert [one.name for one in gradient_flow(net, net(picture(1, 3)).sum()).layers] == order
    with GradientMonitor(net) as monitor:
        net(picture(1, 3)).sum().backward()
    assert monitor.last is not None
    assert [one.name for one in monitor.last.layers] == order


def test_frozen_and_unused_are_told_apart_from_zero() -> None:
    """C48"""
    net = BackToFrontNet()
    net.stem.requires_grad_(False)
    nn.init.zeros_(net.head.weight)
    flow = gradient_flow(net, net(picture(1, 3)).sum())
    assert verdicts(flow) == {"stem": "frozen", "body": "vanishing", "head": "fine", "spare": "unused"}
    assert [flow[name].norm for name in ("stem", "spare", "body")] == [None, None, 0.0]
    assert flow["body"].zeros == 1.0
    assert flow["head"].norm is not None
    assert flow.mean_norm == flow["head"].norm / 2  # over body and head


def test_a_layer_that_ran_without_receiving_a_gradient() -> None:
    """C48: its graph was cut; the monitor, which saw it run, tells that from a layer that did not run."""
    net = DetachingNet()
    with GradientMonitor(net) as monitor:
        net(picture(1, 3)).sum().backward()
    assert monitor.last is not None
    assert verdicts(monitor.last) == {"stem": "none arrived", "body": "fine", "head": "fine", "spare": "unused"}


def test_vanishing_and_exploding_gradients_in_deep_networks() -> None:
    deep = nn.Sequential(*[part for _ in range(20) for part in (nn.Linear(8, 8), nn.Sigmoid())])
    flow = gradient_flow(deep, deep(picture(4, 8)).sum())
    assert (flow.layers[0].verdict, flow.layers[-1].verdict) == ("vanishing", "fine")
    loud = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])
    with torch.no_grad():
        for one in loud.parameters():
            one.mul_(20)
    flow = gradient_flow(loud, loud(picture(4, 8)).sum())
    assert flow.layers[0].verdict == "exploding"


def test_what_is_not_finite_is_counted_and_left_out_of_the_numbers() -> None:
    """C46"""
    net = nn.Linear(3, 1, bias=False)
    flow = gradient_flow(net, net(torch.tensor([[math.inf, 3.0, math.nan]])).sum())
    row = flow["weight"]
    assert (row.verdict, row.nonfinite, row.norm, row.mean, row.max) == ("non-finite", 2, 3.0, 3.0, 3.0)


def test_huge_gradients_have_finite_norms() -> None:
    """C46"""
    net = nn.Linear(2, 1, bias=False)
    flow = gradient_flow(net, net(torch.full((1, 2), 1e30)).sum())
    assert flow["weight"].norm == pytest.approx(math.sqrt(2) * 1e30, rel=1e-6)
    assert flow["weight"].verdict == "exploding"


def test_masked_parameters_are_those_with_the_gradient() -> None:
    """C50"""
    net = nn.Sequential(nn.Linear(4, 2))
    prune.l1_unstructured(net[0], "weight", 0.5)
    flow = gradient_flow(net, net(torch.ones(1, 4)).sum())
    assert flow["0.weight_orig"].zeros == 0.5
    assert prune.is_pruned(net)


def test_accumulated_gradients_stay_as_they_were() -> None:
    """C43: one pass's gradient, whatever .grad holds already."""
    net, x = InplaceReLUNet(), picture(1, 3, 6, 6)
    net(x).sum().backward()
    held = {name: one.grad for name, one in net.named_parameters()}
    copies = copy.deepcopy(held)
    flow = gradient_flow(net, net(x).sum())
    assert all(one.grad is held[name] for name, one in net.named_parameters())
    assert same({name: one.grad for name, one in net.named_parameters()}, copies)
    assert flow["0.bias"].norm == pytest.approx(float(copies["0.bias"].double().norm()), rel=1e-12)  # type: ignore[union-attr]


def test_losses_that_lead_nowhere_are_refused() -> None:
    net = ReusedReLUNet()
    with torch.no_grad(), pytest.raises(GradientError, match="one element"):
        gradient_flow(net, net(picture(1, 4)).sum())
    with pytest.raises(GradientError, match="one element"):
        gradient_flow(net, net(picture(1, 4)))
    loss = net(picture(1, 4)).sum()
    loss.backward()
    with pytest.raises(GradientError, match="torch cannot take"):
        gradient_flow(net, loss)
    checkpointed = CheckpointNet(reentrant=True)
    with pytest.raises(GradientError, match="re-entrant checkpoint"):
        gradient_flow(checkpointed, checkpointed(picture(1, 3).requires_grad_()).sum())


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_the_monitor_measures_what_backward_left(reentrant: bool | None) -> None:
    """C42, C45: parameter norms equal p.grad.double().norm() after backward."""
    net = CheckpointNet(reentrant=reentrant)
    with GradientMonitor(net) as monitor:
        net(picture(2, 3).requires_grad_()).sum().backward()
    assert monitor.last is not None
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        assert monitor.last[name].norm == pytest.approx(float(parameter.grad.double().norm()), rel=1e-14)


def test_the_monitor_in_a_training_loop() -> None:
    net = ReusedReLUNet()
    before = fingerprint(net)
    norms: list[float] = []
    with GradientMonitor(net, every=3) as monitor:
        for step in range(7):
            net.zero_grad()
            (net(picture(4, 4)).square().sum() * (step + 1)).backward()
            norms.append(_norm(net.second))
    assert (monitor.passes, monitor.measured) == (7, 3)
    assert monitor.smallest["second"] == pytest.approx(norms[0], rel=1e-12)
    assert monitor.largest["second"] == pytest.approx(norms[6], rel=1e-12)
    assert monitor.verdicts["second"] == {"fine": 3}
    net.zero_grad()
    assert same(before, fingerprint(net))
    assert not any(one._post_accumulate_grad_hooks for one in net.parameters())


def _norm(layer: nn.Module) -> float:
    return float(torch.cat([one.grad.double().flatten() for one in layer.parameters() if one.grad is not None]).norm())


def test_the_monitor_is_undone_after_an_error_in_the_middle() -> None:
    net = ReusedReLUNet()
    before = fingerprint(net)
    with pytest.raises(KeyboardInterrupt), GradientMonitor(net):
        net(picture(1, 4))
        raise KeyboardInterrupt
    assert same(before, fingerprint(net))
    assert not any(one._post_accumulate_grad_hooks for one in net.parameters())
    with pytest.raises(HookvizError, match="at least 1"):
        GradientMonitor(net, every=0)


def test_taking_gradients_inside_the_monitor_is_no_pass() -> None:
    net: Any = ReusedReLUNet()
    with GradientMonitor(net) as monitor:
        gradient_flow(net, net(picture(1, 4)).sum())
    assert (monitor.passes, monitor.last) == (0, None)
