"""Seeing which recorded tensors the network later writes over, and who does it.

This is what makes the textbook recipe ``stored[name] = output.detach()`` show wrong values; see ``record`` for right
ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves


@dataclass(slots=True)
class Overwrite:
    """One output tensor of one call that was written into after its module had returned.

    ``by`` is the layer in whose forward that happened (the network itself is ``""``), ``naive`` is what a reference
    kept by a hook holds when the forward has ended.
    """

    layer: str
    call: int
    path: str
    by: str
    naive: Tensor


@dataclass(slots=True)
class _Watched:
    layer: str
    call: int
    path: str
    tensor: Tensor
    version: int
    by: str | None = None


@contextmanager
def watch_overwrites(module: nn.Module, layers: Layers = "*") -> Iterator[list[Overwrite]]:
    """Find the outputs of layers that are overwritten later in the same forward.

    >>> with watch_overwrites(model, "bn1") as overwrites:
    ...     model(image)
    >>> overwrites[0].by
    'relu'

    The list fills when the block is left. A write is seen through torch's version counter, which writes through
    ``.data`` escape, and which inference tensors do not have.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
    """
    names = LayerNames(module)
    chosen = set(names.resolve(layers))
    overwrites: list[Overwrite] = []
    watcher = _Watcher()
    with run_eagerly(), HookHandles() as handles:
        for name, layer in names.items():
            handles.add(layer, BoundHook(layer, partial(watcher.enter, name)), "forward_pre")
            if name in chosen:
                handles.add(layer, BoundHook(layer, partial(watcher.watch, name)), "forward")
            handles.add(layer, BoundHook(layer, partial(watcher.leave, name)), "forward", prepend=True)
        yield overwrites
    overwrites.extend(watcher.found())


class _Watcher:
    """Looks at version counters whenever a module starts or returns; the layer running in between did what changed."""

    def __init__(self) -> None:
        self._running: list[str] = []
        self._watched: list[_Watched] = []
        self._calls: dict[str, int] = {}

    def enter(self, name: str, *_: Any) -> None:
        if is_backward():  # a checkpoint recomputes, and what it makes nobody keeps
            return
        if not self._running:
            self._watched.clear()
            self._calls.clear()
        self._look()
        self._running.append(name)

    def leave(self, name: str, *_: Any) -> None:
        if is_backward():
            return
        self._look()
        while self._running and self._running.pop() != name:
            pass

    def watch(self, name: str, _: Any, output: Any) -> None:
        if is_backward():
            return
        call = self._calls.get(name, 0)
        self._calls[name] = call + 1
        for path, tensor in leaves(output, Tensor):
            if not tensor.is_inference():
                self._watched.append(_Watched(name, call, path, tensor.detach(), tensor._version))

    def found(self) -> Iterator[Overwrite]:
        for one in self._watched:
            if one.tensor._version != one.version:
                yield Overwrite(one.layer, one.call, one.path, one.by or "", snapshot(one.tensor))

    def _look(self) -> None:
        for one in self._watched:
            if one.by is None and one.tensor._version != one.version:
                one.by = self._running[-1] if self._running else ""
