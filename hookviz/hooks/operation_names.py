"""What functional operations are called: as torchvision's FX tracer names them, where FX can trace the network."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import torch
from torch import Tensor, fx, nn

from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import on_meta, private_copy
from hookviz.hooks.structure import each_tensor, leaves

FxNames: TypeAlias = "dict[tuple[str, str], list[str]]"

_IN_PLACE_OR_REFLECTED = re.compile(r"^[ir](add|sub|mul|truediv|floordiv|div|pow|matmul|mod|and|or|xor)$")


def operation_name(function: Callable[..., Any]) -> str:
    """The plain name of a torch function or tensor method: ``add`` for ``+``, ``+=`` and ``Tensor.__radd__``."""
    name = getattr(function, "__name__", type(function).__name__)
    if name == "__get__":  # a property such as Tensor.T
        return "getattr"
    bare = name[2:-2] if name.startswith("__") and name.endswith("__") else name
    plain = _IN_PLACE_OR_REFLECTED.sub(r"\1", bare) if bare != name else bare
    return "truediv" if plain == "div" and bare != name else plain


def is_leaf(module: nn.Module) -> bool:
    """Whether FX takes a module as one step: torch's own layers, but not its containers."""
    return type(module).__module__.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(
        module, (nn.Sequential, nn.ModuleList, nn.ModuleDict)
    )


def fx_names(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FxNames:
    """Give, per (module path, operation), FX's names in the order of execution; empty where FX cannot trace.

    Only operations that return tensors count, which a run on the meta device tells.
    """
    if kwargs:
        return {}
    with suppress(Exception):  # data-dependent control flow, unusual arguments: FX refuses in many ways
        return _trace(private_copy(module, tensor=on_meta), each_tensor(args, on_meta))
    return {}


def _trace(module: nn.Module, args: tuple[Any, ...]) -> FxNames:
    import torchvision.ops
    from torchvision.models.feature_extraction import NodePathTracer  # slow to load, and needed by few

    tracer = NodePathTracer(autowrap_modules=(math, torchvision.ops))
    graph = tracer.trace(module)
    nodes = _TensorNodes(fx.GraphModule(tracer.root, graph))
    with random_state_kept(module), torch.no_grad():
        nodes.run(*args)
    names: FxNames = defaultdict(list)
    for node in graph.nodes:
        if node.op in {"call_function", "call_method"} and node.name in nodes.names:
            qualified = tracer.node_to_qualname[node]
            path, _, _ = qualified.rpartition(".")
            target = node.target if node.op == "call_method" else operation_name(node.target)
            names[path, target].append(qualified)
    return dict(names)


class _TensorNodes(fx.Interpreter):
    """Runs a graph and remembers which nodes returned a tensor."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.names: set[str] = set()

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if any(True for _ in leaves(result, Tensor)):
            self.names.add(n.name)
        return result
