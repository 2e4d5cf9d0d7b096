"""Backward hooks of one's own that are set on tensors and graph nodes."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import HookHandles
from hookviz.hooks.backward import BackwardWatch, Started
from hookviz.hooks.backward_call import Gradients
from hookviz.hooks.frames import is_backward
from hookviz.hooks.hook_kinds import Hook, HookKind
from hookviz.hooks.structure import leaves


class EmulatedHook:
    """A forward hook that sets the backward hooks of one call; ``kind`` and ``functions`` say which."""

    def __init__(self, kind: str, functions: Sequence[Hook], watch: BackwardWatch, handles: HookHandles) -> None:
        self.kind = kind
        self.functions = tuple(functions)
        self._watch = watch
        self._handles = handles
        self._started: dict[tuple[int, nn.Module], list[Started]] = defaultdict(list)

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Note a call's inputs."""
        if not is_backward():
            self._started[threading.get_ident(), module].append(self._watch.before(args))

    def __call__(self, module: nn.Module, _: tuple[Any, ...], output: Any) -> None:
        """Set the hooks on what a call returned; ``None`` where it failed."""
        if is_backward():
            return
        started = self._started[threading.get_ident(), module].pop()
        if not self._started[threading.get_ident(), module]:
            del self._started[threading.get_ident(), module]
        if self.kind == "tensor":
            self._hook_tensors(output)
        elif self.kind == "backward_pre":
            self._watch.after(started, output, partial(self._replace, module), lambda *_: None)
        else:
            self._watch.after(started, output, lambda _: None, partial(self._replace, module))

    def _hook_tensors(self, output: Any) -> None:
        for _, tensor in leaves(output, Tensor):
            for function in self.functions if tensor.requires_grad else ():
                self._handles.add_to_tensor(tensor, function)

    def _replace(self, module: nn.Module, gradients: Gradients, *others: Gradients) -> Gradients | None:
        replaced = None
        for function in self.functions:
            answer = function(module, gradients, *others)
            if answer is not None:
                replaced = (answer,) if isinstance(answer, Tensor) else tuple(answer)
                if len(replaced) != len(gradients):
                    raise HookvizError(f"a backward hook returned {len(replaced)} gradients for {len(gradients)}.")
                gradients = replaced
        return replaced


class Before:
    """The forward pre-hook that goes with an emulated hook; no hook of its own to a reader."""

    def __init__(self, emulated: EmulatedHook) -> None:
        self.emulated = emulated

    def __call__(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        """Let the emulated hook note the inputs."""
        self.emulated.before(module, args)


def emulate_on(handles: HookHandles, hooks: Mapping[nn.Module, Sequence[Hook]], kind: HookKind) -> None:
    """Put backward or tensor hooks on modules without wrapping anything."""
    watch = BackwardWatch(handles)
    for module, functions in hooks.items():
        emulated = EmulatedHook(kind, functions, watch, handles)
        handles.add(module, Before(emulated), "forward_pre")
        handles.add(module, emulated, "forward", always_call=True)


def emulate_globally(handles: HookHandles, hooks: Sequence[Hook], kind: str) -> None:
    """Put backward hooks on every module of the process without wrapping anything."""
    emulated = EmulatedHook(kind, hooks, BackwardWatch(handles), handles)
    handles.add_global(Before(emulated), "forward_pre")
    handles.add_global(emulated, "forward", always_call=True)
