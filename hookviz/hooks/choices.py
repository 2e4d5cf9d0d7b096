"""Good first choices among the layers of a network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from hookviz.hooks.names import LayerNames
from hookviz.types import LayerInfo


def first_middle_last(names: Sequence[str]) -> list[str]:
    """The first, the middle and the last of several names, each once."""
    if not names:
        return []
    return list(dict.fromkeys((names[0], names[len(names) // 2], names[-1])))


def first_choice(module: nn.Module, layers: Sequence[LayerInfo]) -> list[str]:
    """The first, a middle and the last convolution that ran; other layers with maps where there are fewer than three.

    ``layers`` is what ``list_layers`` gave for one input.
    """
    convolutions = called(module, layers, nn.modules.conv._ConvNd)
    if len(convolutions) >= 3:
        return first_middle_last(convolutions)
    mapped = [
        info.name
        for info in layers
        if info.name and not info.is_operation and any(len(shape) >= 3 for shape in info.output_shapes)
    ]
    others = [name for name in mapped if name not in convolutions] or [info.name for info in layers if info.calls]
    return list(dict.fromkeys([*convolutions, *first_middle_last(others)]))[:3]


def with_operations(layers: Sequence[LayerInfo], operations: Sequence[LayerInfo]) -> list[LayerInfo]:
    """Layers and functional operations in one list, each operation behind the module it runs in."""
    merged = list(layers)
    for operation in reversed(operations):
        path = operation.name.rpartition(".")[0]
        inside = [number for number, info in enumerate(layers) if not path or f"{info.name}.".startswith(f"{path}.")]
        merged.insert(inside[-1] + 1 if inside else len(layers), operation)
    return merged


def called(module: nn.Module, layers: Sequence[LayerInfo], kind: type[nn.Module]) -> list[str]:
    """The layers of one kind that ran."""
    names = LayerNames(module)
    return [info.name for info in layers if info.calls and not info.is_operation and isinstance(names[info.name], kind)]
