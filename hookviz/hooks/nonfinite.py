"""Finding where NaN and Inf begin, without torch's anomaly mode, which is one for the whole process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.hooks.as_found import backward_from, left_as_found, own_arguments
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.backward import BackwardWatch, Gradients, Started
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.gradient_capture import is_backward
from hookviz.hooks.names import LayerNames
from hookviz.hooks.structure import leaves

Direction: TypeAlias = Literal["forward", "backward"]
Role: TypeAlias = Literal["input", "parameter", "producer", "loss", "passed_on"]


@dataclass(frozen=True, slots=True)
class NonfiniteSite:
    """A tensor that holds NaN or Inf, and what its layer has to do with that.

    ``role`` is ``producer`` for a layer that was given finite values only, and whose parameters are finite;
    ``parameter`` where one of them is not, named in ``parameter``; ``input`` for what the network was called with;
    ``loss`` for what the loss made of finite values; ``passed_on`` for a layer that was given non-finite values, or
    that contains the one that made them. ``path`` says where in the output the tensor sits (for ``input``, among the
    arguments; backwards, among the gradients of the arguments, or the name of a parameter). ``before`` is the layer
    that was given the values, where the producer made them in its own ``forward`` between other layers.
    """

    direction: Direction
    role: Role
    layer: str
    call: int
    path: str
    nan: int
    posinf: int
    neginf: int
    parameter: str = ""
    before: str = ""

    def __str__(self) -> str:
        counts = {"NaN": self.nan, "Inf": self.posinf, "-Inf": self.neginf}
        what = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        layer = f"layer {self.layer!r} (call {self.call})" if self.layer else f"the network itself (call {self.call})"
        where = "the backward pass" if self.direction == "backward" else "the forward pass"
        who = {
            "input": f"argument {self.path!r} of the network holds them",
            "parameter": f"parameter {self.parameter!r} of {layer} holds them",
            "producer": f"{layer} makes them of finite values{f', before {self.before!r}' if self.before else ''}",
            "loss": "the loss makes them of finite values",
            "passed_on": f"{layer} passes them on",
        }[self.role]
        return f"{what} in {where}: {who}."


@dataclass(frozen=True, slots=True)
class NonfiniteReport:
    """Every place where NaN or Inf was seen, in the order of the run; false where there is none.

    ``parameters`` names all parameters and buffers that hold some, whether or not that showed.
    """

    sites: tuple[NonfiniteSite, ...]
    parameters: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sites)

    @property
    def first(self) -> NonfiniteSite | None:
        """Where it began: the first site that did not merely pass it on."""
        return next((site for site in self.sites if site.role != "passed_on"), None)

    @property
    def forward(self) -> NonfiniteSite | None:
        """Where it began in the forward pass."""
        return next((one for one in self.sites if one.role != "passed_on" and one.direction == "forward"), None)

    @property
    def backward(self) -> NonfiniteSite | None:
        """Where it began in the backward pass."""
        return next((one for one in self.sites if one.role != "passed_on" and one.direction == "backward"), None)

    def __str__(self) -> str:
        if self.first:
            return str(self.first)
        unused = f" (but there are in {', '.join(self.parameters)}, which did not show)" if self.parameters else ""
        return f"every value was finite{unused}."


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
    parameters = [name for name, tensor in _state(names.root) if _first_bad(tensor)]
    return NonfiniteReport(tuple(finder.sites), tuple(parameters))


_Bad: TypeAlias = "tuple[str, int, int, int]"
"""The path of a tensor, and how many NaN, +Inf and -Inf it holds."""


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
        bad = _first_bad(args) or _first_bad(kwargs)
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
        bad = _first_bad(output)
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

    def _judge(self, frame: _Frame, bad: _Bad) -> None:
        if frame.given or frame.seen:
            self._add("forward", "passed_on", frame, bad)
            return
        inside = ((name, tensor) for name, tensor in _state(self._names[frame.layer]) if _first_bad(tensor))
        parameter = next((".".join(filter(None, (frame.layer, name))) for name, _ in inside), "")
        self._add("forward", "parameter" if parameter else "producer", frame, bad, parameter=parameter)

    def note_loss(self, output: Any, value: Any) -> None:
        """Look at what the loss made of the output."""
        bad = _first_bad(value)
        if bad is not None:
            self._add("forward", "passed_on" if _first_bad(output) else "loss", _Frame("", 0, None, None), bad)

    def _output_arrived(self, frame: _Frame, grad_output: Gradients) -> None:
        bad = _first_bad(grad_output)
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
        bad = _first_bad(grad_input)
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
                bad = None if parameter.grad is None else _first_bad(parameter.grad)
                if bad is not None:
                    role: Role = "passed_on" if frame.given_back or frame.seen_back else "producer"
                    self._add("backward", role, frame, (name, *bad[1:]))

    def _add(self, direction: Direction, role: Role, frame: _Frame, bad: _Bad, **names: str) -> None:
        site = NonfiniteSite(direction, role, frame.layer, frame.call, *bad)
        self.sites.append(replace(site, **names))  # type: ignore[arg-type]  # the fields that are strings


def _outwards(frame: _Frame | None) -> Iterator[_Frame]:
    while frame is not None:
        yield frame
        frame = frame.parent


def _state(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters()
    yield from module.named_buffers()


def _first_bad(value: Any) -> _Bad | None:
    """The first tensor in a structure that holds NaN or Inf."""
    for path, tensor in leaves(value, Tensor):
        values = _numbers(tensor)
        if values is not None and not bool(values.isfinite().all()):
            return path, int(values.isnan().sum()), int(values.isposinf().sum()), int(values.isneginf().sum())
    return None


def _numbers(tensor: Tensor) -> Tensor | None:
    """The floating-point numbers a tensor stores; None where it has none, or none that could be anything but finite."""
    tensor = tensor.detach()
    if tensor.is_meta or tensor.is_quantized or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    if tensor.is_nested:
        return torch.cat([part.flatten() for part in tensor.unbind()])
    if tensor.is_mkldnn:
        tensor = tensor.to_dense()
    elif tensor.layout is not torch.strided:
        tensor = tensor.coalesce().values() if tensor.is_sparse else tensor.values()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    return tensor.float() if tensor.element_size() == 1 else tensor  # float8 has hardly any operations
