"""Warning of hooks that do something else than one expects of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Literal, TypeAlias

import torch
from torch import nn

from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.attach import BoundHook, Closable, HookHandles, innermost
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.emulate import Before, EmulatedHook
from hookviz.hooks.inplace import in_place_operation
from hookviz.hooks.names import LayerNames
from hookviz.hooks.placed_hooks import PlacedHook, placed_hooks, written_at
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import detached_copy, is_part_of_model

FindingKind: TypeAlias = Literal["deprecated", "in place", "twice", "global", "left"]


@dataclass(frozen=True, slots=True)
class HookFinding:
    """Something to know of one hook.

    ``kind`` is ``"deprecated"`` for one of ``register_backward_hook``; ``"in place"`` for a full backward hook with
    which the forward raises, since something writes in place; ``"twice"`` for a function that sits on a layer more than
    once; ``"global"`` for one that every module of the process runs; and ``"left"`` for one that others registered and
    that hookviz will leave where it is. ``layer`` is None for a global hook. ``place`` is where it was registered, as
    far as hookviz knows, else where its function was written. ``message`` says why it matters and what to do.
    """

    layer: str | None
    kind: FindingKind
    hook: str
    function: str
    place: str
    message: str

    def __str__(self) -> str:
        where = "every module" if self.layer is None else f"layer {self.layer!r}"
        return f"{self.hook} hook {self.function} ({self.place}) on {where}: {self.message}"


def lint_hooks(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[HookFinding, ...]:
    """Look at the hooks on a network, and at torch's global ones, for what will surprise.

    >>> for finding in lint_hooks(model, image):
    ...     print(finding)

    Hooks that are part of the model (pruning, weight norm) and those of open recordings and edits are passed over.
    Nothing is changed. Whether full backward hooks raise is read from the network's code, which errs on the side of
    warning. With arguments it is tried out instead: a private copy runs forward once for each layer that has such a
    hook, without the network's hooks.

    Args:
        module: the network.
        args: what to call it with, if full backward hooks are to be tried out.
        kwargs: what to call it with.
    """
    names = LayerNames(module)
    tree = {id(one) for one in names.root.modules()}
    hooks = [
        _Hook(place, kind, function)
        for place in placed_hooks(names)
        for kind, function in _functions(place)
        if not is_part_of_model(function, tree)
    ]
    raising = _written_in_place(names, hooks) if not (args or kwargs) else _tried_out(names, hooks, args, kwargs)
    return tuple(finding for number, hook in enumerate(hooks) for finding in _findings(hook, hooks[:number], raising))


@dataclass(frozen=True, slots=True)
class _Hook:
    place: PlacedHook
    kind: str
    function: Any

    @property
    def identity(self) -> tuple[object, ...]:
        """What two registrations of one function share; a method is a new object each time it is named."""
        function = self.function
        same = (id(function.__self__), id(function.__func__)) if isinstance(function, MethodType) else (id(function),)
        return (self.place.layer, self.kind, *same)

    @property
    def is_torchs_full_backward(self) -> bool:
        emulated = isinstance(self.place.installed, EmulatedHook)
        return self.kind.startswith("backward") and not emulated and not self.place.deprecated

    @property
    def where(self) -> str:
        if self.place.registered_at:
            return self.place.registered_at
        _, file, line = written_at(innermost(self.function))
        return f"{file}:{line}" if file else "written in C"

    def finding(self, kind: FindingKind, message: str) -> HookFinding:
        name, _, _ = written_at(innermost(self.function))
        return HookFinding(self.place.layer, kind, self.kind, name, self.where, message)


def _functions(place: PlacedHook) -> Iterator[tuple[str, Any]]:
    installed = place.installed
    if isinstance(installed, EmulatedHook):
        yield from ((installed.kind, function) for function in installed.functions)
    elif not isinstance(installed, (BoundHook, Before)):
        yield place.kind, installed.function if isinstance(installed, Closable) else installed


def _findings(hook: _Hook, before: Sequence[_Hook], raising: dict[str | None, str]) -> Iterator[HookFinding]:
    if hook.place.deprecated:
        yield hook.finding("deprecated", hook.place.deprecated)
    if hook.is_torchs_full_backward and hook.place.layer in raising:
        yield hook.finding("in place", f"{raising[hook.place.layer]}; {_INSTEAD}")
    twin = next((other for other in before if other.identity == hook.identity), None)
    if twin is not None:
        yield hook.finding(
            "twice", f"it runs twice at every call, since it was registered before ({twin.where}); keep one of the two."
        )
    if hook.place.layer is None:
        yield hook.finding("global", _GLOBAL)
    if not hook.place.by_hookviz:
        yield hook.finding("left", _LEFT)


_INSTEAD = "use attach(..., kind='backward', emulate=True), or a tensor hook set from a forward hook."
_GLOBAL = (
    "every module of every network in this process runs it, in every thread; attach it to the layers that are meant."
)
_LEFT = (
    "it was registered outside hookviz, so neither the end of a block nor remove_hooks(module) takes it off; call "
    "remove() on the handle that registering it gave."
)


def _written_in_place(names: LayerNames, hooks: Sequence[_Hook]) -> dict[str | None, str]:
    layers = _with_full_hooks(hooks)
    written = in_place_operation(names.root) if layers else ""
    return dict.fromkeys(layers, f"this network writes in place ({written}), where torch may raise") if written else {}


def _tried_out(names: LayerNames, hooks: Sequence[_Hook], args: Any, kwargs: Any) -> dict[str | None, str]:
    layers = _with_full_hooks(hooks)
    if not layers:
        return {}
    copied = LayerNames(detached_copy(names.root))

    def run() -> None:
        own_args, own_kwargs = own_arguments((args, kwargs))
        copied.root(*own_args, **own_kwargs)

    found: dict[str | None, str] = {}
    with torch.inference_mode(mode=False), torch.enable_grad(), run_eagerly(), random_state_kept(copied.root):
        for layer in layers:
            error = _error_with_hooks([copied[layer]] if layer is not None else copied.values(), run)
            if error:
                found[layer] = f"the forward raises with it ({error})"
    return found


def _error_with_hooks(modules: Iterable[nn.Module], run: Callable[[], None]) -> str:
    """What torch says of the forward with a full backward hook on modules; ``""`` where it runs."""
    with HookHandles() as handles:
        for module in modules:
            handles.add(module, _nothing, "backward")
        try:
            run()
        except RuntimeError as error:
            if "BackwardHookFunction" not in str(error):
                raise
            return str(error).partition(". ")[0]
    return ""


def _nothing(*_: Any) -> None: ...


def _with_full_hooks(hooks: Sequence[_Hook]) -> list[str | None]:
    return list(dict.fromkeys(hook.place.layer for hook in hooks if hook.is_torchs_full_backward))
