"""Attaching hooks so that they always come off again. The only file that registers hooks on modules.

Torch hands out hook numbers from an unguarded counter, so two threads registering at once can get the same number and
lose a hook; everything here registers under one lock.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from hookviz.errors import HookvizError
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.inplace import in_place_operation
from hookviz.hooks.names import LayerNames

HookKind: TypeAlias = Literal["forward", "forward_pre", "backward", "backward_pre", "tensor"]
Hook: TypeAlias = Callable[..., Any]

_registering = threading.Lock()
_looking = threading.local()

_REGISTER: dict[str, str] = {
    "forward": "register_forward_hook",
    "forward_pre": "register_forward_pre_hook",
    "backward": "register_full_backward_hook",
    "backward_pre": "register_full_backward_pre_hook",
}

_REGISTER_GLOBAL: dict[str, str] = {
    "forward": "register_module_forward_hook",
    "forward_pre": "register_module_forward_pre_hook",
    "backward": "register_module_full_backward_hook",
    "backward_pre": "register_module_full_backward_pre_hook",
}

_OPTIONS: dict[str, tuple[str, ...]] = {
    "forward": ("prepend", "with_kwargs", "always_call"),
    "forward_pre": ("prepend", "with_kwargs"),
    "backward": ("prepend",),
    "backward_pre": ("prepend",),
    "tensor": (),
}
_GLOBAL_OPTIONS: dict[str, tuple[str, ...]] = {
    "forward": ("with_kwargs", "always_call"),
    "forward_pre": (),
    "backward": (),
    "backward_pre": (),
}


@dataclass(frozen=True, slots=True)
class Registered:
    """What hookviz knows of a hook it registered: the object handed to torch, where that was asked for, on what."""

    installed: Hook
    place: str
    module: weakref.ref[nn.Module] | None
    """None for a global hook."""


_registered: dict[int, Registered] = {}


def registered(number: int, installed: Hook, module: nn.Module | None) -> Registered | None:
    """Look up the hook that torch keeps under ``number``; None where hookviz did not put it there."""
    known = _registered.get(number)
    if known is None or known.installed is not installed:
        return None
    # A deep copy of a module has the same functions under the same numbers.
    return known if (known.module and known.module()) is module else None


def is_looking() -> bool:
    """Whether this thread is inside a hook of hookviz, whose own tensor operations are none of the network's."""
    return getattr(_looking, "on", False)


class HookHandles:
    """Hooks registered together and removed together.

    Use as a context manager: leaving it, for whatever reason, removes every hook registered through it. Removing twice
    is harmless.
    """

    def __init__(self) -> None:
        self._handles: list[RemovableHandle] = []
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
        if kind not in _REGISTER:
            raise HookvizError(f"no hook kind {kind!r}; choose one of {', '.join(_REGISTER)}.")
        register = getattr(module, _REGISTER[kind])
        with _registering:
            if kind == "backward":
                self._mark(module)
            try:
                self._note(register(hook, **options), hook, module)
            except RuntimeError as error:
                raise HookvizError(
                    f"torch refuses hooks on this {type(module).__name__} ({error}); pass the original nn.Module, "
                    "not its scripted form."
                ) from error

    def add_deprecated_backward(self, module: nn.Module, hook: Hook) -> None:
        """Register ``hook`` by torch's deprecated ``register_backward_hook``, to show what it gives."""
        with _registering:
            self._mark(module)
            self._note(module.register_backward_hook(hook), hook, module)

    def add_global(self, hook: Hook, kind: str, **options: bool) -> None:
        """Register ``hook`` on every module of the process, with torch's own options for that kind."""
        register = getattr(torch_module, _REGISTER_GLOBAL[kind])
        with _registering:
            if kind == "backward":
                self._mark(None)
            self._note(register(hook, **options), hook, None)

    def _mark(self, module: nn.Module | None) -> None:
        """Remember what torch's first backward hook on a module is about to change."""
        if not _backward_hooks(module):
            _marks[id(module)] = getattr(*_mark_of(module))
        self._marked.append(module)

    def _note(self, handle: RemovableHandle, hook: Hook, module: nn.Module | None) -> None:
        self._handles.append(handle)
        owner = None if module is None else weakref.ref(module)
        _registered[handle.id] = Registered(hook, _place(), owner)

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
                known = _registered.pop(handle.id, None)
                if known and isinstance(known.installed, Closable):
                    known.installed.function = None
            while self._marked:
                _restore_mark(self._marked.pop())


_marks: dict[int, bool | None] = {}
"""Torch marks a module at its first backward hook and never takes the mark back, which forbids the other kind. Here is
what the mark was, by the module's id, for whichever of several blocks is the last to leave."""


def _mark_of(module: nn.Module | None) -> tuple[Any, str]:
    return (torch_module, "_global_is_full_backward_hook") if module is None else (module, "_is_full_backward_hook")


def _backward_hooks(module: nn.Module | None) -> Mapping[int, Hook]:
    return torch_module._global_backward_hooks if module is None else module._backward_hooks


def _restore_mark(module: nn.Module | None) -> None:
    if id(module) in _marks and not _backward_hooks(module):
        setattr(*_mark_of(module), _marks.pop(id(module)))


