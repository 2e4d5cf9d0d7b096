from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import GradientError
from hookviz.hooks.nonfinite import find_nonfinite
from hookviz.hooks.nonfinite_report import NonfiniteSite
from tests.nets import FifthFailsNet, Pair, ResidualInplaceNet, Returning, ReusedReLUNet, fingerprint, same

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


class Applied(nn.Module):
    """Calls layers, with a function between them that no hook sees."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first = nn.Identity()
        self.last = nn.Sequential(nn.ReLU(inplace=True), nn.Identity())
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.function(self.first(x)))  # type: ignore[no-any-return]


def roles(sites: tuple[NonfiniteSite, ...]) -> list[tuple[str, str]]:
    return [(site.role, site.layer) for site in sites]


def test_the_layer_that_makes_them_is_told_from_those_that_pass_them_on() -> None:
    net = nn.Sequential(nn.Identity(), nn.Sequential(Returning(torch.log), nn.Identity()), nn.ReLU(inplace=True))
    report = find_nonfinite(net, torch.tensor([[1.0, 0.0, -1.0, -2.0]]))
    assert report.first == NonfiniteSite("forward", "producer", "1.0", 0, "", nan=2, posinf=0, neginf=1)
    assert roles(report.sites) == [
        ("producer", "1.0"),
        ("passed_on", "1.1"),
        ("passed_on", "1"),
        ("passed_on", "2"),
        ("passed_on", ""),
    ]
    assert str(report) == ("2 NaN, 1 -Inf in the forward pass: layer '1.0' (call 0) makes them of finite values.")


def test_finite_networks_have_none() -> None:
    report = find_nonfinite(ResidualInplaceNet(), torch.randn(1, 3, 5, 5), loss=torch.sum)
    assert (bool(report), report.first, report.sites) == (False, None, ())
    assert str(report) == "every value was finite."


def test_a_function_between_layers_is_put_down_to_the_module_it_runs_in() -> None:
    report = find_nonfinite(nn.Sequential(Applied(torch.log)), torch.zeros(1, 2))
    assert report.first == NonfiniteSite("forward", "producer", "0", 0, "0", 0, 0, 2, before="0.last")
    assert "before '0.last'" in str(report)
    assert ("producer", "0.last") not in roles(report.sites)
    end = find_nonfinite(nn.Sequential(Returning(torch.log), nn.ReLU()), torch.zeros(1, 2))
    assert roles(end.sites) == [("producer", "0")]  # relu(-inf) is 0 again


@pytest.mark.parametrize(
    ("args", "kwargs", "path"),
    [
        ((torch.tensor([NAN]),), {}, "0"),
        (([{"a": torch.tensor([INF])}],), {}, "0.0.a"),
        ((), {"x": torch.tensor([NAN])}, "x"),
    ],
)
def test_a_bad_input_is_said_to_be_one(args: Any, kwargs: Any, path: str) -> None:
    report = find_nonfinite(Returning(lambda x: x), *args, **kwargs)
    assert report.first is not None
    assert (report.first.role, report.first.path) == ("input", path)
    assert str(report).endswith(f"argument {path!r} of the network holds them.")
    assert roles(report.sites[1:]) == [("passed_on", "")]


@pytest.mark.parametrize("name", ["weight", "running_var"])
def test_a_bad_parameter_or_buffer_is_named(name: str) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU()).eval()
    with torch.no_grad():
        net[1].get_parameter("weight").fill_(INF) if name == "weight" else net[1].get_buffer(name).fill_(NAN)
    report = find_nonfinite(net, torch.randn(2, 3))
    assert report.first is not None
    assert (report.first.role, report.first.layer, report.first.parameter) == ("parameter", "1", f"1.{name}")
    assert report.parameters == (f"1.{name}",)


def test_a_bad_parameter_that_does_not_show_is_mentioned() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3)).eval()
    net[0].get_buffer("running_var").fill_(INF)
    report = find_nonfinite(net, torch.randn(2, 3))
    assert not report
    assert str(report) == "every value was finite (but there are in 0.running_var, which did not show)."


def test_parameters_of_layers_that_run_without_being_called_are_found() -> None:
    net = nn.MultiheadAttention(4, 2)
    with torch.no_grad():
        net.out_proj.weight[0, 0] = NAN
    first = find_nonfinite(net, *[torch.randn(2, 1, 4)] * 3).first
    assert first is not None
    assert (first.role, first.parameter) == ("parameter", "out_proj.weight")


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda x: (x, [x.long(), {"deep": x.log()}]), "1.1.deep"),
        (lambda x: Pair(x / 0, None), "mean"),
        (lambda x: {"half": (x + 1).half() * 1e6}, "half"),
        (lambda x: (x > 0, torch.complex(x, x.log())), "1"),
    ],
)
def test_nested_and_integer_outputs(make: Any, path: str) -> None:
    first = find_nonfinite(nn.Sequential(Returning(make)), torch.zeros(3)).first
    assert first is not None
    assert (first.role, first.layer, first.path, first.nan + first.posinf + first.neginf) == ("producer", "0", path, 3)


def test_integers_sparse_and_quantized_tensors_are_finite() -> None:
    def make(x: Tensor) -> Any:
        quantized = torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)
        return x.long(), x.bool(), x.to_sparse(), x.to_sparse_csr(), quantized, x.to(torch.float8_e5m2), "words", None

    assert not find_nonfinite(Returning(make), torch.eye(3))


def test_the_call_of_a_reused_layer_is_told() -> None:
    net = ReusedReLUNet()
    with torch.no_grad():
        net.second.bias[0] = INF
    report = find_nonfinite(net, torch.randn(1, 4))
    assert [(site.role, site.layer, site.call) for site in report.sites] == [
        ("parameter", "second", 0),
        ("passed_on", "relu", 1),
        ("passed_on", "", 0),
    ]


def test_a_planted_nan_is_found_in_resnet18() -> None:
    net = models.resnet18(weights=None).eval()
    with torch.no_grad():
        net.get_parameter("layer3.0.conv2.weight")[0, 0, 0, 0] = NAN
    report = find_nonfinite(net, torch.randn(1, 3, 32, 32))
    assert report.first is not None
    assert (report.first.role, report.first.parameter) == ("parameter", "layer3.0.conv2.weight")
    assert {site.role for site in report.sites[1:]} == {"passed_on"}


@pytest.mark.parametrize("function", [torch.sqrt, lambda x: torch.where(x > 0, x.sqrt(), 0.0)])
def test_gradients_that_go_wrong_where_the_forward_is_finite(function: Any) -> None:
    """C36: the derivative of a square root at 0, also behind a where."""
    net = nn.Sequential(nn.Identity(), Returning(function), nn.Identity())
    report = find_nonfinite(net, torch.zeros(1, 2, requires_grad=True), loss=torch.sum)
    assert report.forward is None
    assert report.first == report.backward
    assert report.first is not None
    assert (report.first.role, report.first.layer, report.first.path) == ("producer", "1", "0")
    assert roles(report.sites[1:]) == [("passed_on", "0"), ("passed_on", "")]


def test_a_function_between_layers_is_found_backwards_too() -> None:
    net, x = nn.Sequential(Applied(lambda x: x.sqrt() + 0)), torch.zeros(1, 2, requires_grad=True)
    # What flows back through the ReLU is 0, and the square root divides that by 0.
    report = find_nonfinite(net, x, loss=torch.sum)
    assert report.first == NonfiniteSite("backward", "producer", "0", 0, "0", 2, 0, 0, before="0.first")
    assert ("producer", "0.first") not in roles(report.sites)


def test_weight_gradients_are_looked_at_where_no_input_needs_any() -> None:
    net = nn.Sequential(Weighted(), nn.Identity())
    report = find_nonfinite(net, torch.ones(1), loss=torch.sum)
    assert report.first is not None
    assert (report.first.direction, report.first.role, report.first.layer, report.first.path, report.first.posinf) == (
        "backward",
        "producer",
        "0",
        "weight",
        1,
    )


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight.sqrt()


def test_what_the_loss_makes_is_put_down_to_the_loss() -> None:
    net, x = nn.Linear(2, 2), torch.ones(1, 2)
    assert roles(find_nonfinite(net, x, loss=lambda y: (y * 0).sum().log()).sites)[:1] == [("loss", "")]
    backward = find_nonfinite(net, x, loss=lambda y: (y * 0).sum().sqrt())
    assert (backward.forward, backward.backward is not None and backward.backward.role) == (None, "loss")


def test_anomaly_mode_stays_off_for_everybody() -> None:
    """C36."""
    seen = []

    def loss(output: Tensor) -> Tensor:
        thread = threading.Thread(target=lambda: seen.append(torch.is_anomaly_enabled()))
        thread.start()
        thread.join()
        return output.sum()

    find_nonfinite(nn.Linear(2, 2), torch.ones(1, 2), loss=loss)
    assert seen == [False]


def test_the_network_is_left_as_found() -> None:
    """O5."""
    linear = nn.Linear(4, 4)
    net = nn.Sequential(linear, nn.BatchNorm1d(4), nn.Dropout(0.5), Returning(torch.log))
    x = torch.randn(3, 4)
    net(torch.ones(2, 4)).sum().backward()
    before, gradient, state = fingerprint(net), linear.weight.grad.clone(), torch.get_rng_state()  # type: ignore[union-attr]  # backward has run
    assert find_nonfinite(net, x, loss=torch.sum)
    assert same(fingerprint(net), before)
    assert same(linear.weight.grad, gradient)
    assert torch.equal(torch.get_rng_state(), state)
    failing = FifthFailsNet()
    before = fingerprint(failing)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        find_nonfinite(failing, torch.ones(1, 4))
    assert same(fingerprint(failing), before)


def test_a_network_without_gradients_says_so() -> None:
    """C38."""
    with pytest.raises(GradientError, match="every parameter is frozen"):
        find_nonfinite(nn.Identity(), torch.ones(1), loss=torch.sum)
