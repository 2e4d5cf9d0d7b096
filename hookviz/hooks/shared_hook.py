"""One hook on many modules at once.

Torch's register functions make a handle for each module, which for a small network takes as long as a third of its
forward. Here one number is taken from torch's counter and used for all modules; each keeps its hooks by number.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from torch import nn
from torch.utils.hooks import RemovableHandle

from hookviz.hooks.bound_hook import BoundHook, looking
from hookviz.hooks.names import LayerNames

_PLACES: dict[str, str] = {"forward": "_forward_hooks", "forward_pre": "_forward_pre_hooks"}


class SharedHook(BoundHook):
    """A bound hook on several layers: ``function`` gets the layer's name in place of the module."""

    __slots__ = ("_layers", "_names")

    def __init__(self, layers: LayerNames, function: Callable[..., object]) -> None:
        self._layers = layers  # what is alive keeps its id
        self._names = layers.by_id
        self._thread = threading.get_ident()
        self.function = function

    def __call__(self, module: nn.Module, *arguments: Any) -> Any:
        """Run the function where it belongs, and nothing elsewhere."""
        name = self._names.get(id(module))
        if name is None or threading.get_ident() != self._thread:
            return
        outer = looking.on
        looking.on = True
        try:
            self.function(name, *arguments)
        finally:
            looking.on = outer


class SharedRegistration:
    """A hook where torch keeps it in each of several modules, under one number."""

    def __init__(
        self,
        modules: Sequence[nn.Module],
        hook: BoundHook,
        kind: Literal["forward", "forward_pre"],
        options: Mapping[str, bool],
    ) -> None:
        place = _PLACES[kind]
        marks = [f"{place}_{_MARKS[option]}" for option, given in options.items() if given]
        self._kept_in: list[MutableMapping[int, Any]] = list(map(attrgetter(place), modules))
        self._marked_in: list[MutableMapping[int, bool]] = []
        for mark in marks:
            self._marked_in.extend(map(attrgetter(mark), modules))
        self.number = RemovableHandle(OrderedDict()).id
        for hooks in self._kept_in:
            hooks[self.number] = hook
        for marked in self._marked_in:
            marked[self.number] = True

    def remove(self) -> None:
        """Take the hook off every module that still has it."""
        for kept in (*self._kept_in, *self._marked_in):
            kept.pop(self.number, None)


_MARKS = {"always_call": "always_called", "with_kwargs": "with_kwargs"}
