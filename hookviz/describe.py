"""Layers in words, the same wherever a person reads of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hookviz.channels import dead_channels_apply
from hookviz.types import ChannelStatistics, LayerInfo

WHOLE_NETWORK = "(whole network)"


def title(name: str) -> str:
    """What a layer is called: its name, and of the root, which has none, that it is the whole network."""
    return name or WHOLE_NETWORK


def kind(info: LayerInfo) -> str:
    """What a layer is: its class, or that it is a function called in a forward."""
    return f"{info.class_name}()" if info.is_operation else info.class_name


def size(shape: Sequence[int]) -> str:
    """A shape without its batch axis: 64 × 56 × 56."""
    return " × ".join(map(str, shape[1:] if len(shape) > 1 else shape)) or "scalar"


def describe(info: LayerInfo) -> str:
    """A layer in one line: name, class, output."""
    shapes = list(dict.fromkeys(map(size, info.output_shapes)))
    times = f" · {info.calls} calls" if info.calls and info.calls > 1 else ""
    outputs = ", ".join(shapes[:2]) or "not called"
    return f"{title(info.name)} · {kind(info)} · {outputs}{times}"


def constant_channels(statistics: ChannelStatistics) -> int | None:
    """How many channels have one value everywhere; None where each has but one value anyway."""
    return int(np.count_nonzero(statistics.min == statistics.max)) if statistics.count > 1 else None


def dead_channels(statistics: ChannelStatistics, class_name: str) -> int | None:
    """How many channels are zero everywhere; None where that says nothing of such a layer."""
    if statistics.count <= 1 or not dead_channels_apply(class_name):
        return None
    return int(np.count_nonzero(statistics.zeros == statistics.count))
