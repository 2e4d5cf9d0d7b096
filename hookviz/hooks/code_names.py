"""The names that a network's own code uses, read without running it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

_by_class: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def uses_any(names: Set[str], modules: Iterable[nn.Module]) -> bool:
    """Whether one of these names is used: variables, attributes and keyword arguments alike.

    Read are the methods of the modules and the functions that these name, but not torch's own layers. A class is read
    once.
    """
    kinds = {type(module) for module in modules}
    for kind in [one for one in kinds if one not in _by_class]:  # not set arithmetic: other threads add to it
        _by_class[kind] = frozenset(_names_in(_functions_of(kind)))
    if not all(_by_class[kind].isdisjoint(names) for kind in kinds):
        return True
    own = [module.__dict__["forward"] for module in modules if "forward" in module.__dict__]
    return bool(own) and not _names_in(getattr(one, "__func__", one) for one in own).isdisjoint(names)


def _functions_of(kind: type) -> Iterator[Any]:
    for one in kind.__mro__:
        if not one.__module__.startswith("torch."):
            yield from vars(one).values()


def _names_in(functions: Iterable[Any]) -> set[str]:
    names: set[str] = set()
    seen: set[CodeType] = set()
    for one in functions:
        if isinstance(one, FunctionType):
            for code in reachable(one.__code__, one.__globals__, seen):
                names.update(code.co_names)
                # A tuple of strings names keyword arguments.
                many = [constant for constant in code.co_consts if isinstance(constant, tuple)]
                names.update(word for constant in many for word in constant if isinstance(word, str))
    return names


def reachable(code: CodeType, known: Mapping[str, Any], seen: set[CodeType]) -> Iterator[CodeType]:
    """Give some code, what is written inside it, and the functions that these name, but not torch's; each once.

    ``known`` are the globals of the code. What is in ``seen`` is passed over, and what is given is put there.
    """
    if code in seen:
        return
    seen.add(code)
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from reachable(constant, known, seen)
    for name in code.co_names:
        function = known.get(name)
        if isinstance(function, FunctionType) and not function.__module__.startswith("torch."):
            yield from reachable(function.__code__, function.__globals__, seen)
