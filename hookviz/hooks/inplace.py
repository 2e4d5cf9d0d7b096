"""Whether a network writes in place, read from its code without running it."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from torch import nn

from hookviz.hooks.code_names import reachable


def in_place_operation(module: nn.Module) -> str:
    """Describe the first in-place operation found in or below a network, ``""`` where none is.

    Found are modules built with ``inplace=True`` and, in ``forward`` functions and the functions these name, augmented
    assignments, item assignments, ``inplace`` arguments and methods such as ``add_``. It errs on the side of finding
    one, for instance in ``count += 1``; what code reaches in other ways stays unseen.
    """
    seen: set[CodeType] = set()
    for name, one in module.named_modules():
        if getattr(one, "inplace", False) is True:
            return f"{name or 'the network'} is a {type(one).__name__} with inplace=True"
        found = next((word for code in _codes(one) for word in _in_code(code, seen)), "")
        if found:
            return f"{found!r} in the forward of {type(one).__name__}{f' {name}' if name else ''}"
    return ""


def _codes(module: nn.Module) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The code of a module's own methods; torch's layers are known to write only where ``inplace`` says so."""
    for kind in type(module).__mro__:
        if kind.__module__.startswith("torch."):
            continue
        for value in vars(kind).values():
            if isinstance(value, FunctionType) and value.__name__ != "__init__":
                yield value.__code__, value.__globals__
    own = module.__dict__.get("forward")
    function = getattr(own, "__func__", own)
    if isinstance(function, FunctionType):
        yield function.__code__, function.__globals__


def _in_code(unit: tuple[CodeType, dict[str, Any]], seen: set[CodeType]) -> Iterator[str]:
    for code in reachable(*unit, seen):
        for instruction in dis.get_instructions(code):
            if _writes(instruction):
                yield str(instruction.argrepr or "[...] = ...")


def _writes(instruction: dis.Instruction) -> bool:
    shown, value = instruction.argrepr, instruction.argval
    if instruction.opname in {"STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"}:
        return True
    if instruction.opname == "BINARY_OP":
        return shown.endswith("=")
    if instruction.opname.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL")):
        return isinstance(value, str) and value.endswith("_") and not value.endswith("__")
    # Names of keyword arguments stand in a tuple of constants.
    return isinstance(value, tuple) and "inplace" in value
