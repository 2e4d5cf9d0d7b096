"""What a recording holds: runs, in them layers, in them calls. Plain data; nothing here touches a module."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from hookviz.errors import AmbiguousCallError, NotRecordedError, UnknownLayerError
from hookviz.hooks.names import unknown_layer
from hookviz.hooks.structure import map_leaves, tensor_infos
from hookviz.types import TensorInfo

_MISSING = object()
_sorting = threading.Lock()


@dataclass(slots=True)
class Gradients:
    """The gradients that have arrived so far for one value, by the path of their tensor."""

    structure: Any
    """The value's structure, with a TensorInfo in place of every tensor."""
    arrived: dict[str, Any] = field(default_factory=dict)

    def value(self) -> Any:
        """The structure with every tensor's gradient in its place, None where none arrived."""
        return map_leaves(self.structure, TensorInfo, lambda path, _: self.arrived.get(path))


class Call:
    """One call of one layer: what it received, what it returned, and what flowed back.

    ``layer`` is its name; ``index`` counts the layer's calls in this run from 0. ``output_info`` and ``input_info``
    describe the tensors as the module returned and received them, also where a ``keep`` function kept something else.
    ``gradient_note`` says in a sentence why a gradient is missing, ``""`` while none is.
    """

    __slots__ = (
        "_arguments",
        "_grad_arguments",
        "_grad_output",
        "_note",
        "_output",
        "_output_info",
        "index",
        "input_info",
        "layer",
    )

    def __init__(self, layer: str, index: int, output: Any, output_info: tuple[TensorInfo, ...] | None = None) -> None:
        self.layer = layer
        self.index = index
        self.input_info: tuple[TensorInfo, ...] = ()
        self._output = output
        self._output_info = output_info
        self._arguments: Any = _MISSING
        self._grad_output: Gradients | None = None
        self._grad_arguments: Gradients | None = None
        self._note = ""

    def __repr__(self) -> str:
        shapes = ", ".join(f"{info.path or 'output'} {info.shape} {info.dtype}" for info in self.output_info)
        return f"<Call {self.index} of {self.layer!r}: {shapes or 'no tensors'}>"

    @property
    def output(self) -> Any:
        """What the module returned, its structure kept, each tensor as it was at that moment."""
        return self._output

    @property
    def output_info(self) -> tuple[TensorInfo, ...]:
        """The tensors that the module returned, described."""
        if self._output_info is None:  # what is kept are the tensors themselves
            self._output_info = tensor_infos(self._output)
        return self._output_info

    @property
    def input(self) -> tuple[Any, ...]:
        """The positional arguments the module received, each tensor as it was at that moment.

        Raises:
            NotRecordedError: the recording was made without ``inputs=True``.
        """
        return self._received()[0]  # type: ignore[no-any-return]  # a tuple of anything

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments the module received. Raises as ``input`` does."""
        return self._received()[1]  # type: ignore[no-any-return]  # a dict of anything

    @property
    def grad_output(self) -> Any:
        """The total gradient of the output, in the output's structure; None for a tensor that none arrived at.

        Raises:
            NotRecordedError: the recording was made without ``gradients=True``.
        """
        return self._gradients(self._grad_output).value()

    @property
    def grad_input(self) -> tuple[Any, ...]:
        """For each positional argument the share of its gradient that flows back through this call, or None.

        As torch's full backward hook defines it: ``autograd.grad(module(z), z, grad_output)``. An input used elsewhere
        too has a larger total gradient. Raises as ``grad_output`` does.
        """
        return self._gradients(self._grad_arguments).value()[0]  # type: ignore[no-any-return]

    @property
    def grad_kwargs(self) -> dict[str, Any]:
        """The same for the keyword arguments."""
        return self._gradients(self._grad_arguments).value()[1]  # type: ignore[no-any-return]

    @property
    def gradient_note(self) -> str:
        """Why a gradient is missing, in a sentence; ``""`` where the output's has arrived."""
        gradients = self._gradients(self._grad_output)
        if self._note or gradients.arrived:
            return self._note
        return (
            f"no gradient has arrived at {self.layer!r}: run backward inside the `with` block, "
            "from a value that depends on this layer."
        )

    def receive(self, arguments: Any) -> None:
        """Note the ``(args, kwargs)`` of this call."""
        self._arguments = arguments

    def expect_gradients(self, output: Gradients, arguments: Gradients, note: str) -> None:
        """Note where this call's gradients will arrive, or why they will not."""
        self._grad_output = output
        self._grad_arguments = arguments
        self._note = note

    def _received(self) -> Any:
        if self._arguments is _MISSING:
            raise NotRecordedError(f"the inputs of {self.layer!r} were not kept; use record(..., inputs=True).")
        return self._arguments

    def _gradients(self, gradients: Gradients | None) -> Gradients:
        if gradients is None:
            raise NotRecordedError(f"the gradients of {self.layer!r} were not kept; use record(..., gradients=True).")
        return gradients


