"""Every layer of a network over a stream of images, measured while it runs, in constant memory."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.errors import LayoutError
from hookviz.hooks import Call, HookHandles, record_operations
from hookviz.hooks.attach import BoundHook
from hookviz.hooks.frames import is_backward
from hookviz.hooks.structure import leaves, tensor_infos
from hookviz.known_layouts import known_layout, layouts_by_shape
from hookviz.numeric import dense, real
from hookviz.sanity.activations import activation_ends
from hookviz.sanity.channel_tally import ChannelTally, by_channel
from hookviz.statistics import RunningSummary
from hookviz.types import LayerInfo, Layout

BATCH_NORM = nn.modules.batchnorm._BatchNorm


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a tensor comes from: a layer, which of its calls, from 0, and where in what it returned."""

    layer: str
    call: int
    path: str


@dataclass(slots=True)
class Power:
    """How large values are: their sum of squares and their number, over the finite ones."""

    squares: float = 0.0
    count: int = 0

    def add(self, tensor: Tensor) -> None:
        """Take in all finite values of a tensor."""
        wide = real(dense(tensor.detach())).double()
        finite = wide if bool(torch.isfinite(wide).all()) else wide[torch.isfinite(wide)]
        self.squares += float(finite.square().sum())
        self.count += finite.numel()

    def merge(self, other: Power) -> None:
        """Take in what another one has seen."""
        self.squares += other.squares
        self.count += other.count

    @property
    def root_mean_square(self) -> float:
        """0.0 where nothing was seen."""
        return float(np.sqrt(self.squares / self.count)) if self.count else 0.0


@dataclass(slots=True)
class LayerTally:
    """One tensor that one call of a layer returned, over all images.

    ``channels`` is None where its axes name no channels. ``incoming`` measures what came into a layer with weights, and
    ``incoming_channels`` has the channels of what came into a batch norm.
    """

    summary: RunningSummary = field(default_factory=RunningSummary)
    channels: ChannelTally | None = None
    incoming: Power = field(default_factory=Power)
    incoming_channels: ChannelTally | None = None
    shape: tuple[int, ...] = ()

    def add(self, tensor: Tensor, layout: Layout | None, ends: tuple[float, float] | None) -> None:
        """Take in one image."""
        self.summary.update(tensor)
        self.shape = tuple(tensor.shape)
        rows = _rows(tensor, layout)
        self.channels = _both(self.channels, None if rows is None else ChannelTally.of(rows, ends))

    def merge(self, other: LayerTally) -> None:
        """Take in the images that another tally has seen."""
        self.summary.merge(other.summary)
        self.incoming.merge(other.incoming)
        self.shape = other.shape
        self.channels = _both(self.channels, other.channels)
        self.incoming_channels = _both(self.incoming_channels, other.incoming_channels)

    @property
    def gain(self) -> float | None:
        """How many times as large as what came in what goes out is; None where nothing but zeros came in."""
        came = self.incoming.root_mean_square
        return self.summary.root_mean_square / came if came and self.summary.finite else None


class LayerStream:
    """Measures what layers return, image after image.

    ``layers`` are the leaves of the network and those with parameters of their own, ``operations`` its functional
    activations; both as one forward found them. Every image must have the same calls; a tensor whose channels change
    their number is counted without them.
    """

    def __init__(self, layers: Sequence[LayerInfo], operations: Sequence[LayerInfo]) -> None:
        self.tallies: dict[Place, LayerTally] = {}
        self.images = 0
        self._layers = {info.name: info for info in layers}
        self._operations = {info.name: info for info in operations}
        self._layouts = layouts_by_shape(operations)

    def info(self, layer: str) -> LayerInfo:
        """What is known of a layer or operation."""
        return self._layers.get(layer) or self._operations[layer]

    @contextmanager
    def watching(self, private: nn.Module) -> Iterator[None]:
        """Measure the one forward of a private copy that runs inside the block; one that fails counts for nothing."""
        watch = _Watch(self._layers, self._layouts)
        with HookHandles() as handles:
            watch.install(private, handles)
            with record_operations(private, list(self._operations), keep=watch.read_operation) as seen:
                yield
        for name, found in seen.items():
            for number, call in enumerate(found):
                watch.places |= {id(one): Place(name, number, path) for path, one in leaves(call.output, LayerTally)}
        for tally in watch.in_order:
            place = watch.places.get(id(tally))
            if place in self.tallies:
                self.tallies[place].merge(tally)
            elif place is not None:
                self.tallies[place] = tally
        self.images += 1


