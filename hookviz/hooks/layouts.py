"""How to read the axes of layers' outputs, from what the layers are rather than from shapes alone.

A shape cannot tell channels-first from channels-last. Modules can: a Conv2d returns NCHW, a Linear works on the last
axis. What says nothing by itself (a Dropout, a container) is read like the last tensor of the same shape that a telling
module returned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from torch import nn

from hookviz.hooks.names import LayerNames
from hookviz.hooks.recording import Recording
from hookviz.types import Layout

Shape: TypeAlias = "tuple[int, ...]"

_CHANNELS_FIRST = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._NormBase,
    nn.modules.pooling._MaxPoolNd,
    nn.modules.pooling._AvgPoolNd,
    nn.modules.pooling._AdaptiveAvgPoolNd,
    nn.modules.pooling._AdaptiveMaxPoolNd,
    nn.GroupNorm,
    nn.Upsample,
    nn.PixelShuffle,
    nn.PixelUnshuffle,
)
_CHANNELS_LAST = (nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Embedding)
_FIRST = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
_LAST = {3: "NLC", 4: "NHWC", 5: "NDHWC"}
_ALWAYS = {0: "scalar", 1: "C", 2: "NC"}
_PERMUTED = {(0, 2, 3, 1): "NHWC", (0, 3, 1, 2): "NCHW", (0, 2, 3, 4, 1): "NDHWC", (0, 4, 1, 2, 3): "NCDHW"}
_WINDOW_PARTITIONS = {"WindowPartition", "SwapAxes"}

MOST_PREFIX_TOKENS = 16
"""Class, distillation and register tokens that may stand before the tokens of an image."""


def infer_layouts(module: nn.Module, rec: Recording) -> dict[str, list[Layout | None]]:
    """Give, for every recorded layer and call, how to read its first output tensor; None where it returned none.

    ``rec`` is a recording of all layers of ``module``.
    """
    names = LayerNames(module)
    reader = _Reader(_batch(rec))
    return {
        name: [reader.read(names[name], call.output_info[0].shape) if call.output_info else None for call in calls]
        for name, calls in rec.items()
    }


def layouts_by_shape(module: nn.Module, rec: Recording) -> dict[Shape, Layout]:
    """Give how outputs of each shape are to be read, as the last telling layer of that shape had it."""
    return {
        info.shape: layout
        for name, layouts in infer_layouts(module, rec).items()
        for call, layout in zip(rec[name], layouts, strict=True)
        for info in call.output_info[:1]
        if layout is not None and layout.known
    }


def _batch(rec: Recording) -> int:
    shapes = [info.shape for calls in rec.values() for call in calls for info in call.output_info if info.shape]
    return shapes[0][0] if shapes else 1


class _Reader:
    """Goes through the layers in the order in which they returned, and remembers what the telling ones said."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._told: dict[Shape, Layout] = {}
        self._grids: list[Shape] = []
        self._tokens: set[int] = set()
        self._windows: set[Shape] = set()

    def read(self, layer: nn.Module, shape: Shape) -> Layout:
        if len(shape) in _ALWAYS:
            return Layout(_ALWAYS[len(shape)])
        told = self._tell(layer, shape)
        if told is not None:
            self._remember(layer, shape, told)
            return told
        return self._told.get(shape) or self._guess(shape)

    def _tell(self, layer: nn.Module, shape: Shape) -> Layout | None:
        if type(layer).__name__ in _WINDOW_PARTITIONS and len(shape) == 4:
            return _windows_of_tokens(shape)
        dims = getattr(layer, "dims", None)
        if type(layer).__name__ == "Permute" and tuple(dims or ()) in _PERMUTED:
            return Layout(_PERMUTED[tuple(dims or ())])
        if isinstance(layer, _CHANNELS_FIRST) or type(layer).__name__.endswith("2d"):
            return Layout(_FIRST[len(shape)]) if len(shape) in _FIRST else None
        if isinstance(layer, _CHANNELS_LAST) or _is_batch_first(layer):
            return self._channels_last(shape)
        return None

    def _channels_last(self, shape: Shape) -> Layout | None:
        if len(shape) == 3:
            return self._read_tokens(shape)
        if shape[:3] in self._windows:
            return _windows_of_tokens(shape)
        return Layout(_LAST[len(shape)]) if len(shape) in _LAST else None

    def _read_tokens(self, shape: Shape) -> Layout:
        if shape[0] != self._batch and shape[0] % self._batch == 0:
            side = math.isqrt(shape[1])
            note = f"window partition: the first axis counts {shape[0]} windows of {shape[1]} tokens"
            return Layout("NLC", (side, side) if side * side == shape[1] else None, note=note)
        return Layout("NLC", self._grid_of(shape[1]))

    def _grid_of(self, tokens: int) -> tuple[int, int] | None:
        for height, width in reversed(self._grids):
            if 0 <= tokens - height * width <= MOST_PREFIX_TOKENS:
                return height, width
        return None

    def _remember(self, layer: nn.Module, shape: Shape, told: Layout) -> None:
        self._told[shape] = told
        if told.name == "NCHW" and isinstance(layer, nn.Conv2d):
            self._grids.append(shape[2:])
        if told.name == "NHWC" and not told.note:
            self._grids.append(shape[1:3])
        if told.name == "NLC":
            self._tokens.add(shape[1])
        if type(layer).__name__ in _WINDOW_PARTITIONS:
            self._windows.add(shape[:3])

    def _guess(self, shape: Shape) -> Layout:
        if len(shape) == 4 and shape[2] in self._tokens:
            inside = "query tokens × key tokens" if shape[2] == shape[3] else "tokens × features"
            return Layout("NCHW", note=f"attention: one map of {inside} per head")
        if len(shape) == 3:
            return self._guess_tokens(shape)
        return Layout(_FIRST.get(len(shape), "auto"), known=False)

    def _guess_tokens(self, shape: Shape) -> Layout:
        """Three axes: the patch embedding that came before may say that they are its tokens."""
        if self._grid_of(shape[1]) is not None:
            return self._read_tokens(shape)
        if self._grid_of(shape[2]) is not None and shape[2] not in self._tokens:
            return Layout("NCL", note="channels first, the image's rows one after the other")
        return Layout("NLC", known=False)


def _is_batch_first(layer: nn.Module) -> bool:
    return isinstance(layer, (nn.MultiheadAttention, nn.RNNBase)) and layer.batch_first


def _windows_of_tokens(shape: Sequence[int]) -> Layout:
    return Layout("NHWC", note=f"window partition: rows are {shape[1]} windows, columns their {shape[2]} tokens")
