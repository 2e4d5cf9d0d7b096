"""Every function of the hook library in one small use: what it gives, made of values that ``same`` can compare.

A use is called with a network, its inputs and an ``interrupt``, which it calls in the middle: inside a hook, a loss or
a ``keep`` function where the library function takes one.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from dataclasses import astuple
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

import hookviz
from hookviz.hooks import record_operations, watch_overwrites

Interrupt: TypeAlias = Callable[[], None]
Use: TypeAlias = Callable[[Any, Tensor, Interrupt], Any]


def nothing() -> None: ...


def first_convolution(net: nn.Module) -> str:
    """A convolution inside, by the name hookviz gives it: the second of the network."""
    return [layer.name for layer in hookviz.list_layers(net) if layer.class_name == "Conv2d"][1]


def run(net: Any, inputs: Tensor) -> Tensor:
    output: Tensor = net(inputs)
    return output


def gradients(net: nn.Module) -> list[Tensor | None]:
    """What a backward pass left, taken away."""
    found = [None if one.grad is None else one.grad.clone() for one in net.parameters()]
    net.zero_grad()
    return found


def loss_of(interrupt: Interrupt) -> Callable[[Any], Tensor]:
    def loss(output: Tensor) -> Tensor:
        interrupt()
        return output.square().sum()

    return loss


def use_record(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    def kept(tensor: Tensor) -> Tensor:
        interrupt()
        return tensor

    with hookviz.record(net, keep=kept) as rec:
        run(net, inputs)
    return {name: [call.output for call in calls] for name, calls in rec.items()}


def use_record_gradients(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    name = first_convolution(net)
    with hookviz.record(net, name, gradients=True, inputs=True) as rec:
        output = run(net, inputs)
        interrupt()
        output.square().sum().backward()
    call = rec[name][0]
    return call.output, call.grad_output, call.grad_input, gradients(net)


def use_record_operations(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    def kept(tensor: Tensor) -> Tensor:
        interrupt()
        return tensor

    with record_operations(net, keep=kept) as rec:
        run(net, inputs)
    return {name: [call.output for call in calls] for name, calls in rec.items()}


def use_attach_forward(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    def doubled(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        interrupt()
        return output * 2

    with hookviz.attach(net, {first_convolution(net): doubled}):
        return run(net, inputs)


def use_attach_forward_pre(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    def doubled(_: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        interrupt()
        return (args[0] * 2,)

    with hookviz.attach(net, {first_convolution(net): doubled}, "forward_pre"):
        return run(net, inputs)


def use_attach_backward(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    seen: list[Any] = []

    def noted(_: nn.Module, grad_input: Any, grad_output: Any) -> None:
        interrupt()
        seen.append((grad_input, grad_output))

    with hookviz.attach(net, {first_convolution(net): noted}, "backward", emulate=True):
        run(net, inputs).square().sum().backward()
    return seen, gradients(net)


def use_attach_tensor(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    def halved(gradient: Tensor) -> Tensor:
        interrupt()
        return gradient / 2

    with hookviz.attach(net, {first_convolution(net): halved}, "tensor"):
        run(net, inputs).square().sum().backward()
    return gradients(net)


def use_attach_global(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    seen: list[str] = []

    def noted(module: nn.Module, _: Any, __: Any) -> None:
        interrupt()
        seen.append(type(module).__name__)

    with hookviz.attach_global(noted):
        run(net, inputs)
    return [name for name in seen if name != "OptimizedModule"]  # the wrapper of torch.compile is a module too


def use_edit(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    class Interrupted(hookviz.Zero):
        def apply(self, tensor: Tensor) -> Tensor:
            interrupt()
            return super().apply(tensor)

    with hookviz.edit(net, {first_convolution(net): Interrupted([0, -1])}):
        return run(net, inputs)


def use_trace(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return [(one.kind, one.layer, one.call, one.shapes) for one in hookviz.trace(net, inputs, loss=loss_of(interrupt))]


def use_debug(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    stream = io.StringIO()
    with hookviz.debug(net, stream):
        output = run(net, inputs)
        interrupt()
        output.square().sum().backward()
    return stream.getvalue(), gradients(net)


def use_find_nonfinite(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    poisoned = inputs.clone()
    poisoned[0, 0, 0, 0] = torch.nan
    return hookviz.find_nonfinite(net, poisoned, loss=loss_of(interrupt))


def use_gradient_flow(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    loss = run(net, inputs).square().sum()
    interrupt()
    return hookviz.gradient_flow(net, loss)


def use_gradient_monitor(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with hookviz.GradientMonitor(net) as monitor:
        loss = run(net, inputs).square().sum()
        interrupt()
        loss.backward()
    return monitor.last, gradients(net)


def use_clip(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with hookviz.clip_parameter_gradients(net, max_norm=0.1) as clipping:
        loss = run(net, inputs).square().sum()
        interrupt()
        loss.backward()
    return clipping.last, gradients(net)


def use_clamp(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with hookviz.clamp_flowing_gradients(net, first_convolution(net), 1e-3) as clamp:
        loss = run(net, inputs).square().sum()
        interrupt()
        loss.backward()
    return dict(clamp.clamped), gradients(net)


def use_own_update(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    """With a step of length 0, so that the network can be compared with itself."""
    with hookviz.own_update(net, first_convolution(net), lr=0.0) as updated:
        loss = run(net, inputs).square().sum()
        interrupt()
        loss.backward()
    return updated, gradients(net)


def use_activity_penalty(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with hookviz.activity_penalty(net, first_convolution(net), 1e-3) as penalty:
        loss = run(net, inputs).square().sum()
        interrupt()
        loss.backward()
    return penalty.value, gradients(net)


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 2, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.conv(images)  # type: ignore[no-any-return]


def use_distill_as_teacher(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    torch.manual_seed(0)
    student = Student()
    with hookviz.distill(net, student, [(first_convolution(net), "conv")]) as hints:
        hints.prepare(inputs)
        student(inputs)
        interrupt()
        hints.loss().backward()
    return gradients(student)


def use_distill_as_student(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    torch.manual_seed(0)
    with hookviz.distill(Student(), net, [("conv", first_convolution(net))]) as hints:
        hints.prepare(inputs)
        run(net, inputs)
        interrupt()
        hints.loss().backward()
    return gradients(net)


def use_pruning_report(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.pruning_report(net)


def use_maps_before_and_after(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    maps = hookviz.maps_before_and_after(net, first_convolution(net), inputs, amount=0.5)
    return maps.before.output, maps.after.output, maps.pruned


def use_watch_overwrites(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with watch_overwrites(net) as overwrites:
        run(net, inputs)
        interrupt()
    return [(one.layer, one.call, one.by, one.naive) for one in overwrites]


def use_hook_cost(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.hook_cost(net, inputs, pairs=1).by_layer


def use_list_layers(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.list_layers(net, inputs)


def use_estimate(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return astuple(hookviz.estimate(net, inputs))


def use_list_hooks(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.list_hooks(net)


def use_remove_hooks(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.remove_hooks(net)


def use_lint_hooks(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    with hookviz.attach(net, {first_convolution(net): lambda *_: None}, "backward", emulate=False):
        return [(one.layer, one.kind, one.message) for one in hookviz.lint_hooks(net, inputs)]


def use_compare_grad_inputs(net: Any, inputs: Tensor, interrupt: Interrupt) -> Any:
    return hookviz.compare_grad_inputs(
        net, inputs.clone().requires_grad_(), loss=loss_of(interrupt), layers=first_convolution(net)
    )


USES: dict[str, Use] = {
    name.removeprefix("use_"): function for name, function in list(globals().items()) if name.startswith("use_")
}
WITHOUT_A_RUN = {"pruning_report", "list_hooks", "remove_hooks"}
"""These never run the network."""
WITHOUT_CODE_OF_ONES_OWN = {"hook_cost", "list_layers", "estimate", "lint_hooks", "maps_before_and_after"}
"""These run the network, and nothing that a caller writes: only the network itself can fail in the middle."""


def expected(use: Use, net: nn.Module, inputs: Tensor) -> Any:
    """What a use gives on a deepcopy nobody else has touched."""
    return use(copy.deepcopy(net), inputs, nothing)
