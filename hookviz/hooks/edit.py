"""Running a network with some of its activations changed."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import BoundEdit, BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.edits import Edit
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import leaves, map_leaves


@contextmanager
def edit(module: nn.Module, edits: Mapping[str, Edit | Sequence[Edit]]) -> Iterator[None]:
    """Change what layers return while the network runs inside a ``with`` block.

    >>> with edit(model, {"layer1.0.relu": Zero(channels=[3, 7], call=1)}):
    ...     logits = model(image)

    A layer returns a new tensor in place of its own; nothing is written into. Several edits of a layer follow one
    another. Only calls made by the thread that opened the block are edited, of this module and not of copies of it.
    Calls are counted from 0 in each run: one call of ``module``, or of the outermost part of it that is called.
    A layer or call that never came though the network ran is warned of when the block is left.

    Args:
        module: the network; a compiled one runs eagerly inside the block.
        edits: for each layer name or glob, an edit or several.

    Raises:
        UnknownLayerError: a name that matches no layer; before anything runs.
        HookvizError: something that is no edit; while the network runs, an edit that does not fit the output.
    """
    names = LayerNames(module)
    chosen: dict[str, list[Edit]] = {}
    for pattern, given in edits.items():
        for name in names.resolve(pattern):
            chosen.setdefault(name, []).extend(_checked(given))
    editor = _Editor(chosen)
    with run_eagerly(), HookHandles() as handles:
        editor.install(names, handles)
        yield
    editor.warn_of_unused()


def _checked(given: Edit | Sequence[Edit]) -> list[Edit]:
    many = [given] if isinstance(given, Edit) or not isinstance(given, Sequence) else list(given)
    for one in many:
        if not isinstance(one, Edit):
            raise HookvizError(f"{one!r} is no edit; give Zero, KeepOnly, Scale, ReplaceByMean, AddNoise or Clamp.")
    return many


class _Editor:
    """The hooks of one block, and the calls counted so far."""

    def __init__(self, chosen: Mapping[str, Sequence[Edit]]) -> None:
        self._chosen = chosen
        self._running: list[str] = []
        self._calls: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self._ran = False

    def install(self, names: LayerNames, handles: HookHandles) -> None:
        """Edit the chosen layers, and follow when runs begin."""
        bracketed = names.above(self._chosen) | {""}
        for name, module in names.items():
            if name in bracketed:
                handles.add(module, BoundHook(module, partial(self._enter, name)), "forward_pre")
            if name in self._chosen:
                handles.add(module, BoundEdit(module, partial(self._edited, name)), "forward")
            if name in bracketed:
                handles.add(module, BoundHook(module, partial(self._leave, name)), "forward", always_call=True)

    def _enter(self, name: str, *_: Any) -> None:
        if is_backward():
            return
        if not name:
            self._running.clear()  # torch does not tell of a run that Ctrl-C ended
            self._ran = True
        if not self._running:
            self._calls.clear()
        self._running.append(name)

    def _leave(self, name: str, *_: Any) -> None:
        if not is_backward() and name in self._running:
            while self._running.pop() != name:
                pass

    def _edited(self, name: str, _: tuple[Any, ...], output: Any) -> Any:
        call = self._next_call(name)
        value = output
        for one in self._chosen[name]:
            if one.call is None or one.call == call:
                value = _apply(one, name, value)
        return None if value is output else value

    def _next_call(self, name: str) -> int:
        if is_backward():
            return self._recomputed(name)
        if not self._running:
            self._calls.clear()
        call = self._calls[name]
        self._calls[name] += 1
        self._most[name] = max(self._most[name], call + 1)
        return call

    def _recomputed(self, name: str) -> int:
        """A checkpoint recomputes a call in the backward pass, and must meet the same edit."""
        if any(one.call is not None for one in self._chosen[name]) and self._most[name] > 1:
            raise HookvizError(
                f"layer {name!r} is recomputed by a checkpoint, where its calls cannot be told apart; "
                "edit with call=None."
            )
        return 0

    def warn_of_unused(self) -> None:
        """Say which edits did nothing, where the network did run."""
        for name, edits in self._chosen.items() if self._ran else ():
            for one in edits:
                if not self._most[name]:
                    warnings.warn(f"layer {name!r} never ran, so its edit did nothing.", stacklevel=4)
                elif one.call is not None and one.call >= self._most[name]:
                    warnings.warn(
                        f"layer {name!r} ran {self._most[name]} times, so the edit of call {one.call} did nothing.",
                        stacklevel=4,
                    )


def _apply(one: Edit, name: str, value: Any) -> Any:
    found = [path for path, _ in leaves(value, Tensor)]
    if one.path not in found:
        raise HookvizError(
            f"layer {name!r} returned no tensor at path {one.path!r}; choose path= from {', '.join(map(repr, found))}."
            if found
            else f"layer {name!r} returned no tensor to edit; choose another layer."
        )
    try:
        return map_leaves(value, Tensor, lambda path, tensor: one.apply(tensor) if path == one.path else tensor)
    except HookvizError as error:
        raise HookvizError(f"layer {name!r}: {error}") from error
