from __future__ import annotations

import copy
import io
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import GradientError
from hookviz.hooks.attach import HookHandles, HookKind
from hookviz.hooks.trace import debug, trace
from tests.nets import (
    CheckpointNet,
    ConcatNet,
    DictHeads,
    FifthFailsNet,
    InplaceReLUNet,
    KeywordNet,
    ResidualInplaceNet,
    ReusedReLUNet,
    fingerprint,
    same,
)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def plain_log(net: nn.Module, *args: Any, loss: Callable[[Any], Tensor] | None = None) -> list[tuple[str, str]]:
    """What torch's own hooks alone write down."""
    twin, log = copy.deepcopy(net), []
    kinds: list[HookKind] = ["forward_pre", "forward", *(["backward_pre", "backward"] if loss else [])]  # type: ignore[list-item]  # mypy widens the inner list
    with HookHandles() as handles, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, module in twin.named_modules():
            for kind in kinds:
                handles.add(module, lambda *_, k=kind, n=name: log.append((k, n)), kind)
        output = twin(*args)
        if loss:
            loss(output).backward()
    return log


def tensor_log(net: nn.Module, *args: Any, loss: Callable[[Any], Tensor]) -> list[tuple[str, tuple[int, ...]]]:
    """The order in which tensor hooks, set when a module returns, see gradients of outputs."""
    twin, log = copy.deepcopy(net), []

    def set_hook(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Tensor) -> None:
            output.register_hook(lambda gradient: log.append((name, tuple(gradient.shape))))

        return hook

    with HookHandles() as handles:
        for name, module in twin.named_modules():
            if name:  # the root's output is the last layer's too
                handles.add(module, set_hook(name), "forward")
        loss(twin(*args)).backward()
    return log


def total(output: Any) -> Tensor:
    return output.square().sum()  # type: ignore[no-any-return]


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.b = nn.Linear(4, 4)
        self.same = nn.Identity()
        self.end = nn.Sequential(nn.Identity(), nn.Sequential(nn.Identity()))

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        return self.end(self.same(a) * self.b(x) + self.b(a) + x)  # type: ignore[no-any-return]


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split = Splits()
        self.tail = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        first, _ = self.split(x)
        return self.tail(first)  # type: ignore[no-any-return]


class Splits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 2)
        self.b = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.a(x), self.b(x)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 3)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0])  # type: ignore[no-any-return]


PLAIN: list[Callable[[], nn.Module]] = [
    ReusedReLUNet,
    Branches,
    Recurrent,
    lambda: nn.Sequential(nn.Sequential(nn.Identity(), nn.Dropout(0.0)), nn.Linear(4, 4), Branches()),
    lambda: nn.Sequential(nn.Sequential(nn.Identity()), nn.Linear(4, 4)),
    lambda: nn.Sequential(nn.Linear(4, 4), nn.Flatten(), nn.Dropout(0.0), nn.ReLU(), nn.BatchNorm1d(4)),
    lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
]


@pytest.mark.parametrize("needs_grad", [False, True])
@pytest.mark.parametrize("make", PLAIN)
def test_the_trace_is_the_log_of_torchs_own_hooks(make: Callable[[], nn.Module], needs_grad: bool) -> None:
    """C39: also where no input needs a gradient, and the root fires first."""
    net, x = make(), torch.randn(3, 4, requires_grad=needs_grad)
    firings = trace(net, x, loss=total)
    assert [(one.kind, one.layer) for one in firings] == plain_log(net, x, loss=total)
    assert [one.order for one in firings] == list(range(len(firings)))


def test_an_output_that_nobody_uses_gets_no_gradient() -> None:
    """C41: torch's wrapper sends zeros into the unused branch, which the network without hooks does not."""
    firings = trace(Two(), torch.randn(3, 4, requires_grad=True), loss=total)
    assert [(one.kind, one.layer, one.shapes) for one in firings if "backward" in one.kind] == [
        ("backward_pre", "", ((3, 2),)),
        ("backward_pre", "tail", ((3, 2),)),
        ("backward", "tail", ((3, 2),)),
        ("backward_pre", "split", ((3, 2),)),
        ("backward_pre", "split.a", ((3, 2),)),
        ("backward", "split.a", ((3, 4),)),
        ("backward", "split", ((3, 4),)),
        ("backward", "", ((3, 4),)),
    ]


