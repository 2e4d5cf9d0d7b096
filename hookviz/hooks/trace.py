"""The order in which the hooks of a network fire."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TextIO, TypeAlias

from torch import Tensor, nn

from hookviz.hooks.as_found import backward_from, left_as_found, own_arguments
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.backward import BackwardWatch, Started
from hookviz.hooks.backward_call import Gradients
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import leaves, tensor_infos
from hookviz.types import TensorInfo

FiringKind: TypeAlias = Literal["forward_pre", "forward", "backward_pre", "backward"]


@dataclass(frozen=True, slots=True)
class Firing:
    """One hook that fired.

    ``order`` counts all firings from 0, ``call`` the calls of this layer from 0. ``tensors`` are what the hook is
    shown: the arguments (``forward_pre``), the output (``forward``), the gradients of the output (``backward_pre``) or
    of the arguments (``backward``; those that need none are left out). ``bytes`` is what they hold together.
    ``microseconds`` is when it fired, counted from the start of the forward; a GPU computes behind that clock.
    ``recomputed`` marks a forward that a checkpoint runs again in the middle of backward.
    """

    order: int
    kind: FiringKind
    layer: str
    call: int
    tensors: tuple[TensorInfo, ...]
    bytes: int
    microseconds: float
    recomputed: bool = False

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of every tensor."""
        return tuple(info.shape for info in self.tensors)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtype of every tensor, without torch's prefix."""
        return tuple(info.dtype for info in self.tensors)


def trace(module: nn.Module, *args: Any, loss: Callable[[Any], Tensor] | None = None, **kwargs: Any) -> list[Firing]:
    """Run a network once and list every hook of every layer that fires, in order.

    >>> [(firing.kind, firing.layer) for firing in trace(model, image, loss=lambda output: output.sum())]

    The order is that of torch's own hooks; the backward ones are set on tensors and graph nodes, and so fire also where
    torch's full backward hooks raise, and for outputs in dicts and lists. An output that the loss does not use gets no
    gradient, where torch's wrapper sends zeros. The network runs in its own train/eval mode and on copies of the
    arguments; afterwards it is as it was: flags, ``.grad``, buffers, random state.

    Args:
        module: the network.
        args: what to call it with.
        loss: a function of the output that gives one number; with it, a backward pass is run too.
        kwargs: what to call it with.

    Raises:
        GradientError: a loss that is not one number, or that nothing requires a gradient of.
    """
    names = LayerNames(module)
    firings: list[Firing] = []
    with left_as_found(names.root, gradients=loss is not None), run_eagerly(), HookHandles() as handles:
        own_args, own_kwargs = own_arguments((args, kwargs))
        _Tracer(handles, firings.append, backward=loss is not None).install(names)
        output = names.root(*own_args, **own_kwargs)
        if loss is not None:
            backward_from(loss(output))
    return firings


@contextmanager
def debug(module: nn.Module, stream: TextIO | None = None) -> Iterator[None]:
    """Print one line for every hook that fires while the network runs inside the block.

    >>> with debug(model):
    ...     model(image).sum().backward()
       0 forward_pre  (network)        call 0  1x3x224x224 float32

    Args:
        module: the network; only calls of the thread that opened the block are printed.
        stream: where to, standard output by default.
    """
    names = LayerNames(module)
    target = stream or sys.stdout
    width = max(len(name) for name in [*names, _ROOT])
    with run_eagerly(), HookHandles() as handles:
        _Tracer(handles, lambda firing: target.write(_line(firing, width) + "\n"), backward=True).install(names)
        yield


_ROOT = "(network)"


def _line(firing: Firing, width: int) -> str:
    shown = ", ".join(f"{'x'.join(map(str, info.shape)) or 'scalar'} {info.dtype}" for info in firing.tensors)
    return (
        f"{firing.order:4d} {firing.kind:<12} {firing.layer or _ROOT:<{width}}  call {firing.call}  "
        f"{shown or 'no tensors'}"
    )


class _Tracer:
    """The hooks of one trace; tells ``tell`` of every firing."""

    def __init__(self, handles: HookHandles, tell: Callable[[Firing], object], *, backward: bool) -> None:
        self._handles = handles
        self._tell = tell
        self._watch = BackwardWatch(handles) if backward else None
        self._order = 0
        self._calls: Counter[str] = Counter()
        self._running: list[tuple[str, int, Started | None]] = []
        self._began = time.perf_counter_ns()

    def install(self, names: LayerNames) -> None:
        for name, module in names.items():
            enter, leave = partial(self._enter, name), partial(self._leave, name)
            self._handles.add(module, BoundHook(module, enter), "forward_pre", with_kwargs=True)
            self._handles.add(module, BoundHook(module, leave), "forward")
        self._began = time.perf_counter_ns()

    def _enter(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call = self._calls[name]
        self._calls[name] += 1
        self._fire("forward_pre", name, call, (*args, *kwargs.values()))
        self._running.append((name, call, self._watch.before(args) if self._watch else None))

    def _leave(self, name: str, _: tuple[Any, ...], output: Any) -> None:
        entered, call, started = self._running.pop()
        while entered != name:  # a call that failed, and was caught further out
            entered, call, started = self._running.pop()
        self._fire("forward", name, call, output)
        if self._watch and started:
            self._watch.after(
                started, output, partial(self._output_arrived, name, call), partial(self._input_arrived, name, call)
            )

    def _output_arrived(self, name: str, call: int, grad_output: Gradients) -> None:
        self._fire("backward_pre", name, call, grad_output)

    def _input_arrived(self, name: str, call: int, grad_input: Gradients, _: Gradients) -> None:
        self._fire("backward", name, call, grad_input)

    def _fire(self, kind: FiringKind, name: str, call: int, value: Any) -> None:
        elapsed = (time.perf_counter_ns() - self._began) / 1000
        size = sum(_bytes(tensor) for _, tensor in leaves(value, Tensor))
        recomputed = kind.startswith("forward") and is_backward()
        self._tell(Firing(self._order, kind, name, call, tensor_infos(value), size, elapsed, recomputed))
        self._order += 1


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()
