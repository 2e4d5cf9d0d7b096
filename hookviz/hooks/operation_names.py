"""What functional operations are called: as torchvision's FX tracer names them, where FX can trace the network."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor, fx, nn

from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import on_meta, private_copy
from hookviz.hooks.structure import each_tensor, tensor_infos

_Place: TypeAlias = "tuple[str, str]"
"""The path of a module, and an operation in it."""

_Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"

_IN_PLACE_OR_REFLECTED = re.compile(r"^[ir](add|sub|mul|truediv|floordiv|div|pow|matmul|mod|and|or|xor)$")

_OPERATORS = {"truediv": "div", "mod": "remainder", "and_": "and", "or_": "or", "pos": "positive"}
"""Python's operators, which FX sees, and the functions that torch calls for them, whose names these operations have."""


def operation_name(function: Callable[..., Any]) -> str:
    """The plain name of a torch function or tensor method: ``add`` for ``+``, ``+=`` and ``Tensor.__radd__``."""
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":  # a property such as Tensor.T
        return "getattr"
    bare = name[2:-2] if name.startswith("__") and name.endswith("__") else name
    plain = _IN_PLACE_OR_REFLECTED.sub(r"\1", bare) if bare != name else bare
    return _OPERATORS.get(plain, plain)


def is_leaf(module: nn.Module) -> bool:
    """Whether FX takes a module as one step: torch's own layers, but not its containers."""
    return type(module).__module__.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(
        module, (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    )


def operation_names(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OperationNames:
    """Names for one run with these arguments; where FX cannot trace the network, none of them are FX's."""
    if not kwargs:
        with suppress(Exception):  # data-dependent control flow, unusual arguments: FX refuses in many ways
            return OperationNames(*_trace(private_copy(module, tensor=on_meta), each_tensor(args, on_meta)))
    return OperationNames({}, ())


class OperationNames:
    """Hands out the names of one run's operations, in the order in which they happen.

    An operation gets FX's name where it has the shapes of what FX's graph has next for its module. Others, such as
    those on buffers alone, which FX computes once and for all while it traces, get the next name that is free.
    """

    def __init__(self, nodes: Mapping[_Place, list[_Node]], taken: Iterable[str]) -> None:
        self._nodes = nodes
        self._taken = set(taken)

    def expects(self, path: str, operation: str) -> bool:
        """Whether FX's graph has such an operation still to come."""
        return bool(self._nodes.get((path, operation)))

    def next_name(self, path: str, operation: str, shapes: _Shapes, *, is_constant: bool) -> str:
        """Name an operation in the module at ``path``; ``is_constant`` if it depends on buffers alone."""
        if operation.endswith("_") and (path, operation) not in self._nodes and (path, operation[:-1]) in self._nodes:
            operation = operation[:-1]  # torch runs ``x += y`` as add_, FX writes it down as add
        waiting = self._nodes.get((path, operation))
        if waiting and not is_constant and waiting[0].shapes == shapes:
            return waiting.pop(0).name
        stem = ".".join(filter(None, (path, operation)))
        name = next(name for name in chain([stem], (f"{stem}_{n}" for n in count(1))) if name not in self._taken)
        self._taken.add(name)
        return name


class _Node(NamedTuple):
    name: str
    shapes: _Shapes


def _trace(module: nn.Module, args: tuple[Any, ...]) -> tuple[dict[_Place, list[_Node]], set[str]]:
    """FX's operations that return tensors, which a run on the meta device tells, and all the names that FX gave."""
    from hookviz.hooks.fx_tracer import PrivateTracer  # slow to load, and needed by few

    tracer = PrivateTracer()
    graph = tracer.trace(module)
    run = _TensorNodes(module, graph)
    with random_state_kept(module), torch.no_grad():
        run.run(*args)
    nodes: dict[_Place, list[_Node]] = defaultdict(list)
    for node in graph.nodes:
        if node.op in {"call_function", "call_method"} and node.name in run.shapes:
            qualified = tracer.node_to_qualname[node]
            path, _, _ = qualified.rpartition(".")
            operation = node.target if node.op == "call_method" else operation_name(node.target)
            nodes[path, operation].append(_Node(qualified, run.shapes[node.name]))
    return dict(nodes), set(tracer.node_to_qualname.values())


class _TensorNodes(fx.Interpreter):
    """Runs a graph and remembers the shapes of what its nodes returned, where these are tensors.

    An item of a tuple is no operation: no torch function is called for it.
    """

    def __init__(self, module: nn.Module, graph: fx.Graph) -> None:
        super().__init__(module, graph=graph)  # a GraphModule would leave its code behind, in a cache of torch's
        self.shapes: dict[str, _Shapes] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        shapes = () if n.op == "output" or self._takes_an_item(n) else tensor_infos(result)
        if shapes:
            self.shapes[n.name] = tuple(info.shape for info in shapes)
        return result

    def _takes_an_item(self, node: fx.Node) -> bool:
        return node.target is operator.getitem and not isinstance(self.fetch_args_kwargs_from_env(node)[0][0], Tensor)