def test_without_a_loss_only_the_forward_is_traced() -> None:
    net, x = ResidualInplaceNet(), torch.randn(1, 3, 4, 4)
    firings = trace(net, x)
    assert [(one.kind, one.layer) for one in firings] == plain_log(net, x)
    assert [one.layer for one in firings] == ["", "conv", "conv", "relu", "relu", ""]


@pytest.mark.parametrize("make", [InplaceReLUNet, ResidualInplaceNet])
def test_on_inplace_networks_the_order_is_that_of_tensor_hooks(make: Callable[[], nn.Module]) -> None:
    """C07."""
    net, x = make(), torch.randn(1, 3, 6, 6)
    firings = trace(net, x, loss=total)
    pre = [(one.layer, one.shapes[0]) for one in firings if one.kind == "backward_pre" and one.layer]
    assert pre == tensor_log(net, x, loss=total)


def test_a_dense_block_in_small() -> None:
    net, x = ConcatNet(), torch.randn(1, 2, 3, 3, requires_grad=True)
    backward = [(one.kind, one.layer, one.shapes) for one in trace(net, x, loss=total) if "backward" in one.kind]
    assert backward == [
        ("backward_pre", "", ((1, 7, 3, 3),)),
        ("backward_pre", "relu", ((1, 7, 3, 3),)),
        ("backward", "relu", ((1, 7, 3, 3),)),
        ("backward_pre", "b", ((1, 2, 3, 3),)),
        ("backward", "b", ((1, 5, 3, 3),)),
        ("backward_pre", "a", ((1, 3, 3, 3),)),
        ("backward", "a", ((1, 2, 3, 3),)),
        ("backward", "", ((1, 2, 3, 3),)),
    ]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "densenet121"])
def test_classifiers_with_inplace_relus(name: str) -> None:
    """C07: every layer fires once per call and kind, outputs in the order of tensor hooks."""
    net, x = models.get_model(name, weights=None).eval(), torch.randn(1, 3, 32, 32)
    firings = trace(net, x, loss=total)
    kinds = {kind: [(one.layer, one.call) for one in firings if one.kind == kind] for kind in ("forward", "backward")}
    assert sorted(kinds["backward"]) == sorted(kinds["forward"])
    leaf = {layer for layer, module in net.named_modules() if not list(module.children())}
    pre = [(one.layer, one.shapes[0]) for one in firings if one.kind == "backward_pre" and one.layer in leaf]
    assert pre == [one for one in tensor_log(net, x, loss=total) if one[0] in leaf]


def test_a_firing_says_what_it_was_shown() -> None:
    firings = trace(nn.Linear(3, 2), torch.zeros(4, 3, dtype=torch.float32))
    assert [(one.kind, one.call, one.shapes, one.dtypes, one.bytes) for one in firings] == [
        ("forward_pre", 0, ((4, 3),), ("float32",), 48),
        ("forward", 0, ((4, 2),), ("float32",), 32),
    ]
    assert 0 < firings[0].microseconds <= firings[1].microseconds


def test_calls_of_a_reused_layer_are_told_apart_backwards_too() -> None:
    firings = trace(ReusedReLUNet(), torch.randn(2, 4), loss=total)
    relu = [(one.kind, one.call) for one in firings if one.layer == "relu"]
    assert relu == [("forward_pre", 0), ("forward", 0), ("forward_pre", 1), ("forward", 1)] + [
        (kind, call) for call in (1, 0) for kind in ("backward_pre", "backward")
    ]


def test_keyword_arguments_are_shown_before_the_forward() -> None:
    assert [one.shapes for one in trace(KeywordNet(), torch.zeros(1, 3)) if one.layer == "lin"] == [
        ((1, 3),),
        ((1, 2),),
    ]


def test_outputs_in_a_dict_fire_where_torch_is_silent() -> None:
    """C08: one gradient for every tensor."""
    net, x = DictHeads(), torch.randn(2, 3, requires_grad=True)
    firings = trace(net, x, loss=lambda out: out["a"].sum() + out["b"][0].sum())
    assert [one.shapes for one in firings if (one.kind, one.layer) == ("backward_pre", "")] == [((2, 2), (2, 3))]


