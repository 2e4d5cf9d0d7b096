"""Values by key within a bound, made once however many sessions ask for them at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Shelf(Generic[Value]):
    """Values by key, the least recently used given up first when their sizes exceed a bound.

    A value that somebody still uses lives on with them. Making the same value twice at once is avoided by a lock per
    key; one that raises, be it Streamlit's rerun, leaves it free.
    """

    def __init__(self, bound: int, size: Callable[[Value], int]) -> None:
        self._bound = bound
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Value | None:
        """The value of a key, if it is still there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value, giving up others as needed; one larger than the bound is not kept at all."""
        with self._lock:
            self._values.pop(key, None)
            if self._size(value) > self._bound:
                return
            self._values[key] = value
            while self._total() > self._bound:
                self._values.popitem(last=False)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made now if it is not there."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        try:
            with making:
                value = self.find(key)
                if value is None:
                    value = make()
                    self.put(key, value)
        finally:
            with self._lock:
                if not making.locked():
                    self._making.pop(key, None)
        return value

    @property
    def total(self) -> int:
        """The size of everything kept."""
        with self._lock:
            return self._total()

    def _total(self) -> int:
        return sum(map(self._size, self._values.values()))
