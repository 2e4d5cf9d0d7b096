"""Functional operations, against torchvision's FX names and values."""

from __future__ import annotations

import copy
import gc
import math
import operator
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, fx, nn
from torchvision import models
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.feature_extraction import NodePathTracer, create_feature_extractor, get_graph_node_names
from torchvision.models.maxvit import MaxVit
from torchvision.models.swin_transformer import SwinTransformer

from hookviz.hooks import list_layers, list_operations, record, record_operations
from hookviz.hooks.operations import list_all
from hookviz.models import load_model
from tests.hooks.exactness import identical
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
    for layer in (net.branches.stem, net.branches.positive, net.branches.tail):
        nn.init.eye_(layer.weight)
        nn.init.zeros_(layer.bias)
    with torch.no_grad(), record_operations(net, ["mul", "relu*", "div*", "cat", "add", "branches.sum"]) as rec:
        out = net(x)
    assert [name for name in rec if name.startswith("div")] == ["div", *(f"div_{n}" for n in range(1, 7))]
    assert [rec[name].output[0, 0].item() for name in rec if name.startswith("div")] == [80 / 2**n for n in range(1, 8)]
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


@pytest.mark.parametrize("name", ["resnet18", "googlenet", "maxvit_t"])
def test_one_forward_lists_what_two_do(name: str) -> None:
    net, x = models.get_model(name, weights=None).eval(), torch.randn(1, 3, 224, 224)
    listed = list_all(net, x)
    assert [info for info in listed if not info.is_operation] == list_layers(net, x)
    assert {info.name: info for info in listed if info.is_operation} == {
        info.name: info for info in list_operations(net, x)
    }
    for number, info in enumerate(listed):
        if info.is_operation:  # it stands in its module: only others of that module lie between
            path = info.name.rpartition(".")[0]
            module = [one.name for one in listed].index(path)
            assert all(not path or f"{one.name}.".startswith(f"{path}.") for one in listed[module:number])


def test_a_name_that_does_not_occur_is_reported() -> None:
    net = models.resnet18().eval()
    with torch.no_grad(), record_operations(net, ["flatten", "nowhere"]) as rec:
        net(torch.randn(1, 3, 32, 32))
    assert rec.not_called == ("nowhere",)
    assert copy.copy(list(rec)) == ["flatten"]