def test_the_network_is_left_as_found() -> None:
    """O5, with gradients accumulated already, in train mode, with batch norm and dropout."""
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(inplace=True), nn.Dropout(0.5))
    net[3].eval()
    x = torch.randn(3, 4, requires_grad=True)
    net(x).sum().backward()
    before, grads = fingerprint(net), [parameter.grad.clone() for parameter in net.parameters()]  # type: ignore[union-attr]  # backward has run
    input_grad, value, state = x.grad.clone(), x.detach().clone(), torch.get_rng_state()  # type: ignore[union-attr]  # as above
    net[3].train()
    before["training"]["3"] = True
    trace(net, x, loss=total)
    assert same(fingerprint(net), before)
    assert same([parameter.grad for parameter in net.parameters()], grads)
    assert same([x.grad, x.detach()], [input_grad, value])
    assert torch.equal(torch.get_rng_state(), state)


def test_a_forward_that_fails_leaves_no_hook() -> None:
    net = FifthFailsNet()
    before = fingerprint(net)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        trace(net, torch.ones(1, 4), loss=total)
    assert same(fingerprint(net), before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_gradients_flow_whatever_the_callers_grad_mode(mode: Any) -> None:
    """C38."""
    net = ReusedReLUNet()
    expected = [(one.kind, one.layer) for one in trace(net, torch.ones(1, 4), loss=total)]
    with mode():
        inside = trace(net, torch.ones(1, 4), loss=total)
        assert torch.is_grad_enabled() is False
    assert [(one.kind, one.layer) for one in inside] == expected


def test_nothing_to_differentiate_is_said() -> None:
    """C38."""
    net = nn.Linear(2, 2).requires_grad_(False)
    with pytest.raises(GradientError, match=r"requires_grad_\(\) on the input"):
        trace(net, torch.ones(1, 2), loss=total)
    with pytest.raises(GradientError, match="one number of the output, not \\(1, 2\\)"):
        trace(net.requires_grad_(), torch.ones(1, 2), loss=lambda output: output)
    assert "backward" in {one.kind for one in trace(net, torch.ones(1, 2, requires_grad=True), loss=total)}


def test_debug_prints_a_line_for_each_firing() -> None:
    net, stream, x = InplaceReLUNet(), io.StringIO(), torch.zeros(1, 3, 5, 5)
    with debug(net, stream):
        net(x).sum().backward()
        thread = threading.Thread(target=net, args=(x,))
        thread.start()
        thread.join()
    assert stream.getvalue().splitlines()[:3] == [
        "   0 forward_pre  (network)  call 0  1x3x5x5 float32",
        "   1 forward_pre  0          call 0  1x3x5x5 float32",
        "   2 forward      0          call 0  1x4x3x3 float32",
    ]
    assert [line.split()[1:3] for line in stream.getvalue().splitlines()] == [
        [kind, layer or "(network)"] for kind, layer in [(one.kind, one.layer) for one in trace(net, x, loss=torch.sum)]
    ]


def test_debug_prints_nothing_after_it_is_left() -> None:
    """C44: the graph outlives the block."""
    net, stream = InplaceReLUNet(), io.StringIO()
    with debug(net, stream):
        output = net(torch.zeros(1, 3, 5, 5))
    printed = stream.getvalue()
    output.sum().backward()
    assert stream.getvalue() == printed


@pytest.mark.parametrize("reentrant", [False, True])
def test_what_a_checkpoint_recomputes_is_marked(reentrant: bool) -> None:
    """C45: torch's hooks do fire again in the middle of backward; without the marked ones, each call fires once."""
    torch.manual_seed(0)
    net, plain = CheckpointNet(reentrant=reentrant), CheckpointNet(reentrant=None)
    x = torch.rand(2, 3, requires_grad=True)
    firings = trace(net, x, loss=total)
    assert {(one.kind, one.layer) for one in firings if one.recomputed} >= {
        ("forward_pre", "block"), ("forward_pre", "block.0"), ("forward", "block.0"), ("forward_pre", "block.1"),
    }  # fmt: skip
    once = [(one.kind, one.layer) for one in firings if not one.recomputed]
    assert once == [(one.kind, one.layer) for one in trace(plain, x, loss=total)]
    assert not any(one.recomputed for one in trace(plain, x, loss=total))
