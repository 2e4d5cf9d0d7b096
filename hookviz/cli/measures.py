"""What layers' outputs are like, measured while the network runs, so that no output need be held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.channels import channel_statistics
from hookviz.cli.subject import Subject, forward_in_words
from hookviz.describe import constant_channels, dead_channels
from hookviz.errors import HookvizError
from hookviz.hooks import Call, attach, private_copy, record_operations
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.structure import each_tensor, leaves, map_leaves, tensor_infos
from hookviz.known_layouts import known_layout, layouts_by_shape
from hookviz.layout import arrange
from hookviz.statistics import summarize
from hookviz.types import ChannelStatistics, LayerInfo, Layout, Summary


@dataclass(frozen=True, slots=True)
class Measures:
    """One tensor of one call, which counts from 1.

    ``channels``, ``constant`` and ``dead`` count channels as the layer's axes are read; None where they cannot be read,
    or it says nothing.
    """

    layer: LayerInfo
    call: int
    part: str
    shape: tuple[int, ...]
    summary: Summary
    channels: int | None
    constant: int | None
    dead: int | None


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is kept of a tensor."""

    shape: tuple[int, ...]
    summary: Summary
    statistics: ChannelStatistics | None


def measure(subject: Subject, layers: Sequence[LayerInfo]) -> list[Measures]:
    """Run the network once, and measure what layers and operations return, in the order given.

    Raises:
        HookvizError: the forward failed.
    """
    private = private_copy(subject.model.module).eval()
    readings: dict[str, list[Any]] = {info.name: [] for info in layers if not info.is_operation}
    operations = [info for info in layers if info.is_operation]
    # Hooks of our own in place of record's keep, which is not told whose tensor it sees, and so not how to read it.
    hooks = {info.name: partial(_read_call, info, readings[info.name]) for info in layers if not info.is_operation}
    names = [info.name for info in operations]
    with (
        forward_in_words(subject.model.name),
        random_state_kept(private),
        torch.no_grad(),
        attach(private, hooks),
        record_operations(private, names, keep=partial(_read_by_shape, layouts_by_shape(operations))) as seen,
    ):
        private(*each_tensor(subject.inputs, Tensor.clone))
    readings |= {name: [call.output for call in calls] for name, calls in seen.items()}
    return [measures for info in layers for measures in _rows(info, readings.get(info.name, []))]


def _read_call(info: LayerInfo, calls: list[Any], _: nn.Module, __: Any, output: Any) -> None:
    call = Call(info.name, len(calls), None, tensor_infos(output))
    calls.append(map_leaves(output, Tensor, lambda path, tensor: _read(tensor, known_layout(info, call, path))))


def _read_by_shape(layouts: dict[tuple[int, ...], Layout], tensor: Tensor) -> _Reading:
    return _read(tensor, layouts.get(tuple(tensor.shape)))


def _read(tensor: Tensor, layout: Layout | None) -> _Reading:
    return _Reading(tuple(tensor.shape), summarize(tensor, bins=1), _channels(tensor, layout))


def _channels(tensor: Tensor, layout: Layout | None) -> ChannelStatistics | None:
    name, grid = (layout.name, layout.grid) if layout else ("auto", None)
    try:
        return channel_statistics(arrange(tensor, name, grid).values)
    except HookvizError:  # axes that nothing is known of
        return None


def _rows(info: LayerInfo, calls: Sequence[Any]) -> Iterator[Measures]:
    for number, output in enumerate(calls, 1):
        for part, reading in leaves(output, _Reading):
            known = reading.statistics
            yield Measures(
                layer=info,
                call=number,
                part=part,
                shape=reading.shape,
                summary=reading.summary,
                channels=None if known is None else len(known.mean),
                constant=None if known is None else constant_channels(known),
                dead=None if known is None else dead_channels(known, info.class_name),
            )
