"""Hooks where torch keeps them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

from hookviz.hooks.attach import BoundHook, Closable, registered
from hookviz.hooks.names import LayerNames

_KINDS: dict[str, str] = {
    "_forward_pre_hooks": "forward_pre",
    "_forward_hooks": "forward",
    "_backward_pre_hooks": "backward_pre",
    "_backward_hooks": "backward",
}
_OPTIONS = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")

_DEPRECATED = (
    "register_backward_hook mixes the gradients of inputs, weights and biases of the last operation only; "
    "use register_full_backward_hook, and Tensor.register_post_accumulate_grad_hook for weights."
)


@dataclass(frozen=True, slots=True)
class PlacedHook:
    """A hook where torch keeps it."""

    hooks: MutableMapping[int, Any]
    number: int
    kind: str
    layer: str | None
    module: nn.Module | None

    @property
    def installed(self) -> Any:
        """The object torch calls."""
        return self.hooks[self.number]

    @property
    def by_hookviz(self) -> bool:
        """Whether hookviz put it there."""
        return isinstance(self.installed, BoundHook) or self.registered_at != ""

    @property
    def registered_at(self) -> str:
        """Where hookviz was asked for it; ``""`` where it was not."""
        known = registered(self.number, self.installed, self.module)
        return known.place if known else ""

    @property
    def deprecated(self) -> str:
        """A sentence about a hook to be registered in another way, else ``""``."""
        full = torch_module._global_is_full_backward_hook if self.module is None else self.module._is_full_backward_hook
        return _DEPRECATED if self.kind == "backward" and full is False else ""

    def remove(self) -> None:
        """Take it off."""
        installed = self.hooks.pop(self.number)
        if isinstance(installed, Closable):
            installed.function = None
        for name in _OPTIONS:
            options = getattr(self.module or torch_module, name if self.module else f"_global{name}", {})
            options.pop(self.number, None)


def placed_hooks(names: LayerNames) -> Iterator[PlacedHook]:
    """Give every hook: first torch's global ones, then a network's layer by layer, in the order they fire."""
    for attribute, kind in _KINDS.items():
        hooks = getattr(torch_module, f"_global{attribute}")
        yield from [PlacedHook(hooks, number, kind, None, None) for number in hooks]
    for layer, module in names.items():
        for attribute, kind in _KINDS.items():
            hooks = getattr(module, attribute)
            yield from [PlacedHook(hooks, number, kind, layer, module) for number in hooks]


def written_at(function: Any) -> tuple[str, str, int]:
    """Give the name of a function or of a callable's class, and where it was written."""
    named = function if hasattr(function, "__qualname__") else type(function)
    function = inspect.unwrap(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    code = code or getattr(type(function).__dict__.get("__call__"), "__code__", None)
    return named.__qualname__, *((code.co_filename, code.co_firstlineno) if code else ("", 0))
