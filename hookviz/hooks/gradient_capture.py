"""Catching gradients with hooks on autograd's graph.

``register_full_backward_hook`` wraps a module's outputs, and torch then refuses any in-place operation that follows
(pytorch#61519). Hooks on tensors and graph nodes wrap nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from hookviz.hooks.attach import HookHandles
from hookviz.hooks.recording import Call, Gradients
from hookviz.hooks.snapshot import Keeper
from hookviz.hooks.structure import leaves, map_leaves, tensor_info

Node: TypeAlias = Any  # torch.autograd.graph.Node is an abstract class that built-in nodes only pretend to be
Edge: TypeAlias = "tuple[Node, int]"


@dataclass(frozen=True, slots=True)
class InputEdges:
    """Where a call's inputs hang in the graph, noted before the module ran and may have written into them."""

    structure: Any
    paths: dict[Edge, list[str]]
    first_node: int
    """Nodes made during the call have this sequence number or a later one."""


class GradientCapture:
    """Sets the gradient hooks of one recording; they come off with its handles."""

    def __init__(self, handles: HookHandles, keeper: Keeper) -> None:
        self._handles = handles
        self._keeper = keeper

    @staticmethod
    def before(arguments: Any) -> InputEdges:
        """Note the graph edges of ``(args, kwargs)``, from a forward pre-hook."""
        paths: dict[Edge, list[str]] = defaultdict(list)
        for path, tensor in leaves(arguments, Tensor):
            if tensor.requires_grad:
                edge = get_gradient_edge(tensor)
                paths[edge.node, edge.output_nr].append(path)
        structure = map_leaves(arguments, Tensor, tensor_info)
        return InputEdges(structure, paths, torch._C._autograd._get_sequence_nr())

    def after(self, call: Call, output: Any, output_structure: Any, inputs: InputEdges) -> None:
        """Hook the output's tensors and the nodes that consume the inputs, from a forward hook."""
        at_output, at_inputs = Gradients(output_structure), Gradients(inputs.structure)
        tensors = [(path, tensor) for path, tensor in leaves(output, Tensor) if tensor.requires_grad]
        call.expect_gradients(at_output, at_inputs, "" if tensors else _why_none(call.layer))
        for path, tensor in tensors:
            self._handles.add_to_tensor(tensor, self._storing(call.layer, at_output, path))
        self._hook_consumers(call.layer, [tensor for _, tensor in tensors], inputs, at_inputs)

    def _storing(self, layer: str, gradients: Gradients, path: str) -> Callable[[Tensor], None]:
        def store(gradient: Tensor) -> None:
            gradients.arrived[path] = self._keeper.tensor(layer, gradient)

        return store

    def _hook_consumers(self, layer: str, outputs: list[Tensor], inputs: InputEdges, gradients: Gradients) -> None:
        shares = _Shares(lambda path, total: gradients.arrived.__setitem__(path, self._keeper.tensor(layer, total)))
        for number, output in enumerate(outputs):
            edge = get_gradient_edge(output)
            for path in inputs.paths.get((edge.node, edge.output_nr), ()):  # the module returned its input
                self._handles.add_to_tensor(output, shares.from_output(path, ("output", number)))
        consumers = consuming_nodes([get_gradient_edge(output).node for output in outputs], inputs)
        for number, (node, positions) in enumerate(consumers.items()):
            self._handles.add_to_node(node, shares.from_node(positions, number))


class _Shares:
    """Sums, per input, what flows back through each node that consumed it."""

    def __init__(self, deliver: Callable[[str, Tensor], object]) -> None:
        self._deliver = deliver
        self._parts: dict[str, dict[object, Tensor]] = defaultdict(dict)
        self._backward_pass = -1

    def from_output(self, path: str, key: object) -> Callable[[Tensor], None]:
        return lambda gradient: self._add(path, key, gradient)

    def from_node(self, positions: list[tuple[int, str]], key: int) -> Callable[[Any, Any], None]:
        def hook(grad_inputs: tuple[Tensor | None, ...], _: Any) -> None:
            for position, path in positions:
                gradient = grad_inputs[position]
                if gradient is not None:
                    self._add(path, (key, position), gradient)

        return hook

    def _add(self, path: str, key: object, gradient: Tensor) -> None:
        backward_pass = torch._C._current_graph_task_id()
        if backward_pass != self._backward_pass:
            self._parts.clear()
            self._backward_pass = backward_pass
        self._parts[path][key] = gradient.detach()
        first, *rest = self._parts[path].values()
        self._deliver(path, sum(rest, start=first))


def consuming_nodes(roots: list[Node], inputs: InputEdges) -> dict[Node, list[tuple[int, str]]]:
    """Of the nodes made during the call, those that take an input: each with (position, path of that input)."""
    found: dict[Node, list[tuple[int, str]]] = defaultdict(list)
    if not inputs.paths:
        return found
    for node in _nodes_since(roots, inputs.first_node):
        for position, edge in enumerate(node.next_functions):
            found_here = [(position, path) for path in inputs.paths.get(edge, ())]
            if found_here:
                found[node].extend(found_here)
    return found


def _nodes_since(roots: list[Node], first: int) -> Iterator[Node]:
    waiting, seen = list(roots), set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen or node._sequence_nr() < first:
            continue
        seen.add(node)
        yield node
        waiting.extend(following for following, _ in node.next_functions)


def _why_none(layer: str) -> str:
    if not torch.is_grad_enabled():
        return f"{layer!r} ran without gradients (torch.no_grad, or a re-entrant checkpoint), so none are available."
    return f"nothing that {layer!r} returned requires a gradient, so none are computed."
