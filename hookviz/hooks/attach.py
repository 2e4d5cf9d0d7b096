"""Attaching hooks so that they always come off again. The only file that registers hooks on modules.

Torch hands out hook numbers from an unguarded counter, so two threads registering at once can get the same number and
lose a hook; everything here registers under one lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from hookviz.errors import HookvizError
from hookviz.hooks.names import LayerNames

HookKind: TypeAlias = Literal["forward", "forward_pre", "backward", "backward_pre"]
Hook: TypeAlias = Callable[..., Any]

_registering = threading.Lock()
_looking = threading.local()

_REGISTER: dict[str, str] = {
    "forward": "register_forward_hook",
    "forward_pre": "register_forward_pre_hook",
    "backward": "register_full_backward_hook",
    "backward_pre": "register_full_backward_pre_hook",
}


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
        self._backward_flags: list[tuple[nn.Module, bool | None]] = []

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
            self._backward_flags.append((module, module._is_full_backward_hook))
            try:
                self._handles.append(register(hook, **options))
            except RuntimeError as error:
                raise HookvizError(
                    f"torch refuses hooks on this {type(module).__name__} ({error}); pass the original nn.Module, "
                    "not its scripted form."
                ) from error

    def add_to_tensor(self, tensor: Tensor, hook: Callable[[Tensor], Any]) -> None:
        """Register a gradient hook on a tensor that requires grad."""
        with _registering:
            self._handles.append(tensor.register_hook(hook))

    def add_to_node(self, node: Any, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> None:
        """Register ``hook(grad_inputs, grad_outputs)`` on a node of autograd's graph."""
        with _registering:
            self._handles.append(node.register_hook(hook))

    def add_post_accumulate(self, parameter: Tensor, hook: Callable[[Tensor], None]) -> None:
        """Register ``hook(parameter)``, called when ``parameter.grad`` has received a backward pass's gradient."""
        with _registering:
            self._handles.append(parameter.register_post_accumulate_grad_hook(hook))

    def remove(self) -> None:
        """Take every hook off again, last one first."""
        with _registering:
            while self._handles:
                self._handles.pop().remove()
            while self._backward_flags:
                _restore_backward_flag(*self._backward_flags.pop())


def _restore_backward_flag(module: nn.Module, flag: bool | None) -> None:
    """Torch marks a module at its first backward hook and never takes the mark back, which forbids the other kind."""
    if not module._backward_hooks:
        module._is_full_backward_hook = flag


class BoundHook:
    """A hook that belongs to one module and one thread, and is inert everywhere else.

    A model on which it sits may be called from other threads, or be deep-copied: neither reaches ``function``. What
    ``function`` returns is dropped, so that looking never changes an output. Saving the model meanwhile is refused,
    since the file would hold the recording.
    """

    __slots__ = ("_function", "_module", "_thread")

    def __init__(self, module: nn.Module, function: Callable[..., object]) -> None:
        self._module = module
        self._function = function
        self._thread = threading.get_ident()

    def __call__(self, module: nn.Module, *arguments: Any) -> None:
        """Run the function where it belongs, and nothing elsewhere."""
        if module is self._module and threading.get_ident() == self._thread:
            outer, _looking.on = is_looking(), True
            try:
                self._function(*arguments)
            finally:
                _looking.on = outer

    def __deepcopy__(self, memo: dict[int, object]) -> Hook:
        return _inert

    def __reduce__(self) -> str:
        raise HookvizError(
            "hookviz is recording this model: leave the recording's `with` block before saving the model."
        )


def _inert(*_: Any) -> None:
    """What a copy of a model gets in place of a hook bound to the original."""


@contextmanager
def attach(
    module: nn.Module,
    hooks: Mapping[str, Hook | Sequence[Hook]],
    kind: HookKind = "forward",
    **options: bool,
) -> Iterator[HookHandles]:
    """Attach hooks to named layers for the length of a ``with`` block.

    >>> with attach(model, {"conv1": lambda module, args, output: output * 0}):
    ...     model(image)

    Args:
        module: the network; a compiled one stands for its eager original.
        hooks: for each layer name (or glob) one hook or several, run in that order, with torch's own signatures:
            ``hook(module, args, output)`` for ``forward``, ``hook(module, args)`` for ``forward_pre``,
            ``hook(module, grad_input, grad_output)`` for ``backward`` and ``hook(module, grad_output)`` for
            ``backward_pre``. What a hook returns replaces the value, as in torch.
        kind: which of the four.
        options: torch's own for that kind: ``prepend``, ``with_kwargs``, ``always_call``.

    Raises:
        UnknownLayerError: a name that matches no layer; raised before any hook is attached.
        HookvizError: an unknown kind, or a module that torch allows no hooks on.
    """
    names = LayerNames(module)
    chosen = [
        (names[layer], hook)
        for name, given in hooks.items()
        for layer in names.resolve(name)
        for hook in _as_list(given)
    ]
    with HookHandles() as handles:
        for layer, hook in chosen:
            handles.add(layer, hook, kind, **options)
        yield handles


def _as_list(hooks: Hook | Sequence[Hook]) -> Sequence[Hook]:
    return hooks if isinstance(hooks, Sequence) else [hooks]
