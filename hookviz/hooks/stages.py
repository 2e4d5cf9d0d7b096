"""The stages of a network: what it computes at one resolution before it goes on to the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from hookviz.types import LayerInfo, Layout, TensorInfo

MapSize: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Stage:
    """Layers without parts of their own that return maps of one size, in the order of listing."""

    height: int
    width: int
    layers: tuple[str, ...]


def map_size(info: LayerInfo) -> MapSize | None:
    """Height and width of the maps a layer returns; None where they differ from call to call or have one position.

    Channels may come first or last, and tokens count as the grid of patches that they are. Windows and attention
    are no maps of the image.
    """
    if info.is_operation:
        return None
    sizes = {_size(call, layout) for call, layout in zip(info.outputs, info.layouts, strict=False)}
    return sizes.pop() if len(sizes) == 1 else None


def _size(call: Sequence[TensorInfo], layout: Layout | None) -> MapSize | None:
    if layout is None or layout.note:
        return None
    shape = call[0].shape
    size = {"NCHW": shape[2:], "NHWC": shape[1:3]}.get(layout.name, layout.grid or ())
    return (size[0], size[1]) if math.prod(size) > 1 else None


def without_parts(layers: Sequence[LayerInfo]) -> list[LayerInfo]:
    """The modules that contain no others."""
    modules = [info for info in layers if not info.is_operation]
    containers = {info.name.rpartition(".")[0] for info in modules if info.name}
    return [info for info in modules if info.name not in containers]


def stages(layers: Sequence[LayerInfo]) -> list[Stage]:
    """The stages of a network, in order; a decoder that comes back to a resolution begins a new one.

    Where at least three convolutions ran in a stage, its layers are these. ``layers`` is what ``list_layers`` gave for
    one input.
    """
    mapped = [(size, info) for info in without_parts(layers) if (size := map_size(info)) is not None]
    runs = [(size, [info for _, info in run]) for size, run in groupby(mapped, key=lambda pair: pair[0])]
    return [Stage(*size, _telling(infos)) for size, infos in _untangled(runs)]


def _telling(infos: Sequence[LayerInfo]) -> tuple[str, ...]:
    convolutions = [info.name for info in infos if "Conv" in info.class_name]
    return tuple(convolutions if len(convolutions) >= 3 else [info.name for info in infos])


Run: TypeAlias = "tuple[MapSize, list[LayerInfo]]"


def _untangled(runs: Sequence[Run]) -> list[Run]:
    """Put together what branches of one block list in turn: 56, 28, 56, 28 becomes 56, 28."""
    result: list[Run] = []
    for number, (size, infos) in enumerate(runs):
        if result and result[-1][0] == size:
            result[-1][1].extend(infos)
        elif len(result) >= 2 and result[-2][0] == size and _are_branches(runs[number - 1 : number + 2]):
            result[-2][1].extend(infos)
        else:
            result.append((size, list(infos)))
    return result


def _are_branches(runs: Sequence[Run]) -> bool:
    """Whether three runs change the resolution and change it back inside one block."""
    if len(runs) < 3 or runs[0][0] != runs[2][0]:
        return False
    return len({infos[0].name.partition(".")[0] for _, infos in runs}) == 1
