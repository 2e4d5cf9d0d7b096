"""What torch's full backward hooks give, from hooks on tensors and graph nodes, which in-place operations allow.

Torch's own wrap the tensors a module takes and returns in views of an autograd function, and torch then refuses to
write into those (pytorch#61519). Nothing here wraps anything.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, TypeAlias, cast
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.autograd import Variable
from torch.autograd.graph import get_gradient_edge

from hookviz.errors import HookvizError
from hookviz.hooks.attach import Hook, HookHandles, HookKind
from hookviz.hooks.gradient_capture import GradientCapture, InputEdges, consuming_nodes, is_backward
from hookviz.hooks.structure import leaves

Gradients: TypeAlias = "tuple[Tensor | None, ...]"
WhenOutput: TypeAlias = "Callable[[Gradients], Gradients | None]"
"""Called with ``grad_output``, before the call's own gradients are computed."""
WhenInput: TypeAlias = "Callable[[Gradients, Gradients], Any]"
"""Called with ``grad_input`` and ``grad_output``, when the call's inputs have their gradients."""


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
        self._waiting: WeakSet[_Arrivals] = WeakSet()
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
        call = _Call(size, started.arguments, when_output, when_input)
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

    def _wait_for_inner(self, started: Started, call: _Call) -> None:
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


class _Arrivals:
    """The parts of something that come one by one in a backward pass."""

    def __init__(self) -> None:
        self._nodes: dict[Hashable, Any] = {}
        self._awaited: set[Hashable] = set()
        self._task = -1
        self.count = 0
        self.parts: dict[Hashable, Any] = {}

    def expect(self, key: Hashable, node: Any) -> None:
        """Wait for the part that comes from ``node``."""
        self._nodes[key] = node

    def seal(self) -> None:
        """Expect nothing more. A lone node need not be kept, and the fewer are kept the sooner graphs can go."""
        self._awaited = set(self._nodes)
        self.count = len(self._nodes)
        if self.count < 2:
            self._nodes.clear()

    def forget_nodes(self) -> None:
        """Let go of the graph."""
        self._nodes.clear()

    def add(self, key: Hashable, part: Any, at_end: Callable[[], None]) -> bool:
        """Keep a part; whether all that this backward pass brings are there."""
        task = torch._C._current_graph_task_id()
        if task != self._task:
            self._task = task
            self.parts.clear()
            if self._nodes:
                self._awaited = {key for key, node in self._nodes.items() if torch._C._will_engine_execute_node(node)}
                self._nodes.clear()
            if self.count > 1:
                Variable._execution_engine.queue_callback(at_end)
        self.parts[key] = part
        return self.complete

    @property
    def complete(self) -> bool:
        return bool(self.parts) and self._awaited <= self.parts.keys()


class _Call:
    """One call of a module, waiting for its gradients. Holds no tensor between backward passes."""

    def __init__(self, outputs: int, inputs: int, when_output: WhenOutput, when_input: WhenInput) -> None:
        self._sizes = (outputs, inputs)
        self._when_output = when_output
        self._when_input = when_input
        self._grad_output: Gradients | None = None
        self.outputs = _Arrivals()
        self.inputs = _Arrivals()

    def output_arrived(self, number: int, gradient: Tensor) -> Tensor | None:
        if not self.outputs.add(number, gradient, self._end):
            return None
        replaced = self._open()
        if replaced is None:
            return None
        if self.outputs.count > 1:
            raise HookvizError(_CANNOT_REPLACE.format("output", "several tensors"))
        return replaced[number]

    def passed_through(self, key: Hashable, argument: int, gradient: Tensor) -> Tensor | None:
        if not self.inputs.add(key, [(argument, gradient)], self._end):
            return None
        return self._replaced(self._close(), [argument])[0]

    def waited(self, key: Hashable, _: Tensor) -> None:
        if self.inputs.add(key, [], self._end) and self._close() is not None:
            raise HookvizError(_CANNOT_REPLACE.format("input", "several layers"))

    def consumed(
        self,
        key: Hashable,
        positions: Sequence[tuple[int, str]],
        grad_inputs: Gradients,
        _: Any,
    ) -> Gradients | None:
        parts = [(int(path), grad_inputs[position]) for position, path in positions]
        if not self.inputs.add(key, parts, self._end):
            return None
        answer = self._close()
        if answer is None:
            return None
        changed = list(grad_inputs)
        for (position, _path), new in zip(
            positions, self._replaced(answer, [argument for argument, _ in parts]), strict=True
        ):
            changed[position] = new
        return tuple(changed)

    def _replaced(self, answer: Gradients | None, arguments: list[int]) -> list[Tensor | None]:
        if answer is None:
            return [None] * len(arguments)
        if self.inputs.count > 1 or len(set(arguments)) < len(arguments):
            raise HookvizError(_CANNOT_REPLACE.format("input", "several operations"))
        return [answer[argument] for argument in arguments]

    def _open(self) -> Gradients | None:
        given = tuple(self.outputs.parts.get(number) for number in range(self._sizes[0]))
        self.outputs.parts.clear()
        replaced = self._when_output(given)
        self._grad_output = given if replaced is None else replaced
        if self.inputs.count == 0 or self.inputs.complete:
            self._close()
        return replaced

    def _close(self) -> Gradients | None:
        if self._grad_output is None:
            return None  # its share came first, or this is the second of two derivatives
        totals: dict[int, Tensor] = {}
        for argument, part in (one for parts in self.inputs.parts.values() for one in parts):
            if part is not None:
                totals[argument] = totals[argument] + part if argument in totals else part
        given = tuple(totals.get(number) for number in range(self._sizes[1]))
        grad_output, self._grad_output = self._grad_output, None
        self.inputs.parts.clear()
        answer: Gradients | None = self._when_input(given, grad_output)
        return answer

    def _end(self) -> None:
        """Give what came, where a part of it had no gradient in this backward pass."""
        if self.outputs.parts:
            self._open()
        if self.inputs.parts:
            self._close()
        self.outputs.parts.clear()
        self.inputs.parts.clear()
        self._grad_output = None


