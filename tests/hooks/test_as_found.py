from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from tests.hooks.networks import example, network
from tests.hooks.uses import USES, WITHOUT_A_RUN, WITHOUT_CODE_OF_ONES_OWN, nothing
from tests.nets import fingerprint, same


class Stopped(BaseException):
    """As Streamlit's rerun and Ctrl-C, no ``Exception``."""


def stop() -> None:
    raise Stopped


def watched(net: nn.Module) -> dict[str, Any]:
    """The fingerprint, torch's marks of backward hooks included, and the random state."""
    marks = {name: one._is_full_backward_hook for name, one in net.named_modules()}
    hooks_of_parameters = {
        name: (len(one._backward_hooks or ()), len(one._post_accumulate_grad_hooks or ()))
        for name, one in net.named_parameters()
    }
    return {**fingerprint(net), "marks": marks, "of parameters": hooks_of_parameters}


@pytest.mark.parametrize("name", ["simple_cnn", "resnet18"])
@pytest.mark.parametrize("use", USES)
def test_a_network_is_as_before_after_every_function(use: str, name: str) -> None:
    """C20, C21, C58: weights, buffers, flags, ``.grad``, attributes, hooks, grad mode and randomness."""
    net, inputs = network(name), example(name)
    given, before, random = inputs.clone(), watched(net), torch.get_rng_state()
    expected = net(inputs).detach()
    USES[use](net, inputs, nothing)
    net.zero_grad()
    assert same(watched(net), before)
    assert torch.equal(net(inputs), expected)
    assert torch.equal(inputs, given)
    assert torch.is_grad_enabled()
    if use not in {"distill_as_teacher", "distill_as_student"}:  # a seed makes the student
        assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("name", ["simple_cnn", "resnet18"])
@pytest.mark.parametrize("use", sorted(set(USES) - WITHOUT_A_RUN))
def test_a_network_is_as_before_when_something_raises_in_the_middle(use: str, name: str) -> None:
    """C21: also what is no ``Exception``, raised in a hook, a loss, a ``keep``, or between forward and backward."""
    net, inputs = network(name), example(name)
    before = watched(net)
    expected = net(inputs).detach()
    if use in WITHOUT_CODE_OF_ONES_OWN:
        with pytest.raises((RuntimeError, HookvizError)):
            USES[use](net, inputs[:, :2], nothing)
    else:
        with pytest.raises(Stopped):
            USES[use](net, inputs, stop)
    net.zero_grad()
    assert same(watched(net), before)
    assert torch.equal(net(inputs), expected)
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    "use", ["trace", "find_nonfinite", "compare_grad_inputs", "hook_cost", "list_layers", "estimate"]
)
@pytest.mark.parametrize("fails", [False, True])
def test_functions_that_run_the_network_leave_train_mode_and_gradients(use: str, fails: bool) -> None:
    """C20: running statistics do not move, ``.grad`` keeps its very tensors, dropout draws nothing that stays."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(), nn.Conv2d(4, 2, 3)).train()
    net[1].eval()
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    inputs = torch.rand(2, 3, 8, 8)
    gradients = [parameter.grad for parameter in net.parameters()]
    before, random = watched(net), torch.get_rng_state()
    try:
        USES[use](net, inputs[:, :2] if fails else inputs, nothing)
    except RuntimeError:
        assert fails
    assert same(watched(net), before)
    assert all(one.grad is kept for one, kept in zip(net.parameters(), gradients, strict=True))
    assert all(bool((kept == 1).all()) for kept in gradients if isinstance(kept, Tensor))
    assert torch.equal(torch.get_rng_state(), random)
