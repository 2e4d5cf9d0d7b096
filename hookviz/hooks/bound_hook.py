"""The objects that hookviz hands to torch as hooks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from hookviz.errors import HookvizError
from hookviz.hooks.hook_kinds import Hook


class _Looking(threading.local):
    on = False


looking = _Looking()
"""Whether this thread is inside a hook of hookviz: ``looking.on``."""


def is_looking() -> bool:
    """Whether this thread is inside a hook of hookviz, whose own tensor operations are none of the network's."""
    return looking.on


class BoundHook:
    """A hook that belongs to one module and one thread, and is inert everywhere else.

    A model on which it sits may be called from other threads, or be deep-copied: neither reaches ``function``. What
    ``function`` returns is dropped, so that looking never changes an output. Saving the model meanwhile is refused,
    since the file would hold the recording.
    """

    __slots__ = ("_module", "_thread", "function")

    _replaces = False

    def __init__(self, module: nn.Module, function: Callable[..., object]) -> None:
        self._module = module
        self.function = function
        self._thread = threading.get_ident()

    def __call__(self, module: nn.Module, *arguments: Any) -> Any:
        """Run the function where it belongs, and nothing elsewhere."""
        if module is not self._module or threading.get_ident() != self._thread:
            return None
        outer = looking.on
        looking.on = True
        try:
            value = self.function(*arguments)
        finally:
            looking.on = outer
        return value if self._replaces else None

    def __deepcopy__(self, memo: dict[int, object]) -> Hook:
        return _inert

    def __reduce__(self) -> str:
        raise HookvizError(
            "hookviz is recording this model: leave the recording's `with` block before saving the model."
        )


class BoundEdit(BoundHook):
    """A bound hook whose function's value takes the place of the output (or of the arguments), as torch has it."""

    __slots__ = ()

    _replaces = True


class Closable:
    """A backward hook that falls silent when its block is left: the graph holds it longer than the module does."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Hook) -> None:
        self.function: Hook | None = function

    def __call__(self, *arguments: Any) -> Any:
        """Call the hook while it is open."""
        return None if self.function is None else self.function(*arguments)


def innermost(hook: Any) -> Any:
    """Give the function a person wrote, below what hookviz and functools wrap around it."""
    while True:
        if isinstance(hook, (BoundHook, Closable)):
            hook = hook.function
        elif isinstance(hook, partial):
            hook = hook.func
        else:
            return hook


def _inert(*_: Any) -> None:
    """What a copy of a model gets in place of a hook bound to the original."""
