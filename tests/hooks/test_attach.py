from __future__ import annotations

import copy
import gc
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks import attach
from hookviz.hooks.attach import BoundHook, HookHandles, HookKind, attach_global
from hookviz.hooks.inplace import in_place_operation
from tests.nets import (
    ConcatNet,
    DictHeads,
    FunctionalNet,
    InplaceReLUNet,
    ResidualInplaceNet,
    Returning,
    ReusedReLUNet,
    fingerprint,
    hook_count,
    same,
)


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


def test_prepended_hooks_keep_their_order_among_themselves() -> None:
    net = nn.Sequential(nn.Identity())
    ten, one = (lambda *a: a[-1] * 10), (lambda *a: a[-1] + 1)
    with attach(net, {"0": lambda *a: a[-1] + 5}), attach(net, {"0": [one, ten]}, prepend=True):
        assert net(torch.tensor(1.0)) == 25


def test_an_option_that_torch_does_not_have_for_a_kind_is_named() -> None:
    net, no_options = nn.Linear(2, 2), "tensor"
    with pytest.raises(HookvizError, match=r"'with_kwargs' for backward hooks.*they take prepend"):
        attach(net, {"": print}, "backward", with_kwargs=True).__enter__()
    with pytest.raises(HookvizError, match="they take no options"):
        attach(net, {"": print}, no_options, prepend=True).__enter__()  # type: ignore[arg-type]  # a plain string
    assert hook_count(net) == 0


def test_always_call_runs_where_the_forward_failed() -> None:
    net, seen = nn.Linear(2, 2), []
    with (
        attach(net, {"": lambda *arguments: seen.append(arguments[-1])}, always_call=True),
        pytest.raises(RuntimeError, match="shapes cannot be multiplied"),
    ):
        net(torch.ones(1, 3))
    assert seen == [None]


def test_tensor_hooks_see_and_replace_gradients_of_outputs() -> None:
    net, x = InplaceReLUNet(), torch.randn(1, 3, 6, 6, requires_grad=True)
    seen: list[Tensor] = []
    with attach(net, {"0": [lambda grad: grad * 2, seen.append]}, "tensor"):
        net(x).sum().backward()
    conv = net[0](x)
    assert torch.equal(seen[0], 2 * (conv > 0).float())
    expected = torch.autograd.grad(conv, x, 2 * (conv > 0).float())[0]
    assert torch.equal(x.grad, expected)  # type: ignore[arg-type]  # backward has run


def backward_log(net: nn.Module, kind: HookKind, x: Tensor, *, emulate: bool | None) -> list[Any]:
    log: list[Any] = []
    names = {module: name for name, module in net.named_modules()}

    def hook(module: nn.Module, *gradients: Any) -> None:
        log.append((names[module], *gradients))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with attach(net, {"*": hook}, kind, emulate=emulate):
            net(x).square().sum().backward()
    return log


@pytest.mark.parametrize("kind", ["backward", "backward_pre"])
@pytest.mark.parametrize("needs_grad", [False, True])
def test_emulated_hooks_get_what_torchs_own_get(kind: HookKind, needs_grad: bool) -> None:
    """C39, C40: the same calls in the same order, with the same tuples, to the last bit."""
    for net in (ReusedReLUNet(), nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.Softmax(1)), ThreeInputs()):
        x = torch.randn(2, 4, requires_grad=needs_grad)
        own, emulated = (backward_log(net, kind, x, emulate=choice) for choice in (False, True))
        assert len(own) >= 3
        assert same(own, emulated)


class Sum(nn.Module):
    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return x + y * z


class ThreeInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.sum = Sum()

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        return self.sum(y, y.sin(), y.cos())  # type: ignore[no-any-return]


@pytest.mark.parametrize("make", [InplaceReLUNet, ResidualInplaceNet, FunctionalNet])
def test_backward_hooks_on_inplace_networks_are_emulated_and_that_is_said(make: Callable[[], nn.Module]) -> None:
    """C07: torch's own raise."""
    net, x, seen = make(), torch.randn(1, 3, 6, 6), []
    before, conv = fingerprint(net), next(name for name, one in net.named_modules() if isinstance(one, nn.Conv2d))
    with (
        pytest.raises(RuntimeError, match="is a view and is being modified inplace"),
        attach(net, {conv: print}, "backward", emulate=False),
    ):
        net(x)
    with (
        pytest.warns(UserWarning, match=r"writes in place .*: hookviz sets hooks on tensors"),
        attach(net, {conv: lambda *gradients: seen.append(gradients[1:])}, "backward") as handles,
    ):
        net(x).sum().backward()
    assert handles.emulated == (conv,)
    layer = net.get_submodule(conv)
    inner = layer(x) + (x if make is ResidualInplaceNet else 0)
    assert same(seen, [((None,), ((inner > 0).float(),))])
    net.zero_grad(set_to_none=True)
    assert same(fingerprint(net), before)


