from __future__ import annotations

import copy
import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import prune

from hookviz.errors import HookvizError
from hookviz.hooks import attach, record
from hookviz.hooks.attach import attach_global
from hookviz.hooks.edit import edit
from hookviz.hooks.edits import Zero
from hookviz.hooks.listing import list_hooks, remove_hooks
from tests.nets import InplaceReLUNet, hook_count


def noted(*_: Any) -> None: ...


LINE = noted.__code__.co_firstlineno


class Callback:
    def __call__(self, *_: Any) -> None: ...


def test_every_hook_is_listed_with_who_put_it_where() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[0].register_forward_hook(noted)
    net[1].register_forward_pre_hook(functools.partial(noted, 1))
    everywhere = register_module_forward_hook(noted)
    try:
        with attach(net, {"1": noted}, "backward") as _, attach(net, {"": noted}, "backward_pre"):
            listed = list_hooks(net)
    finally:
        everywhere.remove()
    assert [(one.kind, one.layer, one.by_hookviz, one.is_global) for one in listed] == [
        ("forward", None, False, True),
        ("backward_pre", "", True, False),
        ("forward", "0", False, False),
        ("forward_pre", "1", False, False),
        ("backward", "1", True, False),
    ]
    assert {(one.function, one.file, one.line) for one in listed} == {("noted", __file__, LINE)}
    assert [one.registered_at.rpartition(":")[0] for one in listed] == ["", __file__, "", "", __file__]
    assert str(listed[2]) == f"forward hook noted ({__file__}:{LINE}) on layer '0'"


def test_hooks_that_are_objects_methods_or_written_in_c_are_named() -> None:
    net = nn.Linear(2, 2)
    net.register_forward_hook(Callback())
    net.register_forward_hook(print)
    net.register_forward_pre_hook(net.extra_repr)  # type: ignore[arg-type]  # never called
    listed = list_hooks(net)
    assert [one.function for one in listed] == ["Linear.extra_repr", "Callback", "print"]
    assert [one.line for one in listed[1:]] == [Callback.__call__.__code__.co_firstlineno, 0]


def test_the_deprecated_backward_hook_is_flagged() -> None:
    """C40: it mixes inputs' and weights' gradients."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[0].register_backward_hook(noted)
    net[1].register_full_backward_hook(noted)
    assert [one.deprecated.partition(" ")[0] for one in list_hooks(net)] == ["register_backward_hook", ""]


def test_emulated_hooks_are_listed_as_what_they_stand_for() -> None:
    """C07."""
    net = InplaceReLUNet()
    with attach(net, {"0": [noted, print]}, "backward", emulate=True), attach(net, {"1": noted}, "tensor"):
        listed = [(one.kind, one.layer, one.function, one.emulated, one.by_hookviz) for one in list_hooks(net)]
    assert listed == [
        ("backward", "0", "noted", True, True),
        ("backward", "0", "print", True, True),
        ("tensor", "1", "noted", True, True),
    ]
    assert list_hooks(net) == []


def test_ones_own_hooks_are_removed_and_those_of_others_stay() -> None:
    net, seen = InplaceReLUNet(), []
    net[0].register_forward_hook(noted, always_call=True)
    with (
        attach(net, {"0": lambda *_: seen.append(1)}),
        record(net, "0"),
        edit(net, {"0": Zero()}),
        attach_global(noted),
    ):
        mine = [one for one in list_hooks(net) if one.by_hookviz]
        assert remove_hooks(net) == mine
        assert [one.by_hookviz for one in list_hooks(net)] == [False]
        net(torch.ones(1, 3, 5, 5))
    assert seen == []
    assert hook_count(net) == 1


def test_all_hooks_are_removed_when_asked_for_by_name() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    net[0].register_forward_hook(noted, with_kwargs=True, always_call=True)
    net[0].register_forward_pre_hook(noted, with_kwargs=True)
    prune.l1_unstructured(net[0], "weight", 1)
    everywhere = register_module_forward_hook(noted, with_kwargs=True, always_call=True)
    assert [one.function for one in remove_hooks(net, "all")] == ["noted", "noted", "L1Unstructured", "noted"]
    everywhere.remove()
    assert hook_count(net) == 0
    assert not net[0]._forward_hooks_always_called
    assert not net[0]._forward_pre_hooks_with_kwargs
    assert not nn.modules.module._global_forward_hooks_always_called
    with pytest.raises(HookvizError, match="Choose 'hookviz' or 'all'"):
        remove_hooks(net, "mine")  # type: ignore[arg-type]  # the mistake


def test_a_removed_backward_hook_is_silent_in_graphs_made_before() -> None:
    """C44."""
    net, seen = nn.Linear(2, 2), []
    with attach(net, {"": lambda *_: seen.append(1)}, "backward"):
        output: Tensor = net(torch.ones(1, 2))
        remove_hooks(net)
        output.sum().backward()
    assert seen == []


def test_the_hooks_of_a_copy_are_not_taken_for_ours() -> None:
    net = nn.Linear(2, 2)
    with attach(net, {"": noted}):
        assert [one.by_hookviz for one in list_hooks(copy.deepcopy(net))] == [False]
        assert [one.by_hookviz for one in list_hooks(net)] == [True]
