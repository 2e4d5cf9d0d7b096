"""How to read the axes of layers' outputs, from what the layers are rather than from shapes alone.

A shape cannot tell channels-first from channels-last. Modules can: a Conv2d returns NCHW, a Linear works on the last
axis. What says nothing by itself (a Dropout, a container) is read like the last tensor of the same shape that a telling
module returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import nn

from hookviz.hooks import named_layouts
from hookviz.hooks.named_layouts import Shape, is_sequence_first
from hookviz.hooks.names import LayerNames
from hookviz.hooks.recording import Recording
from hookviz.types import Layout

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
_SEQUENTIAL = (nn.MultiheadAttention, nn.RNNBase)
_MAKES_ATTENTION = (nn.Softmax, nn.Dropout)

MOST_PREFIX_TOKENS = 16
"""Class, distillation and register tokens that may stand before the tokens of an image."""


def infer_layouts(module: nn.Module, rec: Recording) -> dict[str, list[tuple[Layout | None, ...]]]:
    """Give, for every recorded layer and call, how to read each of its output tensors; None where nothing is known.

    Of the first tensor at least the number of axes is known. ``rec`` is a recording of all layers of ``module``.
    """
    return _infer(module, rec)[1]


def layouts_by_shape(module: nn.Module, rec: Recording) -> Callable[[Shape], Layout | None]:
    """Give how a tensor of some shape is to be read, as telling layers of this run had it; None where none did."""
    return _infer(module, rec)[0].known


def _infer(module: nn.Module, rec: Recording) -> tuple[_Reader, dict[str, list[tuple[Layout | None, ...]]]]:
    names = LayerNames(module)
    reader = _Reader(_batch(names, rec))
    layouts = {
        name: [reader.read_call(names[name], [info.shape for info in call.output_info]) for call in calls]
        for name, calls in rec.items()
    }
    return reader, layouts


def _batch(names: LayerNames, rec: Recording) -> int:
    """How many items the batch has: layers that take it second say so, else the first tensor does."""
    outputs = [(names[name], call.output_info) for name, calls in rec.items() for call in calls]
    second = [
        tensors[0].shape[1]
        for layer, tensors in outputs
        if is_sequence_first(layer) and tensors and len(tensors[0].shape) == 3
    ]
    first = [info.shape[0] for _, tensors in outputs for info in tensors if info.shape]
    return (second or first or [1])[0]


class _Reader:
    """Goes through the layers in the order in which they returned, and remembers what the telling ones said."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._told: dict[Shape, Layout] = {}
        self._grids: list[Shape] = []
        self._flat_maps: set[Shape] = set()
        self._tokens: set[int] = set()
        self._windows: set[Shape] = set()

    def read_call(self, layer: nn.Module, shapes: Sequence[Shape]) -> tuple[Layout | None, ...]:
        if not shapes:
            return ()
        first = self._read(layer, shapes[0])
        return first, *(self._read_other(layer, other, shapes[0], first) for other in shapes[1:])

    def known(self, shape: Shape) -> Layout | None:
        layout = self._told.get(shape) or self._guess(shape)
        return layout if layout.known else None

    def _read(self, layer: nn.Module, shape: Shape) -> Layout:
        told = self._tell(layer, shape)
        if told is not None:
            self._remember(layer, shape, told)
            return told
        if len(shape) in _ALWAYS:
            return self._told.setdefault(shape, Layout(_ALWAYS[len(shape)]))
        return self._told.get(shape) or self._guess(shape, layer)

    def _read_other(self, layer: nn.Module, shape: Shape, first: Shape, layout: Layout) -> Layout | None:
        if isinstance(layer, nn.MultiheadAttention):
            return named_layouts.attention_weights(shape, batched=len(first) == 3)
        if isinstance(layer, nn.RNNBase):
            return named_layouts.last_state(shape)
        return layout if shape == first else self.known(shape)

    def _tell(self, layer: nn.Module, shape: Shape) -> Layout | None:  # noqa: PLR0911  # one return per kind of layer
        if isinstance(layer, _SEQUENTIAL):
            return self._sequence(layer, shape)
        if len(shape) in _ALWAYS:
            return None
        if type(layer).__name__ in _WINDOW_PARTITIONS and len(shape) == 4:
            return named_layouts.windows_of_tokens(shape)
        dims = getattr(layer, "dims", None)
        if type(layer).__name__ == "Permute" and tuple(dims or ()) in _PERMUTED:
            return Layout(_PERMUTED[tuple(dims or ())])
        if isinstance(layer, _CHANNELS_FIRST) or type(layer).__name__.endswith("2d"):
            return Layout(_FIRST[len(shape)]) if len(shape) in _FIRST else None
        if isinstance(layer, _CHANNELS_LAST):
            return self._channels_last(layer, shape)
        return named_layouts.anchors() if _is_detection_head(layer) and len(shape) == 3 else None

    def _sequence(self, layer: nn.MultiheadAttention | nn.RNNBase, shape: Shape) -> Layout | None:
        if layer.batch_first and len(shape) == 3:
            return self._tokens_last(shape)
        layout = named_layouts.sequence(shape, batch_first=layer.batch_first)
        grid = self._grid_of(shape[0]) if len(shape) == 3 else None
        return layout if layout is None or grid is None else Layout(layout.name, grid)

    def _channels_last(self, layer: nn.Module, shape: Shape) -> Layout | None:
        if len(shape) == 3:
            return self._tokens_last(shape)
        if len(shape) == 4:
            return self._image_last(layer, shape)
        return Layout(_LAST[len(shape)]) if len(shape) in _LAST else None

    def _tokens_last(self, shape: Shape) -> Layout:
        """Three axes, of which the last is what the layer works on."""
        if shape[0] != self._batch and shape[1] == self._batch:
            return Layout("LNC", self._grid_of(shape[0]))
        if shape[0] != self._batch and shape[0] % self._batch == 0:
            return named_layouts.windows_in_batch(shape)
        if shape[1:] in self._flat_maps and shape[1] != shape[2]:
            return named_layouts.channels_first_tokens()
        return Layout("NLC", self._grid_of(shape[1]))

    def _image_last(self, layer: nn.Module, shape: Shape) -> Layout:
        """Four axes, of which the last is what the layer works on."""
        if shape[:3] in self._windows:
            return named_layouts.windows_of_tokens(shape)
        if shape[1:3] not in self._grids and shape[2] in self._tokens:
            if shape[1] in self._tokens:
                return named_layouts.attention("NHWC", heads=True)
            if isinstance(layer, (nn.LayerNorm, nn.RMSNorm)):
                return named_layouts.heads()
        if shape[0] != self._batch and shape[0] % self._batch == 0:
            return named_layouts.windows_in_batch(shape)
        return Layout("NHWC")

    def _grid_of(self, tokens: int) -> tuple[int, int] | None:
        for height, width in reversed(self._grids):
            if 0 <= tokens - height * width <= MOST_PREFIX_TOKENS:
                return height, width
        return None

    def _remember(self, layer: nn.Module, shape: Shape, told: Layout) -> None:
        self._told[shape] = told
        if told.name == "NCHW" and isinstance(layer, nn.Conv2d):
            self._remember_map(shape[1], shape[2:])
        if told.name == "NHWC" and not told.note:
            self._remember_map(shape[3], shape[1:3])
        if told.name in {"NLC", "LNC"}:
            self._tokens.add(shape[told.name.index("L")])
        if type(layer).__name__ in _WINDOW_PARTITIONS:
            self._windows.add(shape[:3])

    def _remember_map(self, channels: int, grid: Shape) -> None:
        self._grids.append(grid)
        self._flat_maps.add((channels, math.prod(grid)))

    def _guess(self, shape: Shape, layer: nn.Module | None = None) -> Layout:
        if len(shape) == 4 and isinstance(layer, _MAKES_ATTENTION) and shape[3] in self._tokens:
            return named_layouts.attention("NCHW", heads=True)
        if len(shape) == 4 and shape[2] in self._tokens:
            square = shape[2] == shape[3]
            return named_layouts.attention("NCHW", heads=True) if square else named_layouts.heads()
        if len(shape) == 3:
            return self._guess_tokens(shape)
        return Layout(_FIRST.get(len(shape), "auto"), known=False)

    def _guess_tokens(self, shape: Shape) -> Layout:
        """Three axes: the patch embedding that came before may say that they are its tokens."""
        if shape[1] == shape[2] and shape[1] in self._tokens:
            return named_layouts.attention("NHW", heads=False)
        if self._grid_of(shape[1]) is not None:
            return self._tokens_last(shape)
        if shape[1:] in self._flat_maps:
            return named_layouts.channels_first_tokens()
        return Layout("NLC", known=False)


def _is_detection_head(layer: nn.Module) -> bool:
    kind = type(layer)
    return kind.__module__.startswith("torchvision.models.detection") and kind.__name__.endswith("Head")
