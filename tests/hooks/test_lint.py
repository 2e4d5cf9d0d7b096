from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook
from torch.nn.utils import prune

from hookviz.hooks import Zero, attach, attach_global, edit, record, remove_hooks
from hookviz.hooks.lint import HookFinding, lint_hooks
from tests.hooks.networks import network
from tests.nets import InplaceReLUNet, fingerprint, same


def noted(*_: Any) -> None: ...


class Counter:
    def count(self, *_: Any) -> None: ...


def kinds(findings: tuple[HookFinding, ...]) -> list[tuple[str | None, str, str]]:
    return [(one.layer, one.hook, one.kind) for one in findings]


def test_the_deprecated_hook_is_found_and_the_tool_for_weights_named() -> None:
    """C40: of the two hooks that torch gives for a layer's gradients, one mixes in the weights'."""
    net = network("simple_cnn")
    net.get_submodule("conv1").register_backward_hook(noted)
    deprecated, left = lint_hooks(net)
    assert (deprecated.layer, deprecated.kind, deprecated.function) == ("conv1", "deprecated", "noted")
    assert deprecated.place == f"{__file__}:{noted.__code__.co_firstlineno}"
    assert "register_full_backward_hook" in deprecated.message
    assert "Tensor.register_post_accumulate_grad_hook" in deprecated.message
    assert left.kind == "left"


def test_a_full_backward_hook_where_something_writes_in_place_is_found_from_the_code() -> None:
    """C07: torch's forward raises with it."""
    net = InplaceReLUNet()
    with attach(net, {"0": noted}, "backward", emulate=False):
        (found,) = lint_hooks(net)
        with pytest.raises(RuntimeError, match="BackwardHookFunction"):
            net(torch.rand(1, 3, 5, 5))
    assert (found.layer, found.hook, found.kind) == ("0", "backward", "in place")
    assert "1 is a ReLU with inplace=True" in found.message
    assert "emulate=True" in found.message


def test_with_arguments_only_those_are_found_that_really_raise() -> None:
    """C07: of resnet18, layer1.0.bn2 raises (``out += identity``), fc does not; so torch says of each alone."""
    net = network("resnet18")
    images = torch.rand(1, 3, 32, 32)
    for name in ("layer1.0.bn2", "fc", "layer4"):
        net.get_submodule(name).register_full_backward_hook(noted)
    before = fingerprint(net)
    assert [one.layer for one in lint_hooks(net) if one.kind == "in place"] == ["layer1.0.bn2", "layer4", "fc"]
    raising = [one for one in lint_hooks(net, images) if one.kind == "in place"]
    assert same(fingerprint(net), before)
    assert [one.layer for one in raising] == [name for name in ("layer1.0.bn2", "layer4", "fc") if raises(name, images)]
    assert [one.layer for one in raising] == ["layer1.0.bn2"]
    assert "is a view and is being modified inplace" in raising[0].message


def raises(layer: str, images: Tensor) -> bool:
    net = network("resnet18")
    net.get_submodule(layer).register_full_backward_hook(noted)
    try:
        net(images)
    except RuntimeError:
        return True
    return False


def test_a_backward_pre_hook_raises_likewise_and_an_emulated_one_does_not() -> None:
    """C07: what hookviz sets on tensors is no full hook."""
    net = InplaceReLUNet()
    with attach(net, {"0": noted}, "backward_pre", emulate=False):
        assert kinds(lint_hooks(net, torch.rand(1, 3, 5, 5))) == [("0", "backward_pre", "in place")]
    with attach(net, {"0": noted}, "backward", emulate=True):
        assert lint_hooks(net, torch.rand(1, 3, 5, 5)) == ()


def test_a_network_that_fails_for_another_reason_says_so() -> None:
    net = InplaceReLUNet()
    net[0].register_full_backward_hook(noted)
    with pytest.raises(RuntimeError, match="to have 3 channels"):
        lint_hooks(net, torch.rand(1, 2, 5, 5))


def test_a_function_registered_twice_is_found_with_both_places() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    counter = Counter()
    net[0].register_forward_hook(counter.count)
    net[0].register_forward_hook(counter.count)
    net[0].register_forward_pre_hook(counter.count)
    net[1].register_forward_hook(counter.count)
    twice = [one for one in lint_hooks(net) if one.kind == "twice"]
    assert kinds(tuple(twice)) == [("0", "forward", "twice")]
    assert twice[0].function == "Counter.count"
    assert f"({__file__}:{Counter.count.__code__.co_firstlineno})" in twice[0].message


def test_hooks_attached_twice_by_hookviz_name_the_lines_that_did() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    with attach(net, {"0": noted}), pytest.warns(UserWarning, match="twice"), attach(net, {"0": noted}):
        (found,) = lint_hooks(net)
    assert found.kind == "twice"
    assert found.place.startswith(f"{__file__}:")
    assert f"registered before ({found.place})" in found.message


def test_a_global_hook_is_found_whoever_registered_it() -> None:
    net = nn.Linear(2, 2)
    handle = register_module_forward_hook(noted)
    try:
        assert kinds(lint_hooks(net)) == [(None, "forward", "global"), (None, "forward", "left")]
    finally:
        handle.remove()
    with attach_global(noted, "forward_pre"):
        (found,) = lint_hooks(net)
    assert (found.kind, found.layer) == ("global", None)
    assert str(found).startswith("forward_pre hook noted (")
    assert " on every module: every module of every network in this process runs it" in str(found)


def test_what_removing_leaves_behind_is_found() -> None:
    """C22: ``remove_hooks`` takes hookviz's own; the hook of somebody else stays, and is named."""
    net = nn.Sequential(nn.Linear(2, 2))
    net[0].register_forward_hook(noted)
    remove_hooks(net)
    (found,) = lint_hooks(net)
    assert (found.layer, found.kind, found.function) == ("0", "left", "noted")
    assert "remove() on the handle" in found.message


def test_hooks_of_the_model_and_of_open_recordings_are_passed_over() -> None:
    """C50: pruning is a forward pre-hook that belongs to the model."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3))
    prune.l1_unstructured(net[0], "weight", 0.5)
    with record(net), edit(net, {"0": Zero(1)}):
        assert lint_hooks(net, torch.rand(1, 3, 5, 5)) == ()


def test_looking_at_a_clean_network_finds_nothing() -> None:
    assert lint_hooks(InplaceReLUNet(), torch.rand(1, 3, 5, 5)) == ()
