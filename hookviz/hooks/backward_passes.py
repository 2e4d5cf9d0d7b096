from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.frames import is_backward
from hookviz.hooks.structure import leaves


class BackwardPasses:
    """Calls ``finish`` when a backward pass through a network has delivered its last gradient.

    A re-entrant checkpoint runs passes inside the pass, each delivering to its own parameters. The pass at the
    network's output is the outermost one; where the forward was not seen, the first that delivers counts as such.
    """

    def __init__(self, root: nn.Module, handles: HookHandles, finish: Callable[[], None]) -> None:
        self._handles = handles
        self._finish = finish
        self._outermost: int | None = None
        handles.add(root, BoundHook(root, self._watch_output), "forward")

    def delivers(self) -> bool:
        """Note that a parameter's gradient has arrived, and say whether the outermost pass delivered it."""
        if self._outermost is None:
            self._begin()
        return torch._C._current_graph_task_id() == self._outermost

    def _watch_output(self, _: Any, output: Any) -> None:
        if is_backward():
            return
        self._outermost = None  # a pass that broke off never finished
        for _path, tensor in leaves(output, Tensor):
            if tensor.requires_grad:
                self._handles.add_to_tensor(tensor, self._begin)

    def _begin(self, *_: Any) -> None:
        running = torch._C._current_graph_task_id()
        if running != self._outermost:
            self._outermost = running
            torch.autograd.Variable._execution_engine.queue_callback(partial(self._end, running))

    def _end(self, running: int) -> None:
        if running == self._outermost:
            self._outermost = None
            self._finish()
