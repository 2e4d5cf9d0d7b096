"""Ending a forward early: once no chosen layer can run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import on_meta, private_copy
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import each_tensor


class ForwardStopped(BaseException):
    """Ends a forward from inside a hook; not an Exception, so that no ``except Exception`` of a model catches it."""


class Stopper:
    """Counts down the calls that the chosen layers have still to make in a run."""

    def __init__(self, names: LayerNames, chosen: Iterable[str]) -> None:
        self._names = names
        self._chosen = frozenset(chosen)
        self._remaining: Counter[str] | None = None

    def begin(self, outermost: str, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        """Find out how often each chosen layer will run when ``outermost`` is called with ``(args, kwargs)``."""
        counts = count_calls(self._names[outermost], arguments)
        if counts is None:
            self._remaining = None  # not to be known beforehand, so the forward runs to its end
            return
        full = {self._names.canonical(_join(outermost, name)): count for name, count in counts.items()}
        self._remaining = Counter({name: count for name, count in full.items() if name in self._chosen})

    def is_done_after(self, layer: str) -> bool:
        """Note a call of a chosen layer, and say whether it was the last one."""
        if self._remaining is None:
            return False
        self._remaining[layer] -= 1
        return all(count <= 0 for count in self._remaining.values())


def count_calls(module: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Counter[str] | None:
    """Count how often one forward calls each layer, without touching the module; None where the forward fails.

    On the meta device nothing is computed. A network whose control flow depends on values refuses that, and is run for
    real.
    """
    with suppress(Exception):  # a refusal can be of any type
        return _count(private_copy(module, tensor=on_meta), each_tensor(arguments, on_meta))
    with suppress(Exception):  # whatever it was, the real forward is about to say it better
        return _count(private_copy(module), each_tensor(arguments, snapshot))
    return None


def _count(module: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    args, kwargs = arguments
    with HookHandles() as handles, random_state_kept(module), torch.no_grad():
        for name, layer in LayerNames(module).items():
            handles.add(layer, BoundHook(layer, lambda *_, name=name: counts.update((name,))), "forward")
        module(*args, **kwargs)
    return counts


def _join(parent: str, name: str) -> str:
    return f"{parent}.{name}" if parent and name else parent or name