class BoundHook:
    """A hook that belongs to one module and one thread, and is inert everywhere else.

    A model on which it sits may be called from other threads, or be deep-copied: neither reaches ``function``. What
    ``function`` returns is dropped, so that looking never changes an output. Saving the model meanwhile is refused,
    since the file would hold the recording.
    """

    __slots__ = ("_module", "_thread", "function")

    def __init__(self, module: nn.Module, function: Callable[..., object]) -> None:
        self._module = module
        self.function = function
        self._thread = threading.get_ident()

    def __call__(self, module: nn.Module, *arguments: Any) -> Any:
        """Run the function where it belongs, and nothing elsewhere."""
        if module is self._module and threading.get_ident() == self._thread:
            outer, _looking.on = is_looking(), True
            try:
                return self._result(self.function(*arguments))
            finally:
                _looking.on = outer
        return None

    def _result(self, _: object) -> Any:
        return None

    def __deepcopy__(self, memo: dict[int, object]) -> Hook:
        return _inert

    def __reduce__(self) -> str:
        raise HookvizError(
            "hookviz is recording this model: leave the recording's `with` block before saving the model."
        )


class BoundEdit(BoundHook):
    """A bound hook whose function's value takes the place of the output (or of the arguments), as torch has it."""

    __slots__ = ()

    def _result(self, value: object) -> Any:
        return value


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
    _check(kind, options, _OPTIONS)
    names = LayerNames(module)
    chosen: dict[str, list[Hook]] = {}
    for name, given in hooks.items():
        for layer in names.resolve(name):
            chosen.setdefault(layer, []).extend(_as_list(given))
    written = in_place_operation(names.root) if emulate is None and kind.startswith("backward") else ""
    with run_eagerly(), HookHandles() as handles:
        if kind == "tensor" or emulate or written:
            # Imported here because it stands on this module.
            from hookviz.hooks.backward import emulate_on

            for name, functions in chosen.items():
                _warn_of_twins(names[name], name, functions, kind)
            emulate_on(handles, {names[name]: functions for name, functions in chosen.items()}, kind)
            if kind != "tensor":
                handles.emulated = tuple(chosen)
                _say_emulated(kind, written)
        else:
            for name, functions in chosen.items():
                _add_all(handles, names[name], name, functions, kind, options)
        with _explained():
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
    _check(kind, options, _GLOBAL_OPTIONS)
    hooks = _as_list(hook)
    with run_eagerly(), HookHandles() as handles:
        if emulate and kind.startswith("backward"):
            # Imported here because it stands on this module.
            from hookviz.hooks.backward import emulate_globally

            emulate_globally(handles, hooks, kind)
        else:
            for one in hooks:
                handles.add_global(Closable(one) if kind.startswith("backward") else one, kind, **options)
        with _explained():
            yield handles


class Closable:
    """A backward hook that falls silent when its block is left: the graph holds it longer than the module does."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Hook) -> None:
        self.function: Hook | None = function

    def __call__(self, *arguments: Any) -> Any:
        """Call the hook while it is open."""
        return None if self.function is None else self.function(*arguments)


def innermost(hook: Any) -> Any:
    """Give the function a person wrote, below what hookviz and functools wrap around it."""
    while True:
        if isinstance(hook, (BoundHook, Closable)):
            hook = hook.function
        elif isinstance(hook, partial):
            hook = hook.func
        else:
            return hook


def _inert(*_: Any) -> None:
    """What a copy of a model gets in place of a hook bound to the original."""


def _as_list(hooks: Hook | Sequence[Hook]) -> Sequence[Hook]:
    return hooks if isinstance(hooks, Sequence) else [hooks]


def _check(kind: str, options: Mapping[str, bool], known: Mapping[str, tuple[str, ...]]) -> None:
    if kind not in known:
        raise HookvizError(f"no hook kind {kind!r}; choose one of {', '.join(known)}.")
    for option in options:
        if option not in known[kind]:
            takes = " and ".join(known[kind]) or "no options"
            raise HookvizError(f"torch has no option {option!r} for {kind} hooks of this sort; they take {takes}.")


def _add_all(  # noqa: PLR0913, PLR0917  # private: what attach was called with, once more for one layer
    handles: HookHandles,
    layer: nn.Module,
    name: str,
    functions: Sequence[Hook],
    kind: HookKind,
    options: Mapping[str, bool],
) -> None:
    _warn_of_twins(layer, name, functions, kind)
    # Each prepended hook goes before the one prepended last.
    for function in reversed(functions) if options.get("prepend") else functions:
        hook = Closable(function) if kind.startswith("backward") else function
        handles.add(layer, hook, kind, **options)


_DICTS: dict[str, str] = {
    "forward": "_forward_hooks",
    "forward_pre": "_forward_pre_hooks",
    "backward": "_backward_hooks",
    "backward_pre": "_backward_pre_hooks",
}


def _warn_of_twins(layer: nn.Module, name: str, functions: Sequence[Hook], kind: HookKind) -> None:
    """Warn where a function is on the layer already, or is given twice; all of them are registered all the same."""
    here = _place()
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


def _say_emulated(kind: str, written: str) -> None:
    if written:
        warnings.warn(
            f"this network writes in place ({written}), where torch's {kind} hooks raise: hookviz sets hooks on "
            "tensors and graph nodes in their stead, with the same arguments.",
            stacklevel=4,
        )


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if "BackwardHookFunction" in str(error):
            error.add_note("hookviz: an operation writes in place here; attach with emulate=True.")
        raise


def _place() -> str:
    """Where outside this module and contextlib the current call comes from."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _PASSED_THROUGH:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


_PASSED_THROUGH = {__name__, "contextlib", "hookviz.hooks.backward"}
