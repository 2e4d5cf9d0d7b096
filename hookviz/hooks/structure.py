"""Walking what modules take and return: tensors inside tuples, lists, dicts, dataclasses and plain objects.

torch's own pytree treats unknown classes as opaque; torchvision's ``ImageList`` and model outputs of other libraries
are such classes, and the tensors in them are what a reader wants to see.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from hookviz.types import TensorInfo

Leaf = TypeVar("Leaf")

_DEEPEST = 3
"""Objects inside objects that are looked into; what a module returns may lead to half the program."""

_OPAQUE = (nn.Module, torch.Size, torch.device, torch.Generator, FunctionType, MethodType, ModuleType, type, str, bytes)


def tensor_info(path: str, tensor: Tensor) -> TensorInfo:
    """Describe a tensor that sits at ``path``."""
    shape = _nested_shape(tensor) if tensor.is_nested else tuple(tensor.shape)
    return TensorInfo(path, shape, _dtype_name(tensor.dtype))


def _nested_shape(tensor: Tensor) -> tuple[int, ...]:
    shapes = [tuple(item.shape) for item in tensor.unbind()]
    return len(shapes), *(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in zip(*shapes, strict=True))


@cache
def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tensor_infos(value: object) -> tuple[TensorInfo, ...]:
    """Describe every tensor in ``value``, in order."""
    return tuple(tensor_info(path, tensor) for path, tensor in leaves(value, Tensor))


def argument_infos(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[TensorInfo, ...]:
    """Describe every tensor a module is called with: positional ones by number, the others by keyword."""
    return tensor_infos(args) + tensor_infos(kwargs)


def each_tensor(arguments: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same arguments with every tensor replaced by ``change(tensor)``."""
    return map_leaves(arguments, Tensor, lambda _, tensor: change(tensor))


def leaves(value: object, leaf: type[Leaf], path: str = "") -> Iterator[tuple[str, Leaf]]:
    """Give ``(dotted path, leaf)`` for every instance of ``leaf`` in ``value``, whose own path is ``""``."""
    if isinstance(value, leaf):
        yield path, value
        return
    found: list[tuple[str, Leaf]] = []

    def collect(where: str, one: Leaf) -> Leaf:
        found.append((where, one))
        return one

    map_leaves(value, leaf, collect, path=path)
    yield from found


def map_leaves(
    value: Any,
    leaf: type[Leaf],
    function: Callable[[str, Leaf], Any],
    *,
    path: str = "",
) -> Any:
    """Rebuild ``value`` with every instance of ``leaf`` replaced by ``function(path, leaf)``.

    Containers keep their types (a namedtuple stays one, a 1-tuple stays a 1-tuple); ``value`` itself is never changed,
    and what holds no leaf is returned as it is. Values may contain themselves.
    """
    if isinstance(value, leaf):  # by far the most frequent case, and the one that must cost nothing
        return function(path, value)
    return _Rebuild(leaf, function).visit(value, path)


class _Rebuild:
    """One walk; remembers what it has rebuilt, so that shared and circular parts stay shared and circular."""

    def __init__(self, leaf: type[Any], function: Callable[[str, Any], Any]) -> None:
        self._leaf = leaf
        self._function = function
        self._done: dict[int, Any] = {}
        self._objects = 0

    def visit(self, value: Any, path: str) -> Any:  # noqa: PLR0911  # one return per kind of container
        if isinstance(value, self._leaf):
            return self._function(path, value)
        if value is None or isinstance(value, (bool, int, float, complex, _OPAQUE)):
            return value
        if id(value) in self._done:
            return self._done[id(value)]
        if isinstance(value, tuple):
            return self._tuple(value, path)
        if isinstance(value, (list, deque)):
            return self._list(value, path)
        if isinstance(value, (set, frozenset)):
            return self._set(value, path)
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        if getattr(value, "__dict__", None) or getattr(type(value), "__slots__", None):
            return self._object(value, path)
        return value

    def _tuple(self, value: tuple[Any, ...], path: str) -> tuple[Any, ...]:
        fields = getattr(value, "_fields", None) or range(len(value))
        items = [self.visit(item, _join(path, name)) for name, item in zip(fields, value, strict=True)]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        if type(value) is tuple:
            return tuple(items)
        make = getattr(value, "_make", type(value))  # torch.return_types take one sequence, namedtuples have _make
        rebuilt: tuple[Any, ...] = make(items)
        return rebuilt

    def _list(self, value: list[Any] | deque[Any], path: str) -> Any:
        rebuilt = _writable_copy(value, range(len(value)))
        if rebuilt is None:
            return type(value)(self.visit(item, _join(path, index)) for index, item in enumerate(value))
        self._done[id(value)] = rebuilt
        for index, item in enumerate(value):
            rebuilt[index] = self.visit(item, _join(path, index))
        return rebuilt

    def _set(self, value: Set[Any], path: str) -> Any:
        items = [(item, self.visit(item, _join(path, index))) for index, item in enumerate(value)]
        if all(new is old for old, new in items):
            return value
        rebuilt = [new for _, new in items]
        make: Any = type(value)
        try:
            return make(rebuilt)
        except TypeError:  # what was kept of the tensors cannot be in a set
            return rebuilt

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Any:
        rebuilt = _writable_copy(value, value)
        if rebuilt is None:
            return _remade(value, {key: self.visit(item, _join(path, key)) for key, item in value.items()})
        self._done[id(value)] = rebuilt
        for key, item in value.items():
            rebuilt[key] = self.visit(item, _join(path, key))
        return rebuilt

    def _object(self, value: Any, path: str) -> Any:
        if self._objects == _DEEPEST:
            return value
        self._done[id(value)] = value
        self._objects += 1
        visited = {name: (item, self.visit(item, _join(path, name))) for name, item in _attributes(value).items()}
        self._objects -= 1
        changed = {name: new for name, (old, new) in visited.items() if new is not old}
        if not changed:
            return value
        rebuilt = copy.copy(value)
        self._done[id(value)] = rebuilt
        for name, new in changed.items():
            object.__setattr__(rebuilt, name, new)  # frozen dataclasses refuse the plain way
        return rebuilt


def _writable_copy(container: Any, keys: Iterable[Any]) -> Any:
    """A shallow copy that takes other items under these keys; None of a container that is made once and for all."""
    try:
        copied = copy.copy(container)
        for key in keys:
            copied[key] = copied[key]
            break
    except (TypeError, AttributeError, NotImplementedError):  # each is some class's way of saying that it is frozen
        return None
    return copied


def _remade(value: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    if all(items[key] is item for key, item in value.items()):
        return value
    make: Any = type(value)
    try:
        return make(items)
    except TypeError:  # takes something else than its items
        return items


def _attributes(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in _slot_names(kind)]
    named = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return named | getattr(value, "__dict__", {})


def _slot_names(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in {"__dict__", "__weakref__"})


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)
