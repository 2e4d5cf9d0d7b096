"""What attaching hooks warns of, and what it adds to torch's errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import nn

from hookviz.hooks.bound_hook import Closable
from hookviz.hooks.hook_kinds import Hook, HookKind
from hookviz.hooks.registered import calling_place, registered

_DICTS: dict[str, str] = {
    "forward": "_forward_hooks",
    "forward_pre": "_forward_pre_hooks",
    "backward": "_backward_hooks",
    "backward_pre": "_backward_pre_hooks",
}


def warn_of_twins(layer: nn.Module, name: str, functions: Sequence[Hook], kind: HookKind) -> None:
    """Warn where a function is on the layer already, or is given twice; all of them are registered all the same."""
    here = calling_place()
    for number, function in enumerate(functions):
        places = [here] if any(function is other for other in functions[:number]) else _places(layer, function, kind)
        for place in places:
            shown = getattr(function, "__qualname__", type(function).__name__)
            warnings.warn(
                f"{shown} is a {kind} hook of layer {name!r} twice and will run twice: registered at {place} "
                f"and again at {here}.",
                stacklevel=5,
            )


def _places(layer: nn.Module, function: Hook, kind: HookKind) -> list[str]:
    found = []
    for number, installed in getattr(layer, _DICTS.get(kind, "_forward_hooks")).items():
        if _written(installed, kind) is function:
            known = registered(number, installed, layer)
            found.append(known.place if known else "a place outside hookviz")
    return found[:1]


def _written(installed: Hook, kind: HookKind) -> Hook | None:
    return installed.function if isinstance(installed, Closable) and kind.startswith("backward") else installed


def warn_of_emulation(kind: str, written: str) -> None:
    """Warn that hooks on tensors stand in for torch's, if ``written`` names an in-place operation."""
    if written:
        warnings.warn(
            f"this network writes in place ({written}), where torch's {kind} hooks raise: hookviz sets hooks on "
            "tensors and graph nodes in their stead, with the same arguments.",
            stacklevel=4,
        )


@contextmanager
def explained() -> Iterator[None]:
    """Add to torch's error about writing into a hooked tensor what to do."""
    try:
        yield
    except RuntimeError as error:
        if "BackwardHookFunction" in str(error):
            error.add_note("hookviz: an operation writes in place here; attach with emulate=True.")
        raise
