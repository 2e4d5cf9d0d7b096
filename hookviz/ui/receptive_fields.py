"""Receptive fields found in the background, so that no click waits for one."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import streamlit as st

from hookviz.errors import HookvizError
from hookviz.hooks.receptive_field import ReceptiveField, receptive_field
from hookviz.ui import resources
from hookviz.ui.shown_network import ShownTensor

FIELDS_KEPT = 4096
"""Of all sessions; each is a few numbers."""

WISHES_KEPT = 8
"""Of those that wait; what is still wanted is asked for again."""

MOST_FLOPS = 15e9
"""Of a forward. A field takes several forwards; of larger networks it is found when a reader asks for it."""

_log = logging.getLogger("hookviz")


@dataclass(frozen=True, slots=True)
class Field:
    """A receptive field as it is drawn: ``shares`` of the input's width and height, and what to say of it."""

    shares: tuple[float, float, float, float] | None
    words: str
    note: str = ""

    @classmethod
    def of(cls, found: ReceptiveField) -> Field:
        """The box of one that was found, without its weights, which take up memory."""
        height, width = found.bottom - found.top, found.right - found.left
        if not height or not width:
            return cls(None, "no receptive field", found.note)
        if found.is_whole_image:
            return cls(found.shares, "receptive field: the whole image", found.note)
        most = "" if found.exact else "at most "
        return cls(found.shares, f"receptive field {most}{width} × {height} px of the network’s input", found.note)


class FieldFinder:
    """Finds fields one after the other in a thread of its own, the one asked for last first."""

    def __init__(self) -> None:
        self._found: OrderedDict[Hashable, Field] = OrderedDict()
        self._wishes: OrderedDict[Hashable, Callable[[], ReceptiveField]] = OrderedDict()
        self._changed = threading.Condition()
        self._worker: threading.Thread | None = None

    def find(self, key: Hashable, make: Callable[[], ReceptiveField] | None, *, seconds: float) -> Field | None:
        """The field, waiting for it so long; None where it is not found by then, or nobody is to look for it."""
        with self._changed:
            if key not in self._found and make is not None:
                self._wish(key, make)
                self._changed.wait_for(lambda: key in self._found, timeout=seconds)
            return self._found.get(key)

    def _wish(self, key: Hashable, make: Callable[[], ReceptiveField]) -> None:
        self._wishes[key] = make
        self._wishes.move_to_end(key)
        while len(self._wishes) > WISHES_KEPT:
            self._wishes.popitem(last=False)
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, daemon=True, name="receptive fields")
            self._worker.start()

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._wishes:
                    self._worker = None
                    return
                key, make = next(reversed(self._wishes.items()))
            field = _made(make)
            with self._changed:
                self._wishes.pop(key, None)
                self._found[key] = field
                while len(self._found) > FIELDS_KEPT:
                    self._found.popitem(last=False)
                self._changed.notify_all()


def _made(make: Callable[[], ReceptiveField]) -> Field:
    try:
        return Field.of(make())
    except HookvizError as error:
        return Field(None, "no receptive field", str(error))
    except Exception:  # noqa: BLE001  # whatever it is, the thread has others to find
        _log.exception("a receptive field could not be found")
        return Field(None, "no receptive field", "it could not be found; the log says why")


@st.cache_resource(show_spinner=False)
def field_finder() -> FieldFinder:
    """The one of all sessions."""
    return FieldFinder()


def is_costly(tensor: ShownTensor) -> bool:
    """Whether a reader should ask for a field first: it would take more than about a second."""
    model = tensor.network.model()
    batch = tensor.network.batch(model)
    flops = resources.get_estimate((tensor.network.key[0], tuple(batch.shape)), model, batch).flops
    return flops is None or flops > MOST_FLOPS


def field_key(tensor: ShownTensor, position: tuple[int, int]) -> Hashable:
    """What the field of a position is known by."""
    return (tensor.network.key, tensor.info.name, tensor.call, tensor.path, tensor.layout, tensor.selection, position)


def find_field(tensor: ShownTensor, position: tuple[int, int], *, look: bool, seconds: float) -> Field | None:
    """The field of a position where it is known, or, if asked to ``look``, found within so many seconds."""

    def make() -> ReceptiveField:
        return receptive_field(
            model.module,
            model.arguments(batch),
            tensor.info.name,
            position,
            call=tensor.call,
            path=tensor.path,
            layout=tensor.layout.name,
            grid=tensor.layout.grid,
            item=tensor.selection.item,
            depth=tensor.selection.depth,
        )

    model = tensor.network.model()
    batch = tensor.network.batch(model)
    return field_finder().find(field_key(tensor, position), make if look else None, seconds=seconds)
