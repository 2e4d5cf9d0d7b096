from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks import attach
from hookviz.hooks.attach import BoundHook, HookHandles, HookKind
from tests.nets import ReusedReLUNet, hook_count


def test_a_hook_sees_torchs_own_arguments_and_its_return_value_is_used() -> None:
    net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), torch.randn(1, 3)
    with attach(net, {"0": lambda module, args, output: output * 0 - 1}):
        assert torch.equal(net(x), torch.zeros(1, 3))
    assert hook_count(net) == 0


def test_several_hooks_on_a_layer_run_in_order_each_seeing_the_one_before() -> None:
    net = nn.Sequential(nn.Identity())
    with attach(net, {"0": [lambda *a: a[-1] + 1, lambda *a: a[-1] * 10]}):
        assert net(torch.tensor(1.0)) == 20


def test_all_four_kinds() -> None:
    net, seen = nn.Sequential(nn.Linear(2, 2)), {}
    x = torch.randn(1, 2, requires_grad=True)

    def note(kind: str) -> Any:
        def hook(*arguments: Any) -> None:
            seen[kind] = len(arguments)

        return hook

    kinds: list[HookKind] = ["forward", "forward_pre", "backward", "backward_pre"]
    for kind in kinds:
        with attach(net, {"0": note(kind)}, kind):
            net(x).sum().backward()
    assert seen == {"forward": 3, "forward_pre": 2, "backward": 3, "backward_pre": 2}


def test_torchs_own_options() -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    order: list[Any] = []
    with (
        attach(net, {"0": lambda *_: order.append("second")}),
        attach(net, {"0": lambda m, args, kwargs, out: order.append(sorted(kwargs))}, prepend=True, with_kwargs=True),
    ):
        net[0](input=torch.ones(1, 2))
    assert order == [["input"], "second"]


def test_names_are_checked_before_anything_is_attached() -> None:
    net = ReusedReLUNet()
    with pytest.raises(UnknownLayerError, match="did you mean 'first'"), attach(net, {"relu": print, "frist": print}):
        pass
    assert hook_count(net) == 0


def test_an_unknown_kind_names_the_four() -> None:
    net = nn.Linear(2, 2)
    sideways: Any = "sideways"
    with (
        pytest.raises(HookvizError, match="forward, forward_pre, backward, backward_pre"),
        attach(net, {"": print}, sideways),
    ):
        pass
    assert hook_count(net) == 0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_hooks_come_off_whatever_happens(error: type[BaseException]) -> None:
    """C23."""
    net = ReusedReLUNet()
    with pytest.raises(error), attach(net, {"*": lambda *_: None}):
        assert hook_count(net) == 4
        raise error
    assert hook_count(net) == 0


def test_a_bound_hook_never_changes_an_output() -> None:
    """C58: junk returned by a callback is dropped."""
    net, x = nn.Linear(2, 2), torch.randn(1, 2)
    expected = net(x)
    with HookHandles() as handles:
        handles.add(net, BoundHook(net, lambda *_: torch.zeros(1)), "forward")
        handles.add(net, BoundHook(net, lambda *_: ()), "forward_pre")
        assert torch.equal(net(x), expected)


def test_registering_from_many_threads_loses_no_hook() -> None:
    """C03: torch numbers its hooks from a counter that two threads may read at once."""
    net, rounds = nn.Linear(2, 2), 200
    missing: list[int] = []
    together = threading.Barrier(8)

    def visit() -> None:
        together.wait()
        for _ in range(rounds):
            with HookHandles() as handles:
                fired: list[int] = []
                for number in range(3):
                    handles.add(net, BoundHook(net, lambda *_, n=number, f=fired: f.append(n)), "forward")
                net(torch.ones(1, 2))
                if fired != [0, 1, 2]:
                    missing.append(len(fired))

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missing == []
    assert hook_count(net) == 0


def test_a_forward_may_raise_in_another_thread_meanwhile() -> None:
    net = nn.Linear(2, 2)

    def broken(_: nn.Module, __: Any, output: Tensor) -> None:
        raise ValueError(str(output.shape))

    with attach(net, {"": broken}), pytest.raises(ValueError, match=r"torch\.Size"):
        net(torch.ones(1, 2))
    assert hook_count(net) == 0


def test_the_mark_that_torch_leaves_on_a_module_is_taken_back() -> None:
    """O5: after a full backward hook torch would refuse the other kind of backward hook forever."""
    net = nn.Sequential(nn.Linear(2, 2))

    def mark() -> bool | None:
        return net[0]._is_full_backward_hook

    with attach(net, {"0": lambda *_: None}, "backward"):
        assert mark() is True
    assert mark() is None
    own = net[0].register_full_backward_hook(lambda *_: None)
    with attach(net, {"0": lambda *_: None}, "backward"):
        pass
    assert mark() is True
    own.remove()
