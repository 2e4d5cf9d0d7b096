"""A penalty on what a layer puts out, added to the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves

PenaltyKind: TypeAlias = Literal["l1", "l2"]

_PENALTIES: dict[str, Callable[[Tensor], Tensor]] = {
    "l1": lambda activation: activation.abs().sum(),
    "l2": lambda activation: activation.square().sum(),
}


class ActivityPenalty:
    """What an open penalty amounts to: ``value`` is the sum over all calls of the last forward, weight included."""

    def __init__(self) -> None:
        self.value = 0.0


@contextmanager
def activity_penalty(
    module: nn.Module, layer: Layers, weight: float, kind: PenaltyKind = "l1"
) -> Iterator[ActivityPenalty]:
    """Train as if ``weight`` times a penalty on a layer's output were part of the loss.

    >>> with activity_penalty(model, "conv1", 1e-4):
    ...     criterion(model(images), targets).backward()

    The penalty is the sum over every element of the output, ``"l1"`` of absolute values and ``"l2"`` of squares, as
    they were when the layer returned, also where an in-place operation follows. Its gradient joins the loss's gradient
    at the output, so that backward gives what the sum of both would; a loss that does not depend on the layer brings no
    gradient to it, and the penalty adds none. Under a gradient scaler, multiply ``weight`` by its scale.

    Args:
        module: the network.
        layer: a name, glob, type or module, or a list of them; every call counts.
        weight: the penalty's weight.
        kind: ``"l1"`` or ``"l2"``.

    Returns:
        A context manager that gives the ``ActivityPenalty``.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
        HookvizError: another kind.
    """
    if kind not in _PENALTIES:
        raise HookvizError(f"no penalty {kind!r}; choose one of {', '.join(_PENALTIES)}.")
    names = LayerNames(module)
    chosen = names.resolve(layer)
    penalty = ActivityPenalty()
    with run_eagerly(), HookHandles() as handles:
        handles.add(names.root, BoundHook(names.root, partial(_begin, penalty)), "forward_pre")
        hook = partial(_charge, handles, penalty, weight, _PENALTIES[kind])
        for name in chosen:
            handles.add(names[name], BoundHook(names[name], hook), "forward")
        yield penalty


def _begin(penalty: ActivityPenalty, *_: Any) -> None:
    if not is_backward():
        penalty.value = 0.0


def _charge(
    handles: HookHandles,
    penalty: ActivityPenalty,
    weight: float,
    function: Callable[[Tensor], Tensor],
    _: Any,
    output: Any,
) -> None:
    for _path, activation in leaves(output, Tensor):
        if not activation.is_floating_point():
            continue
        if not is_backward():  # a checkpoint's recomputation is the same call again
            penalty.value += weight * float(function(activation.detach()))
        if activation.requires_grad:
            handles.add_to_tensor(activation, partial(_add, _gradient(activation, weight, function)))


def _gradient(activation: Tensor, weight: float, function: Callable[[Tensor], Tensor]) -> Tensor:
    """The penalty's gradient, taken now: the activation may be overwritten before backward."""
    with torch.enable_grad():
        value = snapshot(activation).requires_grad_()
        (gradient,) = torch.autograd.grad(weight * function(value), value)
    return gradient


def _add(penalty_gradient: Tensor, gradient: Tensor) -> Tensor:
    return gradient + penalty_gradient