class LayerCalls(Sequence[Call]):
    """The calls of one layer in one run, in order; of a layer called once, also that call: ``rec["conv1"].output``."""

    __slots__ = ("_calls", "layer")

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self._calls: list[Call] = []

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        if isinstance(index, int) and not -len(self) <= index < len(self):
            times = "once" if len(self) == 1 else f"{len(self)} times"
            raise IndexError(f"layer {self.layer!r} was called {times} in this run; there is no call {index}.")
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    def append(self, call: Call) -> None:
        """Add a call."""
        self._calls.append(call)

    def __repr__(self) -> str:
        return f"<{self.layer!r}: {len(self)} call{'' if len(self) == 1 else 's'}>"

    @property
    def only(self) -> Call:
        """The one call.

        Raises:
            AmbiguousCallError: there were several.
        """
        if len(self) != 1:
            raise AmbiguousCallError(
                f"layer {self.layer!r} was called {len(self)} times in this run: say which call, "
                f"for instance rec[{self.layer!r}][0]."
            )
        return self._calls[0]

    @property
    def output(self) -> Any:
        """The only call's output."""
        return self.only.output

    @property
    def input(self) -> tuple[Any, ...]:
        """The only call's positional arguments."""
        return self.only.input

    @property
    def kwargs(self) -> dict[str, Any]:
        """The only call's keyword arguments."""
        return self.only.kwargs

    @property
    def grad_output(self) -> Any:
        """The only call's output gradient."""
        return self.only.grad_output

    @property
    def grad_input(self) -> tuple[Any, ...]:
        """The only call's input gradients."""
        return self.only.grad_input

    @property
    def grad_kwargs(self) -> dict[str, Any]:
        """The only call's keyword argument gradients."""
        return self.only.grad_kwargs

    @property
    def gradient_note(self) -> str:
        """The only call's note on a missing gradient."""
        return self.only.gradient_note

    @property
    def output_info(self) -> tuple[TensorInfo, ...]:
        """The only call's output tensors, described."""
        return self.only.output_info

    @property
    def input_info(self) -> tuple[TensorInfo, ...]:
        """The only call's input tensors, described."""
        return self.only.input_info


@dataclass(frozen=True, slots=True)
class FailedLayer:
    """Where a forward broke off: the innermost layer that was running, its input, and torch's own error."""

    layer: str
    class_name: str
    input_info: tuple[TensorInfo, ...]
    error: str

    def __str__(self) -> str:
        given = ", ".join(str(info.shape) for info in self.input_info) or "no tensor"
        return f"layer {self.layer!r} ({self.class_name}) failed on an input of shape {given}: {self.error}"


