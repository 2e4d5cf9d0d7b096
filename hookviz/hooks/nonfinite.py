"""Finding where NaN and Inf begin, without torch's anomaly mode, which is one for the whole process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor, nn

from hookviz.hooks.as_found import backward_from, left_as_found, own_arguments
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.backward import BackwardWatch, Started
from hookviz.hooks.backward_call import Gradients
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.frames import is_backward
from hookviz.hooks.names import LayerNames
from hookviz.hooks.nonfinite_report import Direction, NonfiniteReport, NonfiniteSite, Role
from hookviz.hooks.nonfinite_values import Bad, first_bad


def find_nonfinite(
    module: nn.Module, *args: Any, loss: Callable[[Any], Tensor] | None = None, **kwargs: Any
) -> NonfiniteReport:
    """Run a network once and find where NaN or Inf begins.

    >>> print(find_nonfinite(model, image))
    12 NaN in the forward pass: layer 'layer2.0.conv1' (call 0) makes them of finite values.

    The network runs in its own train/eval mode and on copies of the arguments; afterwards it is as it was: flags,
    ``.grad``, buffers, random state. Integer outputs are always finite; tensors inside tuples, lists, dicts and objects
    are looked at each.

    Args:
        module: the network.
        args: what to call it with.
        loss: a function of the output that gives one number; with it, the gradients of a backward pass are looked at
            too: those of each layer's arguments and of its parameters.
        kwargs: what to call it with.

    Raises:
        GradientError: a loss that is not one number, or that nothing requires a gradient of.
    """
    names = LayerNames(module)
    with left_as_found(names.root, gradients=loss is not None), run_eagerly(), HookHandles() as handles:
        own_args, own_kwargs = own_arguments((args, kwargs))
        finder = _Finder(names, handles, backward=loss is not None)
        finder.install()
        output = names.root(*own_args, **own_kwargs)
        if loss is not None:
            value = loss(output)
            finder.note_loss(output, value)
            backward_from(value)
            finder.note_parameter_gradients()
    parameters = [name for name, tensor in _state(names.root) if first_bad(tensor)]
    return NonfiniteReport(tuple(finder.sites), tuple(parameters))


class _Frame:
    """One call of a layer: what of it was seen to be non-finite."""

    __slots__ = ("call", "given", "given_back", "layer", "parent", "seen", "seen_back", "started")

    def __init__(self, layer: str, call: int, parent: _Frame | None, started: Started | None) -> None:
        self.layer = layer
        self.call = call
        self.parent = parent
        self.started = started
        self.given = self.seen = False
        """Forwards: bad arguments; something bad inside."""
        self.given_back = self.seen_back = False
        """Backwards: bad gradients of the output; something bad inside."""


class _Finder:
    def __init__(self, names: LayerNames, handles: HookHandles, *, backward: bool) -> None:
        self.sites: list[NonfiniteSite] = []
        self._names = names
        self._handles = handles
        self._watch = BackwardWatch(handles) if backward else None
        self._running: list[_Frame] = []
        self._frames: list[_Frame] = []
        self._calls: Counter[str] = Counter()

    def install(self) -> None:
        for name, module in self._names.items():
            enter, leave = partial(self._enter, name), partial(self._leave, name)
            self._handles.add(module, BoundHook(module, enter), "forward_pre", with_kwargs=True)
            self._handles.add(module, BoundHook(module, leave), "forward")

    def _enter(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if is_backward():
            return  # a checkpoint recomputes what was seen before
        parent = self._running[-1] if self._running else None
        frame = _Frame(name, self._calls[name], parent, self._watch.before(args) if self._watch else None)
        self._calls[name] += 1
        self._running.append(frame)
        bad = first_bad(args) or first_bad(kwargs)
        if bad is None:
            return
        frame.given = True
        if parent is None:
            self._add("forward", "input", frame, bad)
        elif not (parent.given or parent.seen):
            self._add("forward", "producer", parent, bad, before=name)
        if parent is not None:
            parent.seen = True

    def _leave(self, name: str, _: tuple[Any, ...], output: Any) -> None:
        if is_backward():
            return
        frame = self._running.pop()
        while frame.layer != name:  # a call that failed, and was caught further out
            frame = self._running.pop()
        bad = first_bad(output)
        if bad is not None:
            self._judge(frame, bad)
        if frame.parent is not None:
            frame.parent.seen |= frame.seen or bad is not None
        if self._watch and frame.started:
            self._frames.append(frame)
            self._watch.after(
                frame.started, output, partial(self._output_arrived, frame), partial(self._input_arrived, frame)
            )
            frame.started = None

    def _judge(self, frame: _Frame, bad: Bad) -> None:
        if frame.given or frame.seen:
            self._add("forward", "passed_on", frame, bad)
            return
        inside = ((name, tensor) for name, tensor in _state(self._names[frame.layer]) if first_bad(tensor))
        parameter = next((".".join(filter(None, (frame.layer, name))) for name, _ in inside), "")
        self._add("forward", "parameter" if parameter else "producer", frame, bad, parameter=parameter)

    def note_loss(self, output: Any, value: Any) -> None:
        """Look at what the loss made of the output."""
        bad = first_bad(value)
        if bad is not None:
            self._add("forward", "passed_on" if first_bad(output) else "loss", _Frame("", 0, None, None), bad)

    def _output_arrived(self, frame: _Frame, grad_output: Gradients) -> None:
        bad = first_bad(grad_output)
        if bad is None:
            return
        frame.given_back, parent = True, frame.parent
        if parent is None:
            self._add("backward", "loss", frame, bad)
        elif not (parent.given_back or parent.seen_back):
            self._add("backward", "producer", parent, bad, before=frame.layer)
        for outer in _outwards(parent):
            outer.seen_back = True

    def _input_arrived(self, frame: _Frame, grad_input: Gradients, _: Gradients) -> None:
        bad = first_bad(grad_input)
        if bad is None:
            return
        passed_on = frame.given_back or frame.seen_back
        self._add("backward", "passed_on" if passed_on else "producer", frame, bad)
        frame.seen_back = True
        for outer in _outwards(frame.parent):
            outer.seen_back = True

    def note_parameter_gradients(self) -> None:
        """Find layers that were given finite gradients and made none but finite ones, but for their parameters."""
        for frame in reversed(self._frames):
            for name, parameter in self._names[frame.layer].named_parameters(recurse=False):
                bad = None if parameter.grad is None else first_bad(parameter.grad)
                if bad is not None:
                    role: Role = "passed_on" if frame.given_back or frame.seen_back else "producer"
                    self._add("backward", role, frame, (name, *bad[1:]))

    def _add(self, direction: Direction, role: Role, frame: _Frame, bad: Bad, **names: str) -> None:
        site = NonfiniteSite(direction, role, frame.layer, frame.call, *bad)
        self.sites.append(replace(site, **names))  # type: ignore[arg-type]  # the fields that are strings


def _outwards(frame: _Frame | None) -> Iterator[_Frame]:
    while frame is not None:
        yield frame
        frame = frame.parent


def _state(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()