class Values(fx.Interpreter):
    """Every node's value, as FX computes it."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        self.values[n] = super().run_node(n)
        return self.values[n]


def fx_operations(net: nn.Module, x: Tensor) -> tuple[dict[str, Any], set[str]]:
    """What FX's calls of torch functions return, by its names; and the modules where it takes a function as one step.

    Items of tuples are left out: no torch function takes them.
    """
    tracer = NodePathTracer(autowrap_modules=(math, torchvision.ops))
    graph = tracer.trace(net)
    run = Values(fx.GraphModule(tracer.root, graph))
    with torch.no_grad():
        run.run(x)
    found, steps = {}, set()
    for node in graph.nodes:
        name, value = tracer.node_to_qualname.get(node, ""), run.values[node]
        if node.op not in {"call_function", "call_method"} or not holds_tensors(value):
            continue
        if getattr(node.target, "__module__", "").startswith("torchvision"):
            steps.add(name.rpartition(".")[0])
        elif node.target is not operator.getitem or isinstance(run.values[node.args[0]], Tensor):
            found[name] = value
    return found, steps


def holds_tensors(value: Any) -> bool:
    return isinstance(value, Tensor) or (isinstance(value, (tuple, list)) and any(map(holds_tensors, value)))


def tiny_maxvit() -> nn.Module:
    net: nn.Module = MaxVit(
        input_size=(32, 32),
        stem_channels=8,
        partition_size=4,
        block_channels=[8, 16],
        block_layers=[2, 1],
        head_dim=4,
        stochastic_depth_prob=0.0,
    )
    return net


FX_NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "swin": (lambda: SwinTransformer([4, 4], 8, [2, 1], [2, 2], [2, 2]), (3, 48, 32)),
    "vit": (lambda: models.VisionTransformer(32, 8, 2, 2, 16, 32), (3, 32, 32)),
    "vit with registers": (lambda: timm.create_model("test_vit3", img_size=32, reg_tokens=4), (3, 32, 32)),
    "maxvit": (tiny_maxvit, (3, 32, 32)),
    "convnext": (lambda: ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)]), (3, 32, 48)),
    "3-D resnet": (models.video.r3d_18, (3, 4, 16, 24)),
    "lraspp": (
        lambda: models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None),
        (3, 32, 48),
    ),
    "quantised mobilenet": (lambda: load_model("quantized_mobilenet_v2", None, "cpu").module, (3, 32, 32)),
}


@pytest.mark.parametrize("kind", FX_NETWORKS)
def test_every_torch_function_that_fx_sees_has_its_name_and_value(kind: str) -> None:
    """C55: and what FX does not see is either inside a function that it takes as one step, or on buffers alone."""
    build, shape = FX_NETWORKS[kind]
    net, x = build().eval(), torch.rand(1, *shape)
    for module in net.modules():
        if hasattr(module, "inplace"):
            setattr(module, "inplace", False)  # noqa: B010 - mypy; FX hands out live tensors, which these overwrite
    expected, steps = fx_operations(net, x)
    with torch.no_grad(), record_operations(net) as rec:
        net(x)
    assert [name for name in rec if name in expected] == list(expected)
    assert [name for name, value in expected.items() if not identical(rec[name].output, value)] == []
    others = [name for name in rec if name not in expected and name.rpartition(".")[0] not in steps]
    tables = {name: module for name, module in net.named_modules() if hasattr(module, "relative_position_index")}
    assert others == [f"{name}.view_1" for name in tables if kind == "maxvit"]
    for name in others:
        index = tables[name.removesuffix(".view_1")].get_buffer("relative_position_index")
        assert torch.equal(rec[name].output, index.view(-1))


def test_networks_that_fx_cannot_trace_have_operations_too() -> None:
    """C55: RAFT's control flow, a detector's lists, an LSTM that FX takes whole."""
    raft = models.optical_flow.raft_small().eval()
    frames = torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128)
    with torch.no_grad(), record_operations(raft, "cat") as rec:
        raft(*frames, num_flow_updates=1)
    assert torch.equal(rec["cat"].output, torch.cat(frames))
    detector = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
    with torch.no_grad(), record_operations(detector, "transform.*") as rec:
        detector([frames[0][0]])
    assert torch.equal(rec["transform.sub"].output, frames[0][0] - 0.5)
    assert torch.equal(rec["transform.div"].output, (frames[0][0] - 0.5) / 0.5)
    lstm = nn.LSTM(3, 4)
    with torch.no_grad(), record_operations(lstm) as rec:
        lstm(torch.rand(5, 2, 3))
    assert list(rec) == []


def test_operations_on_buffers_do_not_take_the_names_of_others() -> None:
    """C55: FX computes them while it traces, so that its first ``mul`` is the second one of the run."""

    class Scaled(nn.Module):
        scale: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.tensor([2.0, 3.0]))

        def forward(self, x: Tensor) -> Tensor:
            doubled = self.scale * 2
            return x * doubled

    net, x = Scaled(), torch.rand(1, 2)
    assert get_graph_node_names(net)[1] == ["x", "mul"]
    with record_operations(net) as rec:
        net(x)
    assert torch.equal(rec["mul"].output, x * torch.tensor([4.0, 6.0]))
    assert torch.equal(rec["mul_1"].output, torch.tensor([4.0, 6.0]))


def test_train_and_eval_each_record_what_they_do() -> None:
    """C55: FX freezes what the mode was when it traced."""

    class Moody(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.relu(x + x) if self.training else torch.cat([x, x])

    net, x = Moody(), torch.tensor([[-1.0, 2.0]])
    with record_operations(net.train()) as rec:
        net(x)
    assert {name: calls[0].output.tolist() for name, calls in rec.items()} == {
        "add": [[-2.0, 4.0]],
        "relu": [[0.0, 4.0]],
    }
    with record_operations(net.eval()) as rec:
        net(x)
    assert {name: calls[0].output.tolist() for name, calls in rec.items()} == {"cat": [[-1.0, 2.0], [-1.0, 2.0]]}


@pytest.mark.parametrize("rows", [1, 3])
def test_a_branch_on_the_batch_size(rows: int) -> None:
    """C55: ``if x.shape[0] > 1``."""

    class Branch(nn.Module):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            if a.shape[0] > 1:
                a = a * 2
            return F.relu(a + b)

    net, a, b = Branch(), torch.randn(rows, 4), torch.randn(rows, 4)
    with record_operations(net) as rec:
        net(a, b=b)
    total = (a * 2 if rows > 1 else a) + b
    assert list(rec) == (["mul"] if rows > 1 else []) + ["add", "relu"]
    assert torch.equal(rec["add"].output, total)
    assert torch.equal(rec["relu"].output, nn.ReLU()(total))


class Arithmetic(nn.Module):
    """Every operator that torch calls by another name than Python does, and a method of that name beside it."""

    def forward(self, x: Tensor) -> Tensor:
        halves = x / 2 + 2 / x + x.div(4) + torch.true_divide(x, 8)
        halves /= 2
        whole = x // 2 + x % 2 + x**2 + 2**x - x @ x.T + +x
        mask = ((x > 1) & (x < 3)) | ~(x > 2) ^ (x >= 2)
        return halves + whole + mask


def test_operators_go_by_fx_names() -> None:
    net, x = Arithmetic(), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = get_graph_node_names(net)[1][1:]
    values = create_feature_extractor(net, expected)(x)
    with record_operations(net) as rec:
        out = net(x)
    assert list(rec) == expected
    assert {"truediv", "div", "true_divide", "mod", "and_", "or_", "pos"} <= set(expected)
    assert [name for name in expected if not torch.equal(rec[name].output, values[name])] == []
    assert torch.equal(rec["truediv"].output, x / 2)
    assert torch.equal(rec["mod"].output, x % 2)
    assert torch.equal(rec[expected[-1]].output, out)


def test_others_compute_while_one_network_s_operations_are_named() -> None:
    """C15: FX alone would replace every module's call meanwhile, for all threads."""
    tracing, go_on = threading.Event(), threading.Event()

    class Waiting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 4)

        def forward(self, x: Any) -> Any:
            if isinstance(x, fx.Proxy):
                tracing.set()
                go_on.wait(30)
            return self.linear(x) + 1

    as_found = {name: getattr(nn.Module, name) for name in ("__call__", "__getattr__")}
    net, x = TwoBranchNet().eval(), torch.randn(1, 3)
    wanted, names = net(x), [info.name for info in list_operations(net, x)]
    found: dict[str, list[str]] = {}

    def visit(visitor: str, network: nn.Module) -> None:
        found[visitor] = [info.name for info in list_operations(network, x)]

    first = threading.Thread(target=visit, args=("first", Waiting()))
    second = threading.Thread(target=visit, args=("second", net))
    try:
        first.start()
        assert tracing.wait(30)
        assert {name: getattr(nn.Module, name) for name in as_found} == as_found
        assert torch.equal(net(x), wanted)
        second.start()
    finally:
        go_on.set()
        first.join(30)
        second.join(30)
    assert found == {"first": ["add"], "second": names}
    assert {name: getattr(nn.Module, name) for name in as_found} == as_found
    assert torch.equal(net(x), wanted)


def test_naming_operations_leaves_classes_and_functions_as_they_were() -> None:
    """Registries that a network's classes keep, the functions that FX takes as one step, torch's cache of code."""
    registry: list[type] = []

    class Registered(nn.Module):
        def __init_subclass__(cls) -> None:
            registry.append(cls)

    class Net(Registered):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, x: Tensor) -> Any:
            return torchvision.ops.stochastic_depth(x * self.scale, 0.0, "row", self.training) + math.sqrt(x.shape[0])

    functions = vars(math) | vars(torchvision.ops)
    sources = len(fx.graph_module._loader.eval_cache)
    assert [info.name for info in list_operations(Net(), torch.ones(4, 2))] == ["mul", "add"]
    assert registry == [Net]
    assert vars(math) | vars(torchvision.ops) == functions
    assert len(fx.graph_module._loader.eval_cache) == sources
