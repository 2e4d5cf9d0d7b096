"""The hook of a recording that keeps outputs and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.hooks.bound_hook import BoundHook, looking
from hookviz.hooks.frames import graph_task, tracing_state
from hookviz.hooks.lazy_copy import LazyCopies
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import map_leaves

_function_modes = torch._C._len_torch_function_stack

Returned: TypeAlias = "list[tuple[str, Any]]"
"""Layers and what they returned, in order."""


class OutputHook(BoundHook):
    """Keeps what each of many layers returns.

    A network of many small layers spends as long in here as in some of its layers, so that what ``SharedHook`` and
    ``frames.is_replay`` do is written out, and nothing is called that is not needed at every layer.

    ``returned`` is where the run under way keeps its outputs, None between runs; then ``begin`` is asked for it, with
    the name, the arguments and the output of the layer that has just returned.
    """

    __slots__ = ("_begin", "_copies", "_layers", "_names", "returned")

    def __init__(self, layers: LayerNames, copies: LazyCopies, begin: Callable[[str, Any, Any], Returned]) -> None:
        self._layers = layers  # what is alive keeps its id
        self._names = layers.by_id
        self._copies = copies
        self._thread = threading.get_ident()
        self.function = self._begin = begin
        self.returned: Returned | None = None

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Keep an output where the hook belongs, and do nothing elsewhere."""
        name = self._names.get(id(module))
        if name is None or threading.get_ident() != self._thread or graph_task() != -1 or tracing_state() is not None:
            return
        returned = self._begin(name, args, output) if self.returned is None else self.returned
        if type(output) is Tensor and not _function_modes():  # nobody is there to take the copy for the network's own
            returned.append((name, self._copies.copy(output)))
        else:
            returned.append((name, self._structure(output)))

    def _structure(self, output: Any) -> Any:
        outer = looking.on
        looking.on = True
        try:
            return map_leaves(output, Tensor, lambda _, tensor: self._copies.copy(tensor))
        finally:
            looking.on = outer
