"""Seeing which hooks sit on a network, and taking them off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import innermost
from hookviz.hooks.emulate import Before, EmulatedHook
from hookviz.hooks.names import LayerNames
from hookviz.hooks.placed_hooks import PlacedHook, placed_hooks, written_at

Whose: TypeAlias = Literal["hookviz", "all"]


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


def list_hooks(module: nn.Module) -> list[HookInfo]:
    """List every hook on a network and, first, torch's global ones; in the order in which they fire, layer by layer.

    Hooks that are part of the model are there too: pruning, weight norm and spectral norm of the older kind.
    """
    return [info for place in placed_hooks(LayerNames(module)) for info in _described(place)]


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
    for place in list(placed_hooks(LayerNames(module))):
        if whose == "all" or place.by_hookviz:
            removed.extend(_described(place))
            place.remove()
    return removed


def _described(place: PlacedHook) -> Iterator[HookInfo]:
    installed = place.installed
    if isinstance(installed, Before):
        return
    emulated = isinstance(installed, EmulatedHook)
    for function in installed.functions if emulated else (installed,):
        written = innermost(function)
        name, file, line = written_at(written)
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
