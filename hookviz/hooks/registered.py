"""What hookviz knows of the hooks it registered, and from where it was asked to."""

from __future__ import annotations

import sys
import weakref
from typing import NamedTuple

from torch import nn

from hookviz.hooks.hook_kinds import Hook


class Registered(NamedTuple):
    """What hookviz knows of a hook it registered: the object handed to torch, where that was asked for, on what."""

    installed: Hook
    place: str
    module: weakref.ref[nn.Module] | None
    """None for a hook on several modules, or on all."""


_registered: dict[int, Registered] = {}


def note_registered(number: int, installed: Hook, module: nn.Module | None, place: str) -> None:
    """Remember a hook by the number that torch gave it; ``module`` is None for one on several modules, or on all."""
    _registered[number] = Registered(installed, place, None if module is None else weakref.ref(module))


def forget_registered(number: int) -> Registered | None:
    """Forget a hook that was taken off, and give what was known of it."""
    return _registered.pop(number, None)


def registered(number: int, installed: Hook, module: nn.Module | None) -> Registered | None:
    """Look up the hook that torch keeps under ``number``; None where hookviz did not put it there."""
    known = _registered.get(number)
    if known is None or known.installed is not installed:
        return None
    # A deep copy of a module has the same functions under the same numbers, but for those that several modules share.
    return known if known.module is None or known.module() is module else None


def calling_place() -> str:
    """Say where outside the modules that attach hooks the current call comes from."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _PASSED_THROUGH:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


_PASSED_THROUGH = {
    __name__,
    "contextlib",
    "hookviz.hooks.attach",
    "hookviz.hooks.emulate",
    "hookviz.hooks.attach_warnings",
}
