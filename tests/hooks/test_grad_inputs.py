from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import GradientError, UnknownLayerError
from hookviz.hooks.grad_inputs import compare_grad_inputs
from tests.hooks.networks import NETWORKS, example, network
from tests.nets import CheckpointNet, DictOutputNet, InplaceReLUNet, ReusedReLUNet, fingerprint, same

Row = tuple[tuple[int, ...] | None, ...]


def by_torch(net: nn.Module, name: str, register: str, inputs: Tensor) -> Row | None:
    """The shapes that torch's own hook of one kind gives on one layer of a deepcopy."""
    private = copy.deepcopy(net)
    seen: list[Row] = []
    layer = private.get_submodule(name)
    getattr(layer, register)(
        lambda _, grad_input, __: seen.append(tuple(None if one is None else tuple(one.shape) for one in grad_input))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        private(inputs.clone().requires_grad_(inputs.requires_grad)).sum().backward()
    return seen[0] if seen else None


def test_the_teaching_net_shows_weights_in_the_deprecated_hook_alone() -> None:
    """C40: Conv2d gives input, weight, bias; Linear gives bias, input, weight transposed; the full hook inputs only."""
    net = network("simple_cnn")
    conv1, fc1 = compare_grad_inputs(net, torch.rand(1, 3, 32, 32, requires_grad=True), layers=["conv1", "fc1"])
    assert conv1.inputs == conv1.full == ((1, 3, 32, 32),)
    assert conv1.deprecated == ((1, 3, 32, 32), (16, 3, 3, 3), (16,))
    assert conv1.labels == ("input", "weight", "bias")
    assert fc1.inputs == fc1.full == ((1, 2048),)
    assert fc1.deprecated == ((128,), (1, 2048), (2048, 128))
    assert fc1.labels == ("bias", "input", "weight transposed")
    assert fc1.parameters == {"weight": (128, 2048), "bias": (128,)}
    assert conv1.differ
    assert fc1.differ
    assert not conv1.emulated


@pytest.mark.parametrize("needs_gradient", [True, False])
def test_both_columns_are_what_torch_gives(needs_gradient: bool) -> None:
    """C39, C40: also for a first layer whose input needs no gradient, which both hooks call None."""
    net = network("simple_cnn")
    images = torch.rand(2, 3, 32, 32, requires_grad=needs_gradient)
    for one in compare_grad_inputs(net, images):
        assert one.full == by_torch(net, one.layer, "register_full_backward_hook", images)
        assert one.deprecated == by_torch(net, one.layer, "register_backward_hook", images)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_deprecated_column_is_torchs_where_full_hooks_raise(name: str) -> None:
    """C07, C40: the network writes in place; the full hook's column is emulated, and has one entry per input."""
    net, images = network(name), example(name)
    chosen = [layer for layer, one in net.named_modules() if isinstance(one, (nn.Conv2d, nn.Linear))][:2]
    for one in compare_grad_inputs(net, images, layers=chosen):
        assert one.emulated == (name != "simple_cnn")
        assert one.full is not None
        assert [shape for shape in one.full if shape] in ([], [one.inputs[0]])
        assert one.deprecated == by_torch(net, one.layer, "register_backward_hook", images)


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return x + y + z


class Sums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sum = Sum()

    def forward(self, x: Tensor) -> Tensor:
        return self.sum(x, x * 2, x * 3)  # type: ignore[no-any-return]


def test_a_block_of_three_inputs_gives_three_and_the_last_operation_two() -> None:
    """C40: x+y+z ends in one addition, of which the deprecated hook shows two arguments."""
    (found,) = compare_grad_inputs(Sums(), torch.rand(2, 2, requires_grad=True), layers="sum")
    assert found.full == ((2, 2),) * 3
    assert found.deprecated == ((2, 2),) * 2
    assert found.labels == ("a value computed inside", "input 2")


def test_a_linear_and_a_convolution_of_sequences() -> None:
    """C40: Linear on vectors and Conv1d."""
    net = nn.Sequential(nn.Conv1d(2, 3, 2), nn.Flatten(), nn.Linear(6, 4))
    inputs = torch.rand(1, 2, 3, requires_grad=True)
    for one in compare_grad_inputs(net, inputs):
        assert one.full == by_torch(net, one.layer, "register_full_backward_hook", inputs)
        assert one.deprecated == by_torch(net, one.layer, "register_backward_hook", inputs)


def test_outputs_without_a_tensor_to_sit_on_have_no_deprecated_row() -> None:
    """C08, C09: torch would search a string's first letter for ever, or raise on None."""

    class Silent(nn.Module):
        def forward(self, x: Tensor) -> list[Any]:
            return [None, "words", x]

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.silent, self.lin = Silent(), nn.Linear(3, 1)

        def forward(self, x: Tensor) -> Any:
            return self.lin(self.silent(x)[2])

    silent, lin = compare_grad_inputs(Net(), torch.rand(1, 3, requires_grad=True), layers=["silent", "lin"])
    assert (silent.deprecated, silent.labels) == (None, ())
    assert lin.deprecated == ((1,), (1, 3), (3, 1))


NETS: list[Callable[[], tuple[nn.Module, Tensor]]] = [
    lambda: (InplaceReLUNet(), torch.rand(1, 3, 6, 6)),
    lambda: (ReusedReLUNet(), torch.rand(2, 4)),
    lambda: (DictOutputNet(), torch.rand(2, 3)),
    lambda: (CheckpointNet(reentrant=False), torch.rand(2, 3)),
    lambda: (nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3)), torch.rand(4, 3)),
]


@pytest.mark.parametrize("make", NETS)
@pytest.mark.parametrize("fails", [False, True])
def test_nothing_stays_behind(make: Callable[[], tuple[nn.Module, Tensor]], fails: bool) -> None:
    """C20, C21: train mode, ``.grad``, hooks and the random state are as before, also where the loss raises."""
    net, inputs = make()
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    before, random = fingerprint(net), torch.get_rng_state()
    grads = [parameter.grad for parameter in net.parameters()]

    def broken(_: Any) -> Tensor:
        raise KeyError("in the middle")

    if fails:
        with pytest.raises(KeyError, match="in the middle"):
            compare_grad_inputs(net, inputs, loss=broken)
    else:
        compare_grad_inputs(net, inputs)
    assert same(fingerprint(net), before)
    assert all(one.grad is old for one, old in zip(net.parameters(), grads, strict=True))
    assert all(bool((one == 1).all()) for one in grads if one is not None)
    assert torch.equal(torch.get_rng_state(), random)


def test_what_cannot_be_compared_is_one_sentence() -> None:
    with pytest.raises(GradientError, match="every parameter is frozen"):
        compare_grad_inputs(nn.Linear(2, 2).requires_grad_(requires_grad=False), torch.rand(1, 2))
    with pytest.raises(UnknownLayerError, match="no layer 'fc9'"):
        compare_grad_inputs(nn.Linear(2, 2), torch.rand(1, 2), layers="fc9")