_CANNOT_REPLACE = (
    "an emulated backward hook cannot replace gradients of the {} that {} carry; return None, or attach with "
    "emulate=False where the network writes nothing in place."
)


class EmulatedHook:
    """A forward hook that sets the backward hooks of one call; ``kind`` and ``functions`` say which."""

    def __init__(self, kind: str, functions: Sequence[Hook], watch: BackwardWatch, handles: HookHandles) -> None:
        self.kind = kind
        self.functions = tuple(functions)
        self._watch = watch
        self._handles = handles
        self._started: dict[tuple[int, nn.Module], list[Started]] = defaultdict(list)

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Note a call's inputs."""
        if not is_backward():
            self._started[threading.get_ident(), module].append(self._watch.before(args))

    def __call__(self, module: nn.Module, _: tuple[Any, ...], output: Any) -> None:
        """Set the hooks on what a call returned; ``None`` where it failed."""
        if is_backward():
            return
        started = self._started[threading.get_ident(), module].pop()
        if not self._started[threading.get_ident(), module]:
            del self._started[threading.get_ident(), module]
        if self.kind == "tensor":
            self._hook_tensors(output)
        elif self.kind == "backward_pre":
            self._watch.after(started, output, partial(self._replace, module), lambda *_: None)
        else:
            self._watch.after(started, output, lambda _: None, partial(self._replace, module))

    def _hook_tensors(self, output: Any) -> None:
        for _, tensor in leaves(output, Tensor):
            for function in self.functions if tensor.requires_grad else ():
                self._handles.add_to_tensor(tensor, function)

    def _replace(self, module: nn.Module, gradients: Gradients, *others: Gradients) -> Gradients | None:
        replaced = None
        for function in self.functions:
            answer = function(module, gradients, *others)
            if answer is not None:
                replaced = (answer,) if isinstance(answer, Tensor) else tuple(answer)
                if len(replaced) != len(gradients):
                    raise HookvizError(f"a backward hook returned {len(replaced)} gradients for {len(gradients)}.")
                gradients = replaced
        return replaced


class Before:
    """The forward pre-hook that goes with an emulated hook; no hook of its own to a reader."""

    def __init__(self, emulated: EmulatedHook) -> None:
        self.emulated = emulated

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Let the emulated hook note the inputs."""
        self.emulated.before(module, args)


def emulate_on(handles: HookHandles, hooks: Mapping[nn.Module, Sequence[Hook]], kind: HookKind) -> None:
    """Put backward or tensor hooks on modules without wrapping anything."""
    watch = BackwardWatch(handles)
    for module, functions in hooks.items():
        emulated = EmulatedHook(kind, functions, watch, handles)
        handles.add(module, Before(emulated), "forward_pre")
        handles.add(module, emulated, "forward", always_call=True)


def emulate_globally(handles: HookHandles, hooks: Sequence[Hook], kind: str) -> None:
    """Put backward hooks on every module of the process without wrapping anything."""
    emulated = EmulatedHook(kind, hooks, BackwardWatch(handles), handles)
    handles.add_global(Before(emulated), "forward_pre")
    handles.add_global(emulated, "forward", always_call=True)
