"""What torch's full backward hooks give, from hooks on tensors and graph nodes, which in-place operations allow.

Torch's own wrap the tensors a module takes and returns in views of an autograd function, and torch then refuses to
write into those (pytorch#61519). Nothing here wraps anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from hookviz.hooks.attach import HookHandles
from hookviz.hooks.backward_call import Arrivals, BackwardCall, WhenInput, WhenOutput
from hookviz.hooks.gradient_capture import GradientCapture, InputEdges, consuming_nodes
from hookviz.hooks.structure import leaves


@dataclass(frozen=True, slots=True)
class Started:
    """A call that has not returned yet."""

    time: int
    arguments: int
    inputs: InputEdges


class BackwardWatch:
    """Calls back, in the order of torch's own full hooks, as gradients arrive at calls of modules."""

    def __init__(self, handles: HookHandles) -> None:
        self._handles = handles
        self._clock = count()
        self._waiting: WeakSet[Arrivals] = WeakSet()
        # A hook that leads back to its node is a cycle the garbage collector cannot see.
        handles.when_removed.append(self._forget_nodes)

    def _forget_nodes(self) -> None:
        for arrivals in self._waiting:
            arrivals.forget_nodes()

    def before(self, args: tuple[Any, ...]) -> Started:
        """Note what a module is called with, from a forward pre-hook."""
        tensors = tuple(value if isinstance(value, Tensor) else None for value in args)
        needing = tensors if torch.is_grad_enabled() else ()
        return Started(next(self._clock), len(args), GradientCapture.before(needing))

    def after(self, started: Started, output: Any, when_output: WhenOutput, when_input: WhenInput) -> None:
        """Watch for the gradients of a call, from a forward hook."""
        outputs, size = _output_tensors(output)
        needing = {number: tensor for number, tensor in outputs if tensor.requires_grad}
        if not needing:
            return
        edges = {number: get_gradient_edge(tensor) for number, tensor in needing.items()}
        consumers = consuming_nodes([edge.node for edge in edges.values()], started.inputs)
        call = BackwardCall(size, started.arguments, when_output, when_input)
        end = next(self._clock)
        for number, tensor in needing.items():
            node, place = edges[number].node, edges[number].output_nr
            call.outputs.expect(number, node)
            self._on_tensor(tensor, _Event(end, partial(call.output_arrived, number)))
            for path in started.inputs.paths.get((node, place), ()):  # the module returned its input
                call.inputs.expect(("output", number, path), node)
                passed = partial(call.passed_through, ("output", number, path), int(path))
                self._on_tensor(tensor, _Event(started.time, passed, passes=True))
        for number, (node, positions) in enumerate(consumers.items()):
            call.inputs.expect(number, node)
            self._handles.add_to_node(node, partial(call.consumed, number, positions))
        self._wait_for_inner(started, call)
        call.outputs.seal()
        call.inputs.seal()
        self._waiting.update((call.outputs, call.inputs))

    def _wait_for_inner(self, started: Started, call: BackwardCall) -> None:
        """A layer inside that returned its input fires when the input's gradient arrives, and this call after it."""
        for (node, place), paths in started.inputs.paths.items():
            events = node.metadata.get(self, {}).get(place, [])
            if any(event.passes and event.time > started.time for event in events):
                call.inputs.expect(("input", *paths), node)
                events.append(_Event(started.time, partial(call.waited, ("input", *paths))))

    def _on_tensor(self, tensor: Tensor, event: _Event) -> None:
        """Hooks of one tensor fire in the order they were set; torch's own fire from the outermost module inwards."""
        edge = get_gradient_edge(tensor)
        place, metadata = (
            edge.output_nr,
            cast("dict[Any, Any]", edge.node.metadata),
        )  # declared as a method, is a property
        places = metadata.setdefault(self, {})
        if place not in places:
            places[place] = []
            self._handles.add_to_tensor(tensor, partial(_from_last, places[place]))
        places[place].append(event)


@dataclass(frozen=True, slots=True)
class _Event:
    """Something to do when a tensor's gradient arrives; ``time`` is when in the forward its reason came up."""

    time: int
    function: Callable[[Tensor], Tensor | None]
    passes: bool = False
    """Whether the tensor went through a module unchanged."""


def _from_last(events: list[_Event], gradient: Tensor) -> Tensor | None:
    replaced = None
    for event in sorted(events, key=lambda event: -event.time):
        answer = event.function(gradient)
        if answer is not None:
            replaced = gradient = answer
    return replaced


def _output_tensors(output: Any) -> tuple[list[tuple[int, Tensor]], int]:
    """Number the tensors as torch does in a tensor or a tuple; in other structures, in the order of their paths."""
    if isinstance(output, tuple):
        found = [(number, value) for number, value in enumerate(output) if isinstance(value, Tensor)]
        if found:
            return found, len(output)
    tensors = [tensor for _, tensor in leaves(output, Tensor)]
    return list(enumerate(tensors)), len(tensors)
