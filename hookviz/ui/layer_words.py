"""What a layer is, in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from hookviz.types import LayerInfo


def describe(info: LayerInfo) -> str:
    """A layer in one line: name, class, output."""
    shapes = list(dict.fromkeys(map(size, info.output_shapes)))
    times = f" · {info.calls} calls" if info.calls and info.calls > 1 else ""
    outputs = ", ".join(shapes[:2]) or "not called"
    return f"{info.name or '(whole network)'} · {kind(info)} · {outputs}{times}"


def kind(info: LayerInfo) -> str:
    """What a layer is: its class, or that it is a function called in a forward."""
    return f"{info.class_name}()" if info.is_operation else info.class_name


def size(shape: Sequence[int]) -> str:
    """A shape without its batch axis: 64 × 56 × 56."""
    return " × ".join(map(str, shape[1:] if len(shape) > 1 else shape)) or "scalar"
