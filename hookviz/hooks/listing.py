"""Seeing which hooks sit on a network, and taking them off."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from torch import nn
from torch.nn.modules import module as torch_module

from hookviz.errors import HookvizError
from hookviz.hooks.attach import BoundHook, Closable, innermost, registered
from hookviz.hooks.backward import Before, EmulatedHook
from hookviz.hooks.names import LayerNames

Whose: TypeAlias = Literal["hookviz", "all"]

_KINDS: dict[str, str] = {
    "_forward_pre_hooks": "forward_pre",
    "_forward_hooks": "forward",
    "_backward_pre_hooks": "backward_pre",
    "_backward_hooks": "backward",
}
_OPTIONS = ("_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs")


@dataclass(frozen=True, slots=True)
class HookInfo:
    """One hook.

    ``layer`` is None for torch's global hooks, which every module of the process runs. ``function``, ``file`` and
    ``line`` say where the function was written (``""`` and 0 for one written in C); ``registered_at`` where hookviz was
    asked for it, ``""`` for hooks that others registered. ``deprecated`` is a sentence about a hook that should be
    registered in another way, else ``""``. ``emulated`` backward and tensor hooks are set on tensors as the network
    runs.
    """

    kind: str
    layer: str | None
    function: str
    file: str
    line: int
    by_hookviz: bool
    registered_at: str = ""
    deprecated: str = ""
    emulated: bool = False

    @property
    def is_global(self) -> bool:
        """Whether every module of the process runs it."""
        return self.layer is None

    def __str__(self) -> str:
        where = "every module" if self.layer is None else f"layer {self.layer!r}"
        return f"{self.kind} hook {self.function} ({self.file}:{self.line}) on {where}"


_DEPRECATED = (
    "register_backward_hook mixes the gradients of inputs, weights and biases of the last operation only; "
    "use register_full_backward_hook."
)


def list_hooks(module: nn.Module) -> list[HookInfo]:
    """List every hook on a network and, first, torch's global ones; in the order in which they fire, layer by layer.

    Hooks that are part of the model are there too: pruning, weight norm and spectral norm of the older kind.
    """
    return [info for place in _places(LayerNames(module)) for info in _described(place)]


def remove_hooks(module: nn.Module, whose: Whose = "hookviz") -> list[HookInfo]:
    """Take hooks off a network, and off the process where they are global; give those that went.

    Args:
        module: the network.
        whose: ``"hookviz"`` removes what hookviz registered and leaves other people's; ``"all"`` removes every hook,
            also those that are part of the model (pruning, weight norm), and global ones that others may rely on.

    Raises:
        HookvizError: ``whose`` is neither.
    """
    if whose not in {"hookviz", "all"}:
        raise HookvizError(f"whose hooks are {whose!r}? Choose 'hookviz' or 'all'.")
    removed: list[HookInfo] = []
    for place in list(_places(LayerNames(module))):
        if whose == "all" or place.by_hookviz:
            removed.extend(_described(place))
            place.remove()
    return removed


@dataclass(frozen=True, slots=True)
class _Place:
    """A hook where torch keeps it."""

    hooks: MutableMapping[int, Any]
    number: int
    kind: str
    layer: str | None
    module: nn.Module | None

    @property
    def installed(self) -> Any:
        return self.hooks[self.number]

    @property
    def by_hookviz(self) -> bool:
        return isinstance(self.installed, BoundHook) or self.registered_at != ""

    @property
    def registered_at(self) -> str:
        known = registered(self.number, self.installed, self.module)
        return known.place if known else ""

    @property
    def deprecated(self) -> str:
        full = torch_module._global_is_full_backward_hook if self.module is None else self.module._is_full_backward_hook
        return _DEPRECATED if self.kind == "backward" and full is False else ""

    def remove(self) -> None:
        installed = self.hooks.pop(self.number)
        if isinstance(installed, Closable):
            installed.function = None
        for name in _OPTIONS:
            options = getattr(self.module or torch_module, name if self.module else f"_global{name}", {})
            options.pop(self.number, None)


def _places(names: LayerNames) -> Iterator[_Place]:
    for attribute, kind in _KINDS.items():
        hooks = getattr(torch_module, f"_global{attribute}")
        yield from [_Place(hooks, number, kind, None, None) for number in hooks]
    for layer, module in names.items():
        for attribute, kind in _KINDS.items():
            hooks = getattr(module, attribute)
            yield from [_Place(hooks, number, kind, layer, module) for number in hooks]


def _described(place: _Place) -> Iterator[HookInfo]:
    installed = place.installed
    if isinstance(installed, Before):
        return
    emulated = isinstance(installed, EmulatedHook)
    for function in installed.functions if emulated else (installed,):
        written = innermost(function)
        name, file, line = _written_at(written)
        yield HookInfo(
            kind=installed.kind if emulated else place.kind,
            layer=place.layer,
            function=name,
            file=file,
            line=line,
            by_hookviz=place.by_hookviz,
            registered_at=place.registered_at,
            deprecated=place.deprecated,
            emulated=emulated,
        )


def _written_at(function: Any) -> tuple[str, str, int]:
    """The name of a function or of a callable's class, and where it was written."""
    named = function if hasattr(function, "__qualname__") else type(function)
    function = inspect.unwrap(function)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    code = code or getattr(type(function).__dict__.get("__call__"), "__code__", None)
    return named.__qualname__, *((code.co_filename, code.co_firstlineno) if code else ("", 0))
