"""Clamping the gradient that flows from a layer to the layers before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from hookviz.errors import HookvizError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.gradient_capture import GradientCapture, InputEdges, consuming_nodes
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.structure import leaves


class FlowingClamp:
    """What an open clamp met: per layer, how many elements it cut off, and how many were NaN or infinite."""

    def __init__(self) -> None:
        self.clamped: Counter[str] = Counter()
        self.nonfinite: Counter[str] = Counter()

    @property
    def skip_step(self) -> bool:
        """Whether the optimizer's step should be left out, since something that is not finite flowed."""
        return self.nonfinite.total() > 0


@contextmanager
def clamp_flowing_gradients(module: nn.Module, layers: Layers, limit: float) -> Iterator[FlowingClamp]:
    """Clamp what flows back out of layers' inputs to ``[-limit, limit]``; their own parameters' gradients stay.

    >>> with clamp_flowing_gradients(model, "layer3", 0.01) as clamp:
    ...     criterion(model(images), targets).backward()

    Clamped is the share of an input's gradient that flows through the layer's call, which torch calls ``grad_input``;
    what reaches the same tensor by another way, such as a shortcut, is not. NaN and infinities flow on as they are, and
    are counted. Forward and backward both belong inside the block. Hooks sit on autograd's graph, so in-place
    operations before and behind the layer do not disturb them. A layer that returns its very input (an identity) is
    clamped at that tensor, whatever flows into it.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
        HookvizError: a limit that is not positive.
    """
    if not limit > 0:
        raise HookvizError("give a limit larger than 0.")
    names = LayerNames(module)
    clamp = FlowingClamp()
    with run_eagerly(), HookHandles() as handles:
        for name in names.resolve(layers):
            _LayerClamp(name, limit, clamp, handles).install(names[name])
        yield clamp


class _LayerClamp:
    """The hooks of one layer: before each call its inputs' edges are noted, after it their consumers are hooked."""

    def __init__(self, name: str, limit: float, clamp: FlowingClamp, handles: HookHandles) -> None:
        self._name = name
        self._limit = limit
        self._clamp = clamp
        self._handles = handles
        self._open: list[InputEdges] = []

    def install(self, layer: nn.Module) -> None:
        self._handles.add(layer, BoundHook(layer, self._enter), "forward_pre", with_kwargs=True)
        self._handles.add(layer, BoundHook(layer, self._leave), "forward", always_call=True)

    def _enter(self, args: Any, kwargs: Any) -> None:
        self._open.append(GradientCapture.before((args, kwargs)))

    def _leave(self, _: Any, output: Any) -> None:
        inputs = self._open.pop()
        outputs = [tensor for _, tensor in leaves(output, Tensor) if tensor.requires_grad]
        shares: dict[tuple[Any, int], _Share] = {}
        for tensor in outputs:
            edge = get_gradient_edge(tensor)
            if (edge.node, edge.output_nr) in inputs.paths:
                self._handles.add_to_tensor(tensor, _Share(self._limited).add)
        for node in consuming_nodes([get_gradient_edge(tensor).node for tensor in outputs], inputs):
            taken = {
                position: shares.setdefault(edge, _Share(self._limited))
                for position, edge in enumerate(node.next_functions)
                if edge in inputs.paths
            }
            self._handles.add_to_node(node, partial(_replace, taken))

    def _limited(self, gradient: Tensor) -> Tensor:
        finite = torch.isfinite(gradient)
        self._clamp.nonfinite[self._name] += int((~finite).sum())
        self._clamp.clamped[self._name] += int((finite & (gradient.abs() > self._limit)).sum())
        return torch.where(finite, gradient.clamp(-self._limit, self._limit), gradient)


class _Share:
    """Passes on, of parts that arrive one by one, what makes their sum the clamped sum of all parts so far."""

    def __init__(self, limited: Callable[[Tensor], Tensor]) -> None:
        self._limited = limited
        self._backward_pass = -1
        self._sum: Tensor | None = None
        self._passed: Tensor | None = None

    def add(self, part: Tensor) -> Tensor:
        backward_pass = torch._C._current_graph_task_id()
        if backward_pass != self._backward_pass or self._sum is None or self._passed is None:
            self._backward_pass, self._sum = backward_pass, part
            self._passed = self._limited(part)
            return self._passed
        self._sum = self._sum + part
        passed, self._passed = self._passed, self._limited(self._sum)
        return self._passed - passed


def _replace(taken: dict[int, _Share], grad_inputs: tuple[Tensor | None, ...], _: Any) -> tuple[Tensor | None, ...]:
    return tuple(
        taken[position].add(gradient) if position in taken and gradient is not None else gradient
        for position, gradient in enumerate(grad_inputs)
    )
