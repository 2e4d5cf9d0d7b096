"""Whose values lie in a piece of memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from hookviz.hooks import attach
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import leaves


class Owners:
    """Who returned the memory that a hook is about to write into; ``found`` names them once it was asked."""

    def __init__(self) -> None:
        # Held until the run ends, so that no memory is given to a second owner meanwhile.
        self._returned: list[tuple[str, Tensor]] = []
        self.found: tuple[str, ...] = ()

    @contextmanager
    def watching(self, module: nn.Module, inputs: tuple[Any, ...]) -> Iterator[None]:
        """Follow which layer returns what, while the network runs inside the block."""
        self._returned = [("the network's input", tensor) for _, tensor in leaves(inputs, Tensor)]
        try:
            with attach(module, {name: partial(self._note, name) for name in LayerNames(module) if name}):
                yield
        finally:
            self._returned.clear()

    def _note(self, name: str, _: nn.Module, __: Any, output: Any) -> None:
        self._returned.extend((name, tensor) for _path, tensor in leaves(output, Tensor))

    def name_those_of(self, tensor: Tensor | None) -> None:
        """Find whose memory a tensor lies in."""
        if tensor is None or self.found:
            return
        place = tensor.untyped_storage().data_ptr()
        owners = [name for name, other in self._returned if other.untyped_storage().data_ptr() == place]
        self.found = tuple(dict.fromkeys(owners))
