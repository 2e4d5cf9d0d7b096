"""Functional operations, against torchvision's FX names and values."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor, get_graph_node_names

from hookviz.hooks import list_operations, record, record_operations
from hookviz.models import load_model
from tests.nets import TwoBranchNet, fingerprint, hook_count, same


def functional_names(net: nn.Module) -> list[str]:
    """The nodes that FX calls neither input nor module call, with a tensor for an output."""
    names = get_graph_node_names(net, suppress_diff_warning=True)[1]
    modules = {name for name, _ in net.named_modules()}
    return [name for name in names[1:] if name.rstrip("_0123456789") not in modules and name not in modules]


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_0", "mobilenet_v2", "vgg11", "mnasnet0_5"])
def test_operations_go_by_fx_names_and_hold_its_values(name: str) -> None:
    net = models.get_model(name, weights=None).eval()
    for module in net.modules():
        if hasattr(module, "inplace"):
            module.inplace = False  # FX hands out live tensors, which in-place layers overwrite
    x = torch.randn(1, 3, 64, 64)
    expected = functional_names(net)
    with torch.no_grad(), record_operations(net) as rec:
        net(x)
    assert list(rec) == expected
    values = create_feature_extractor(net, expected)(x)
    assert all(torch.equal(rec[one].output, values[one]) for one in expected)


def test_residual_sums_are_kept_as_they_were_before_the_inplace_relu() -> None:
    """C01 for operations."""
    net, x = models.resnet18().eval(), torch.randn(1, 3, 64, 64)
    with torch.no_grad(), record(net, "layer1.0.*") as modules, record_operations(net, "layer1.0.add") as rec:
        net(x)
    assert list(rec) == ["layer1.0.add"]
    assert rec["layer1.0.add"].output.min() < 0
    assert torch.equal(F.relu(rec["layer1.0.add"].output), modules["layer1.0.relu"][1].output)


def test_on_the_teaching_net_the_convolution_and_its_relu_are_two_things() -> None:
    model = load_model("simple_cnn", device="cpu")
    x = torch.randn(1, 3, 32, 32)
    with torch.no_grad(), record(model.module, "conv1") as modules, record_operations(model.module) as rec:
        model.module(x)
    assert "relu" in rec
    assert modules["conv1"].output.min() < 0
    assert torch.equal(rec["relu"].output, F.relu(modules["conv1"].output))


@pytest.mark.parametrize("name", ["vit_b_32", "swin_t", "maxvit_t", "googlenet", "densenet121"])
def test_the_output_stays_the_same_to_the_last_bit(name: str) -> None:
    """An active function mode would turn attention's fused code off."""
    net = models.get_model(name, weights=None).eval()
    x = torch.randn(1, 3, 224, 224)
    before = fingerprint(net)
    with torch.no_grad():
        expected = net(x)
        with record_operations(net, keep=lambda t: t.shape) as rec:
            out = net(x)
    assert torch.equal(out, expected)
    assert len(rec) > 0
    assert same(fingerprint(net), before)


def test_control_flow_that_depends_on_values() -> None:
    """C55: FX cannot trace it; names are ours then."""

    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branches = TwoBranchNet()

        def forward(self, x: Tensor) -> Tensor:
            x = self.branches(x) * 2
            while x.abs().max() > 1:
                x = F.relu(x / 2)
            return torch.cat([x, x]) + x.repeat(2, 1)

    net, x = Loop(), torch.full((1, 3), 40.0)
    with torch.no_grad(), record_operations(net, ["mul", "relu*", "truediv*", "cat", "add", "branches.sum"]) as rec:
        out = net(x)
    divisions = [name for name in rec if name.startswith("truediv")]
    assert divisions[:3] == ["truediv", "truediv_1", "truediv_2"][: len(divisions)]
    assert torch.equal(rec["mul"].output, net.branches(x) * 2)
    assert torch.equal(rec["add"].output, out)
    assert "branches.sum" in rec


def test_a_name_that_a_module_has_too_is_told_apart() -> None:
    class Clash(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.add = nn.Linear(2, 2)
            self.relu = nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return F.relu(self.relu(self.add(x) + 1))

    net, x = Clash(), torch.randn(1, 2)
    with torch.no_grad(), record(net) as modules, record_operations(net) as rec:
        net(x)
    assert list(rec) == ["add_1", "relu_1"]
    assert torch.equal(rec["add_1"].output, modules["add"].output + 1)

    class NeverTraced(Clash):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x if bool(x.sum() > -1e9) else -x)

    net = NeverTraced()
    with torch.no_grad(), record_operations(net, ["add*", "relu*"]) as rec:
        net(x)
    assert list(rec) == ["add()", "relu()"]


def test_recording_layers_at_the_same_time_adds_no_operation() -> None:
    net, x = models.resnet18().eval(), torch.randn(1, 3, 64, 64)
    with torch.no_grad(), record(net, inputs=True), record_operations(net) as rec:
        net(x)
    assert [name.rpartition(".")[2].partition("_")[0] for name in rec] == ["add"] * 8 + ["flatten"]


def test_operations_with_gradients_on_leave_the_graph_alone() -> None:
    net, x = models.resnet18().eval(), torch.randn(1, 3, 64, 64)
    net(x)[0, 3].backward()
    expected = [parameter.grad.clone() for parameter in net.parameters() if parameter.grad is not None]
    net.zero_grad()
    with record_operations(net) as rec:
        net(x)[0, 3].backward()
    assert all(torch.equal(a, b.grad) for a, b in zip(expected, net.parameters(), strict=True) if b.grad is not None)
    assert not rec["flatten"].output.requires_grad


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_stays_active_after_an_exception(error: type[BaseException]) -> None:
    """C21, C23."""

    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            if bool((self.inner(x) + 1).sum() < 1e9):
                raise error
            return x

    net = Breaks()
    with pytest.raises(error), record_operations(net) as rec:
        net(torch.ones(1, 2))
    assert torch.overrides._get_current_function_mode() is None
    assert hook_count(net) == 0
    assert "add" in rec


def test_memory_goes_with_the_last_name() -> None:
    """C24."""
    net, x = models.resnet18().eval(), torch.randn(1, 3, 32, 32)
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad(), record_operations(net, "flatten") as rec:
            net(x)
        watched = weakref.ref(rec["flatten"].output)
        del rec
        assert watched() is None
    finally:
        gc.enable()


def test_listing_gives_names_shapes_and_touches_nothing() -> None:
    net, x = models.resnet18().train(), torch.randn(1, 3, 64, 64)
    before, random = fingerprint(net), torch.get_rng_state()
    infos: list[Any] = list_operations(net, x)
    assert [(info.name, info.class_name) for info in infos][-1] == ("flatten", "flatten")
    assert infos[0].output_shapes == ((1, 64, 16, 16),)
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), random)


def test_a_name_that_does_not_occur_is_reported() -> None:
    net = models.resnet18().eval()
    with torch.no_grad(), record_operations(net, ["flatten", "nowhere"]) as rec:
        net(torch.randn(1, 3, 32, 32))
    assert rec.not_called == ("nowhere",)
    assert copy.copy(list(rec)) == ["flatten"]