def test_a_network_without_inplace_operations_gets_torchs_own_hooks() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with attach(net, {"0": print}, "backward") as handles:
            assert len(net[0]._backward_hooks) == 1
    assert handles.emulated == ()


def test_the_way_out_is_noted_where_an_inplace_operation_could_not_be_foreseen() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Identity())
    with pytest.raises(RuntimeError, match="modified inplace") as raised, attach(net, {"0": print}, "backward"):
        net[0](torch.ones(1, 2)).add_(1)
    assert raised.value.__notes__ == ["hookviz: an operation writes in place here; attach with emulate=True."]


def test_only_inputs_that_need_a_gradient_have_one() -> None:
    """C41: None for the other, not zeros."""
    net, seen, x2 = Product(), [], torch.tensor([5.0], requires_grad=True)
    with attach(net, {"": lambda *gradients: seen.append(gradients[1:])}, "backward", emulate=True):
        net(torch.tensor([3.0]), x2).sum().backward()
    assert same(seen, [((None, torch.tensor([3.0])), (torch.tensor([1.0]),))])


class Product(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y


@pytest.mark.parametrize("kind", ["backward", "backward_pre"])
def test_emulated_hooks_replace_gradients_as_torchs_own_do(kind: HookKind) -> None:
    linear = nn.Linear(3, 3)
    net, x = nn.Sequential(linear, nn.Tanh()), torch.randn(2, 3)
    both = [lambda *gradients: (gradients[1][0] * 2,), lambda *gradients: (gradients[1][0] + 1,)]
    results = []
    for emulate in (False, True):
        with attach(net, {"1": both}, kind, emulate=emulate):
            results.append(torch.autograd.grad(net(x).sum(), linear.weight)[0])
    assert torch.equal(*results)
    assert not torch.equal(results[0], torch.autograd.grad(net(x).sum(), linear.weight)[0])


def test_a_gradient_that_several_operations_carry_cannot_be_replaced() -> None:
    net, x = ResidualInplaceNet(), torch.randn(1, 3, 4, 4, requires_grad=True)
    with (
        attach(net, {"": lambda *gradients: gradients[1]}, "backward", emulate=True),
        pytest.raises(HookvizError, match="cannot replace gradients of the input that several operations carry"),
    ):
        net(x).sum().backward()


def test_outputs_in_a_dict_have_their_gradients_emulated() -> None:
    """C08: torch's own hook never fires."""
    net, seen, x = DictHeads(), [], torch.randn(2, 3)
    with attach(net, {"": lambda *gradients: seen.append(gradients[-1])}, "backward_pre", emulate=True):
        net(x)["a"].sum().backward()
    assert same(seen, [(torch.ones(2, 2), None)])


@pytest.mark.parametrize("emulate", [False, True])
@pytest.mark.parametrize("kind", ["backward", "backward_pre", "tensor"])
def test_a_backward_after_the_block_reaches_no_hook(kind: HookKind, emulate: bool) -> None:
    """C44: the graph still holds them."""
    net, seen = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), []
    with attach(net, {"*": lambda *gradients: seen.append(gradients)}, kind, emulate=emulate):
        output = net(torch.ones(1, 2, requires_grad=True))
    output.sum().backward()
    assert seen == []


def test_every_backward_pass_through_one_graph_fires_once() -> None:
    """C43."""
    net, seen = ConcatNet(), []
    with attach(net, {"*": lambda *gradients: seen.append(gradients[-1][0])}, "backward", emulate=True):
        output = net(torch.randn(1, 2, 3, 3, requires_grad=True)).sum()
        output.backward(retain_graph=True)
        once = list(seen)
        output.backward()
    assert len(once) == 4
    assert same(seen[4:], once)


def test_a_function_registered_twice_is_warned_of_with_both_places() -> None:
    net = nn.Linear(2, 2)

    def hook(*_: Any) -> None: ...

    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]  # CPython has frames
    first = attach(net, {"": hook})
    first.__enter__()
    with pytest.warns(UserWarning, match="will run twice") as caught, attach(net, {"": hook}):
        assert hook_count(net) == 2
    first.__exit__(None, None, None)
    [warning] = caught
    assert f"{__file__}:{line + 2} and again at {__file__}:{line + 3}" in str(warning.message)
    with pytest.warns(UserWarning, match="twice"), attach(net, {"": [hook, hook]}, "backward"):
        pass
    own = net.register_forward_hook(hook)
    with pytest.warns(UserWarning, match="registered at a place outside hookviz and again"), attach(net, {"": hook}):
        pass
    own.remove()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with attach(net, {"": hook}), attach(net, {"": hook}, "forward_pre"):
            pass