class Run(Mapping[str, LayerCalls]):
    """One call of the recorded network, or of a part of it: its layers in the order in which they first returned.

    ``failed`` is the layer that broke the run off, or None. A part that is called by itself and breaks off before one
    of its layers has returned leaves no run where the block catches the error. Any name of a layer leads to it.
    """

    def __init__(self, chosen: Sequence[str], canonical: Mapping[str, str], network: str) -> None:
        self.failed: FailedLayer | None = None
        self._chosen = chosen
        self._canonical = canonical
        self._network = network
        self.returned: list[tuple[str, Any]] = []
        """Layers that have returned, and their outputs: where a forward leaves them without waiting for more."""
        self._sorted: dict[str, LayerCalls] = {}

    def __getitem__(self, name: str) -> LayerCalls:
        layer = self._canonical.get(name)
        if layer is None:
            raise unknown_layer(name, self._canonical, self._network)
        if layer in self._layers:
            return self._layers[layer]
        if layer in self._chosen:
            raise UnknownLayerError(f"layer {name!r} was not called in this run; .not_called lists all such layers.")
        raise UnknownLayerError(f"layer {name!r} was not recorded; name it in record(module, layers).")

    def __contains__(self, name: object) -> bool:
        return self._canonical.get(name) in self._layers if isinstance(name, str) else False

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    def __repr__(self) -> str:
        return f"<Run: {len(self)} of {len(self._chosen)} layers called>"

    @property
    def not_called(self) -> tuple[str, ...]:
        """The chosen layers that did not run."""
        return tuple(name for name in self._chosen if name not in self._layers)

    def fresh(self) -> Run:
        """An empty run over the same layers."""
        return Run(self._chosen, self._canonical, self._network)

    def new_call(self, layer: str, output: Any, output_info: tuple[TensorInfo, ...] | None = None) -> Call:
        """Add a call of a layer that has just returned.

        ``output_info`` describes the tensors it returned, where others were kept.
        """
        return _add_call(self._layers, layer, output, output_info)

    @property
    def _layers(self) -> dict[str, LayerCalls]:
        if self.returned:
            with _sorting:  # several threads may read, while another is still running the network
                number = len(self.returned)
                for layer, output in self.returned[:number]:
                    _add_call(self._sorted, layer, output, None)
                del self.returned[:number]
        return self._sorted


def _add_call(
    layers: dict[str, LayerCalls], layer: str, output: Any, output_info: tuple[TensorInfo, ...] | None
) -> Call:
    calls = layers.get(layer)
    if calls is None:
        calls = layers[layer] = LayerCalls(layer)
    call = Call(layer, len(calls), output, output_info)
    calls.append(call)
    return call


class Recording(Mapping[str, LayerCalls]):
    """What ``record`` saw: a mapping from layer names to their calls in the last run, in the order of firing.

    ``runs`` holds all runs where they were kept, else the last one. ``not_called`` lists the chosen layers that never
    ran. ``failed`` is the layer at which the last run broke off, or None.
    """

    def __init__(self, chosen: Sequence[str], canonical: Mapping[str, str], network: str, *, keep_runs: bool) -> None:
        self._empty = Run(chosen, canonical, network)
        self._keep_runs = keep_runs
        self._runs: list[Run] = []

    def __getitem__(self, name: str) -> LayerCalls:
        return self.last[name]

    def __contains__(self, name: object) -> bool:
        return name in self.last

    def __iter__(self) -> Iterator[str]:
        return iter(self.last)

    def __len__(self) -> int:
        return len(self.last)

    def __repr__(self) -> str:
        return f"<Recording: {len(self._runs)} run{'' if len(self._runs) == 1 else 's'} kept, {self.last!r}>"

    @property
    def last(self) -> Run:
        """The last run; an empty one before the first."""
        return self._runs[-1] if self._runs else self._empty

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs kept, in order."""
        return tuple(self._runs)

    @property
    def not_called(self) -> tuple[str, ...]:
        """The chosen layers that did not run in the last run (before the first run: all)."""
        return self.last.not_called

    @property
    def failed(self) -> FailedLayer | None:
        """The layer at which the last run broke off."""
        return self.last.failed

    def begin_run(self) -> Run:
        """Start a new run, dropping earlier ones unless they are kept."""
        if not self._keep_runs:
            self._runs.clear()
        self._runs.append(self._empty.fresh())
        return self._runs[-1]
