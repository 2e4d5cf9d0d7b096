"""One call of a module, waiting in a backward pass for the gradients of its outputs and of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd import Variable

from hookviz.errors import HookvizError

Gradients: TypeAlias = "tuple[Tensor | None, ...]"
WhenOutput: TypeAlias = "Callable[[Gradients], Gradients | None]"
"""Called with ``grad_output``, before the call's own gradients are computed."""
WhenInput: TypeAlias = "Callable[[Gradients, Gradients], Any]"
"""Called with ``grad_input`` and ``grad_output``, when the call's inputs have their gradients."""


class Arrivals:
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
        """Whether all that is expected has come."""
        return bool(self.parts) and self._awaited <= self.parts.keys()


class BackwardCall:
    """One call of a module, waiting for its gradients. Holds no tensor between backward passes."""

    def __init__(self, outputs: int, inputs: int, when_output: WhenOutput, when_input: WhenInput) -> None:
        self._sizes = (outputs, inputs)
        self._when_output = when_output
        self._when_input = when_input
        self._grad_output: Gradients | None = None
        self.outputs = Arrivals()
        self.inputs = Arrivals()

    def output_arrived(self, number: int, gradient: Tensor) -> Tensor | None:
        """A tensor hook: the gradient of one output is there."""
        if not self.outputs.add(number, gradient, self._end):
            return None
        replaced = self._open()
        if replaced is None:
            return None
        if self.outputs.count > 1:
            raise HookvizError(_CANNOT_REPLACE.format("output", "several tensors"))
        return replaced[number]

    def passed_through(self, key: Hashable, argument: int, gradient: Tensor) -> Tensor | None:
        """A tensor hook on an input that the module returned: its gradient is there."""
        if not self.inputs.add(key, [(argument, gradient)], self._end):
            return None
        return self._replaced(self._close(), [argument])[0]

    def waited(self, key: Hashable, _: Tensor) -> None:
        """A tensor hook: a layer inside, which returned its input, has fired."""
        if self.inputs.add(key, [], self._end) and self._close() is not None:
            raise HookvizError(_CANNOT_REPLACE.format("input", "several layers"))

    def consumed(
        self,
        key: Hashable,
        positions: Sequence[tuple[int, str]],
        grad_inputs: Gradients,
        _: Any,
    ) -> Gradients | None:
        """A node hook: an operation has given the gradients of the inputs it took."""
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
