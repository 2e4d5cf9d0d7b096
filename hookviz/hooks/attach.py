"""Attaching hooks so that they always come off again. The only file that registers hooks on modules.

Torch hands out hook numbers from an unguarded counter, so two threads registering at once can get the same number and
lose a hook; everything here registers under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from hookviz.errors import HookvizError
from hookviz.hooks.attach_warnings import explained, warn_of_emulation, warn_of_twins
from hookviz.hooks.backward_mark import keep_mark, restore_mark
from hookviz.hooks.bound_hook import BoundEdit, BoundHook, Closable, innermost, is_looking
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.hook_kinds import (
    GLOBAL_OPTIONS,
    OPTIONS,
    REGISTER,
    REGISTER_GLOBAL,
    Hook,
    HookKind,
    check_kind,
)
from hookviz.hooks.inplace import in_place_operation
from hookviz.hooks.names import LayerNames
from hookviz.hooks.registered import calling_place, forget_registered, note_registered, registered
from hookviz.hooks.shared_hook import SharedRegistration

__all__ = [
    "BoundEdit",
    "BoundHook",
    "Closable",
    "Hook",
    "HookHandles",
    "HookKind",
    "attach",
    "attach_global",
    "innermost",
    "is_looking",
    "registered",
]

_registering = threading.Lock()


class HookHandles:
    """Hooks registered together and removed together.

    Use as a context manager: leaving it, for whatever reason, removes every hook registered through it. Removing twice
    is harmless.
    """

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
        self._shared: list[SharedRegistration] = []
        self._marked: list[nn.Module | None] = []
        self._sweep_at = 1024
        self.when_removed: list[Callable[[], object]] = []
        self.emulated: tuple[str, ...] = ()
        """The layers whose backward hooks are set on tensors, since torch's own would raise."""

    def __enter__(self) -> HookHandles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def add(self, module: nn.Module, hook: Hook, kind: HookKind, **options: bool) -> None:
        """Register ``hook`` on ``module``, with torch's own options for that kind (``with_kwargs`` and the like).

        Raises:
            HookvizError: the kind does not exist, or torch refuses hooks on this module (a TorchScript module).
        """
        if kind not in REGISTER:
            raise HookvizError(f"no hook kind {kind!r}; choose one of {', '.join(REGISTER)}.")
        with _registering:
            if kind == "backward":
                self._mark(module)
            try:
                self._note(getattr(module, REGISTER[kind])(hook, **options), hook, module)
            except RuntimeError as error:
                raise HookvizError(
                    f"torch refuses hooks on this {type(module).__name__} ({error}); pass the original nn.Module, "
                    "not its scripted form."
                ) from error

    def add_shared(
        self,
        names: LayerNames,
        layers: Iterable[str],
        hook: BoundHook,
        kind: Literal["forward", "forward_pre"],
        **options: bool,
    ) -> None:
        """Register one hook on many layers at once, fast; ``layers`` are names of ``names``. Raises as ``add`` does."""
        modules = names.modules(layers)
        scripted = {one for one in set(map(type, modules)) if issubclass(one, torch.jit.ScriptModule)}
        for module in [one for one in modules if type(one) in scripted] if scripted else ():
            self.add(module, hook, kind, **options)  # torch says what it thinks of that
        with _registering:
            registration = SharedRegistration(modules, hook, kind, options)
            self._shared.append(registration)
            note_registered(registration.number, hook, None, calling_place())

    def add_deprecated_backward(self, module: nn.Module, hook: Hook) -> None:
        """Register ``hook`` by torch's deprecated ``register_backward_hook``, to show what it gives."""
        with _registering:
            self._mark(module)
            self._note(module.register_backward_hook(hook), hook, module)

    def add_global(self, hook: Hook, kind: str, **options: bool) -> None:
        """Register ``hook`` on every module of the process, with torch's own options for that kind."""
        register = getattr(torch_module, REGISTER_GLOBAL[kind])
        with _registering:
            if kind == "backward":
                self._mark(None)
            self._note(register(hook, **options), hook, None)

    def _mark(self, module: nn.Module | None) -> None:
        keep_mark(module)
        self._marked.append(module)

    def _note(self, handle: RemovableHandle, hook: Hook, module: nn.Module | None) -> None:
        self._handles.append(handle)
        note_registered(handle.id, hook, module, calling_place())

    def _keep(self, handle: RemovableHandle) -> None:
        """Hold a hook of a graph, and forget those of graphs that are gone."""
        self._handles.append(handle)
        if len(self._handles) > self._sweep_at:
            self._handles = [one for one in self._handles if one.hooks_dict_ref() is not None]
            self._sweep_at = max(1024, 2 * len(self._handles))

    def add_to_tensor(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> None:
        """Register a gradient hook on a tensor that requires grad."""
        with _registering:
            self._keep(tensor.register_hook(hook))

    def add_to_node(self, node: Any, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> None:
        """Register ``hook(grad_inputs, grad_outputs)`` on a node of autograd's graph."""
        with _registering:
            self._keep(node.register_hook(hook))

    def add_post_accumulate(self, parameter: Tensor, hook: Callable[[Tensor], None]) -> None:
        """Register ``hook(parameter)``, called when ``parameter.grad`` has received a backward pass's gradient."""
        with _registering:
            self._handles.append(parameter.register_post_accumulate_grad_hook(hook))

    def remove(self) -> None:
        """Take every hook off again, last one first."""
        while self.when_removed:
            self.when_removed.pop()()
        with _registering:
            while self._handles:
                handle = self._handles.pop()
                handle.remove()
                known = forget_registered(handle.id)
                if known and isinstance(known.installed, Closable):
                    known.installed.function = None
            while self._shared:
                registration = self._shared.pop()
                registration.remove()
                forget_registered(registration.number)
            while self._marked:
                restore_mark(self._marked.pop())


@contextmanager
def attach(
    module: nn.Module,
    hooks: Mapping[str, Hook | Sequence[Hook]],
    kind: HookKind = "forward",
    *,
    emulate: bool | None = None,
    **options: bool,
) -> Iterator[HookHandles]:
    """Attach hooks to named layers for the length of a ``with`` block.

    >>> with attach(model, {"conv1": lambda module, args, output: output * 0}):
    ...     model(image)

    Args:
        module: the network; of a compiled one the eager original, which runs in its stead inside the block.
        hooks: for each layer name (or glob) one hook or several, run in that order, each seeing what the one before
            made of the value, with torch's own signatures: ``hook(module, args, output)`` for ``forward``,
            ``hook(module, args)`` for ``forward_pre``, ``hook(module, grad_input, grad_output)`` for ``backward``,
            ``hook(module, grad_output)`` for ``backward_pre``, and ``hook(grad)`` for ``tensor``, which is set on every
            tensor the layer returns. What a hook returns replaces the value, as in torch.
        kind: which of the five.
        emulate: for ``backward`` and ``backward_pre``. Torch's own hooks raise where an in-place operation meets what a
            module took or returned; ``True`` sets hooks on tensors and graph nodes instead, ``False`` does not, and
            ``None`` does it where the network writes in place, says so in a warning and in ``.emulated``. Emulated
            hooks give None for inputs that need no gradient, where torch gives zeros, also fire for outputs in dicts
            and lists, and can replace a gradient only where one tensor or one operation carries all of it. The graph of
            a forward without a backward may stay until the block is left.
        options: torch's own for that kind: ``prepend``, ``with_kwargs``, ``always_call``.

    Returns:
        A context manager that gives the handles. Backward hooks are silent once the block is left, also for a backward
        pass through a graph made inside it.

    Raises:
        UnknownLayerError: a name that matches no layer; raised before any hook is attached.
        HookvizError: an unknown kind or option, or a module that torch allows no hooks on.
    """
    check_kind(kind, options, OPTIONS)
    names = LayerNames(module)
    chosen: dict[str, list[Hook]] = {}
    for name, given in hooks.items():
        for layer in names.resolve(name):
            chosen.setdefault(layer, []).extend(_as_list(given))
    written = in_place_operation(names.root) if emulate is None and kind.startswith("backward") else ""
    with run_eagerly(), HookHandles() as handles:
        if kind == "tensor" or emulate or written:
            # Imported here because it stands on this module.
            from hookviz.hooks.emulate import emulate_on

            for name, functions in chosen.items():
                warn_of_twins(names[name], name, functions, kind)
            emulate_on(handles, {names[name]: functions for name, functions in chosen.items()}, kind)
            if kind != "tensor":
                handles.emulated = tuple(chosen)
                warn_of_emulation(kind, written)
        else:
            for name, functions in chosen.items():
                _add_all(handles, names[name], name, functions, kind, options)
        with explained():
            yield handles


@contextmanager
def attach_global(
    hook: Hook | Sequence[Hook], kind: HookKind = "forward", *, emulate: bool = False, **options: bool
) -> Iterator[HookHandles]:
    """Attach hooks to every module of the process, in every thread, for the length of a ``with`` block.

    Args:
        hook: one or several, run in order before the hooks of the single modules; torch's own signatures.
        kind: ``forward``, ``forward_pre``, ``backward`` or ``backward_pre``.
        emulate: set backward hooks on tensors and graph nodes, as ``attach`` does: torch's own global ones raise on
            every network that writes in place, and no one network is given here to look for that.
        options: torch's own: ``with_kwargs`` and ``always_call``, for ``forward``.

    Raises:
        HookvizError: an unknown kind or option.
    """
    check_kind(kind, options, GLOBAL_OPTIONS)
    hooks = _as_list(hook)
    with run_eagerly(), HookHandles() as handles:
        if emulate and kind.startswith("backward"):
            # Imported here because it stands on this module.
            from hookviz.hooks.emulate import emulate_globally

            emulate_globally(handles, hooks, kind)
        else:
            for one in hooks:
                handles.add_global(Closable(one) if kind.startswith("backward") else one, kind, **options)
        with explained():
            yield handles


def _as_list(hooks: Hook | Sequence[Hook]) -> Sequence[Hook]:
    return hooks if isinstance(hooks, Sequence) else [hooks]


def _add_all(  # noqa: PLR0913, PLR0917  # private: what attach was called with, once more for one layer
    handles: HookHandles,
    layer: nn.Module,
    name: str,
    functions: Sequence[Hook],
    kind: HookKind,
    options: Mapping[str, bool],
) -> None:
    warn_of_twins(layer, name, functions, kind)
    # Each prepended hook goes before the one prepended last.
    for function in reversed(functions) if options.get("prepend") else functions:
        hook = Closable(function) if kind.startswith("backward") else function
        handles.add(layer, hook, kind, **options)
