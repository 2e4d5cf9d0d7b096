"""The mark that torch's first backward hook leaves on a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.nn.modules import module as torch_module

from hookviz.hooks.hook_kinds import Hook

_marks: dict[int, bool | None] = {}
"""Torch marks a module at its first backward hook and never takes the mark back, which forbids the other kind. Here is
what the mark was, by the module's id, for whichever of several blocks is the last to leave."""


def keep_mark(module: nn.Module | None) -> None:
    """Remember what torch's first backward hook on a module (None: on all) is about to change."""
    if not _backward_hooks(module):
        _marks[id(module)] = getattr(*_mark_of(module))


def restore_mark(module: nn.Module | None) -> None:
    """Put the mark back where no backward hook is left."""
    if id(module) in _marks and not _backward_hooks(module):
        setattr(*_mark_of(module), _marks.pop(id(module)))


def _mark_of(module: nn.Module | None) -> tuple[Any, str]:
    return (torch_module, "_global_is_full_backward_hook") if module is None else (module, "_is_full_backward_hook")


def _backward_hooks(module: nn.Module | None) -> Mapping[int, Hook]:
    return torch_module._global_backward_hooks if module is None else module._backward_hooks
