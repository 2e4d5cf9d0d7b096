"""Layouts that letters alone do not say: attention, windows, recurrent states, anchors."""

from __future__ import annotations

import math
from typing import TypeAlias

from torch import nn

from hookviz.types import Layout

Shape: TypeAlias = "tuple[int, ...]"

_ATTENTION = "attention: one map of query tokens × key tokens"


def attention(name: str, *, heads: bool) -> Layout:
    """How strongly each token looks at each other one, 0 to 1 where a softmax has made it."""
    return Layout(name, note=f"{_ATTENTION} per head" if heads else _ATTENTION)


def attention_weights(shape: Shape, *, batched: bool) -> Layout | None:
    """What ``nn.MultiheadAttention`` returns second: averaged over its heads, or head by head."""
    if not batched:
        return {2: attention("HW", heads=False), 3: attention("CHW", heads=True)}.get(len(shape))
    return {3: attention("NHW", heads=False), 4: attention("NCHW", heads=True)}.get(len(shape))


def heads() -> Layout:
    """Queries, keys or values, split into (batch, heads, tokens, features)."""
    return Layout("NCHW", note="attention: one map of tokens × features per head")


def sequence(shape: Shape, *, batch_first: bool) -> Layout | None:
    """What recurrent layers and ``nn.MultiheadAttention`` return first; without a batch it has two axes."""
    if len(shape) == 2:
        return Layout("HW", note="one sequence: rows are its positions, columns the features")
    return Layout("NLC" if batch_first else "LNC") if len(shape) == 3 else None


def last_state(shape: Shape) -> Layout | None:
    """What recurrent layers return behind the sequence; ``batch_first`` does not change it."""
    if len(shape) == 2:
        return Layout("HW", note="last state: rows are layers and directions, columns the features")
    note = "last state: the first axis counts layers and directions, the second is the batch"
    return Layout("LNC", note=note) if len(shape) == 3 else None


def anchors() -> Layout:
    """What a detector says of each place where it looks."""
    return Layout("NLC", note="one row for each anchor: not an image")


def channels_first_tokens() -> Layout:
    """An image whose height and width have become one axis."""
    return Layout("NCL", note="channels first, the image's rows one after the other")


def windows_of_tokens(shape: Shape) -> Layout:
    """Windows that have an axis of their own."""
    return Layout("NHWC", note=f"window partition: rows are {shape[1]} windows, columns their {shape[2]} tokens")


def windows_in_batch(shape: Shape) -> Layout:
    """Windows that have been made items of the batch, as tokens or as small images."""
    count, side = shape[0], math.isqrt(shape[1])
    if len(shape) == 3:
        note = f"window partition: the first axis counts {count} windows of {shape[1]} tokens"
        return Layout("NLC", (side, side) if side * side == shape[1] else None, note=note)
    note = f"window partition: the first axis counts {count} windows of {shape[1]} × {shape[2]} tokens"
    return Layout("NHWC", note=note)


def is_sequence_first(layer: nn.Module) -> bool:
    """Whether a layer was built to take the batch second, which is torch's default."""
    return isinstance(layer, (nn.MultiheadAttention, nn.RNNBase)) and not layer.batch_first