def test_global_hooks_fire_for_every_module_before_their_own_and_come_off() -> None:
    net, seen = nn.Sequential(nn.Linear(2, 2)), []
    with (
        pytest.raises(KeyboardInterrupt),
        attach(net, {"0": lambda *_: seen.append("own")}),
        attach_global([lambda module, args, kwargs, out: seen.append(type(module).__name__)], with_kwargs=True),
    ):
        net(torch.ones(1, 2))
        raise KeyboardInterrupt
    assert seen == ["Linear", "own", "Sequential"]
    assert hook_count(net) == 0


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "backward", "backward_pre"])
def test_every_kind_of_global_hook(kind: HookKind) -> None:
    net, seen = nn.Linear(2, 2), []
    with attach_global(lambda *arguments: seen.append(len(arguments)), kind):
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [{"forward": 3, "forward_pre": 2, "backward": 3, "backward_pre": 2}[kind]]
    assert nn.modules.module._global_is_full_backward_hook is None
    assert hook_count(net) == 0


def test_emulated_global_hooks_work_on_inplace_networks() -> None:
    """C07."""
    net, seen = InplaceReLUNet(), []
    with attach_global(lambda module, *_: seen.append(type(module).__name__), "backward", emulate=True):
        net(torch.ones(1, 3, 5, 5)).sum().backward()
    assert seen == ["InplaceReLUNet", "ReLU", "Conv2d"]
    assert hook_count(net) == 0


def test_inplace_operations_are_found_in_code_and_in_modules() -> None:
    assert in_place_operation(ReusedReLUNet()) == ""
    assert in_place_operation(InplaceReLUNet()) == "1 is a ReLU with inplace=True"
    assert in_place_operation(ResidualInplaceNet()) == "'+=' in the forward of ResidualInplaceNet"
    assert "relu_" in in_place_operation(FunctionalNet())
    assert "helping" in repr(helping)
    assert in_place_operation(Helped()) == "'mul_' in the forward of Helped"


def helping(x: Tensor) -> Tensor:
    return x.mul_(2)


class Helped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return helping(x)


def test_a_graph_that_is_dropped_is_not_kept_by_emulated_hooks() -> None:
    net = nn.Sequential(*(nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)) for _ in range(2)))
    with attach(net, {"*": lambda *_: None}, "backward", emulate=True) as handles:
        for _ in range(600):
            net(torch.ones(1, 2)).sum().backward()
        assert len(handles._handles) < 3000


class Marker: ...


@pytest.mark.parametrize("kind", ["backward", "backward_pre"])
def test_a_graph_without_a_backward_goes_when_the_block_is_left(kind: HookKind) -> None:
    net, marker = Returning(lambda x: (x + 1, x * 2)), Marker()
    gone = weakref.ref(marker)
    with attach(net, {"*": lambda *_: None}, kind, emulate=True):
        output = net(torch.ones(1, requires_grad=True))
        output[0].grad_fn.metadata["marker"] = marker
        del marker
    assert gone() is not None
    del output
    gc.collect()
    assert gone() is None


def test_a_copy_made_meanwhile_runs_like_its_original() -> None:
    net = InplaceReLUNet()
    with attach(net, {"0": lambda *_: None}, "backward", emulate=True):
        assert copy.deepcopy(net)(torch.ones(1, 3, 5, 5)).shape == (1, 4, 3, 3)


@pytest.mark.parametrize("first_out", [0, 1])
def test_blocks_that_overlap_leave_torchs_backward_mark_as_it_was(first_out: int) -> None:
    """C21: torch marks a module at its first backward hook; whichever block is left last takes the mark back."""
    net = nn.Linear(2, 2)
    blocks = [attach(net, {"": lambda *_: None}, "backward") for _ in range(2)]
    for block in (*blocks, attach(net, {"": lambda *_: None})):
        block.__enter__()
    blocks[first_out].__exit__(None, None, None)
    assert net._backward_hooks
    blocks[1 - first_out].__exit__(None, None, None)
    assert net._is_full_backward_hook is None
    net.register_backward_hook(lambda *_: None)