class _Watch:
    """The hooks of one forward, and what they measured, in the order in which layers and operations returned.

    ``places`` says by its id where each tally is from; of operations that is known only when the forward has ended.
    """

    def __init__(self, layers: Mapping[str, LayerInfo], layouts: Mapping[tuple[int, ...], Layout]) -> None:
        self.in_order: list[LayerTally] = []
        self.places: dict[int, Place] = {}
        self._last: tuple[Tensor, int, LayerTally] | None = None
        self._entered: dict[Place, LayerTally] = {}
        self._layers = layers
        self._layouts = layouts
        self._calls = dict.fromkeys(layers, 0)

    def install(self, private: nn.Module, handles: HookHandles) -> None:
        for name, info in self._layers.items():
            module = private.get_submodule(name)
            if _measures_incoming(module):
                handles.add(module, BoundHook(module, partial(self._enter, name, module)), "forward_pre")
            handles.add(module, BoundHook(module, partial(self._leave, info, module)), "forward")

    def _enter(self, name: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        given = next((value for _, value in leaves(args, Tensor)), None)
        if is_backward() or given is None:
            return
        tally = self._entered[Place(name, self._calls[name], "")] = LayerTally()
        known = self._measured(given)
        if known is None:
            tally.incoming.add(given)
        else:
            tally.incoming = Power(known.summary.root_mean_square**2 * known.summary.finite, known.summary.finite)
        if isinstance(module, BATCH_NORM) and given.ndim >= 2 and given.numel():
            same = known.channels if known is not None and len(known.channels or ()) == given.shape[1] else None
            rows = given.detach().movedim(1, 0).flatten(1)
            tally.incoming_channels = ChannelTally.of(rows) if same is None else copy.deepcopy(same)

    def _measured(self, given: Tensor) -> LayerTally | None:
        """The tally of the tensor that was measured last, where it is this one and nobody wrote into it since."""
        if self._last is None or self._last[0] is not given or self._last[1] != given._version:
            return None
        return self._last[2]

    def _leave(self, info: LayerInfo, module: nn.Module, _: tuple[Any, ...], output: Any) -> None:
        if is_backward():
            return
        number = self._calls[info.name]
        self._calls[info.name] += 1
        call = Call(info.name, number, None, tensor_infos(output))
        ends = activation_ends(module)
        for path, tensor in leaves(output, Tensor):
            place = Place(info.name, number, path)
            tally = self._entered.get(place) or LayerTally()
            tally.add(tensor, known_layout(info, call, path), ends)
            self.places[id(tally)] = place
            self.in_order.append(tally)
            self._last = None if tensor.is_inference() else (tensor, tensor._version, tally)

    def read_operation(self, tensor: Tensor) -> LayerTally:
        """What is kept of what an operation returned."""
        tally = LayerTally()
        tally.add(tensor, self._layouts.get(tuple(tensor.shape)), None)
        self.in_order.append(tally)
        return tally


def _measures_incoming(module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    return isinstance(module, BATCH_NORM) or (isinstance(weight, Tensor) and weight.ndim >= 2)


def _rows(tensor: Tensor, layout: Layout | None) -> Tensor | None:
    if layout is None:
        return None
    try:
        return by_channel(tensor, layout.name)
    except LayoutError:
        return None


def _both(tally: ChannelTally | None, other: ChannelTally | None) -> ChannelTally | None:
    """One after the other; where the number of channels changes from image to image, those seen first."""
    if tally is None or other is None:
        return other if tally is None else tally
    if len(tally.values) == len(other.values):
        tally.merge(other)
    return tally
