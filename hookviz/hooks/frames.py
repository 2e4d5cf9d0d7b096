"""What the calls under way say about a module that runs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from torch import nn

_CALL = nn.Module._call_impl.__code__
tracing_state = torch._C._get_tracing_state
graph_task = torch._C._current_graph_task_id


def is_backward() -> bool:
    """Whether this thread is inside a backward pass, where only checkpoints run modules, to recompute."""
    return bool(graph_task() != -1)


def is_replay() -> bool:
    """Whether modules are being run for another purpose than their results: traced, or recomputed by a checkpoint."""
    return tracing_state() is not None or is_backward()


def is_call_of(frame: FrameType, module: nn.Module) -> bool:
    """Whether a frame is torch's for a call of ``module``, its hooks included."""
    return frame.f_code is _CALL and frame.f_locals.get("self") is module


def calls_under_way(module: nn.Module) -> int:
    """How many calls of ``module`` this thread is inside of."""
    return sum(is_call_of(frame, module) for frame in _callers())


def outermost_call(modules: Collection[int]) -> Mapping[str, Any] | None:
    """Of the calls that this thread is inside of, give the outermost of a module with one of these ids.

    It is what torch's frame holds: ``self``, ``args``, ``kwargs``.
    """
    calls = [frame.f_locals for frame in _callers() if frame.f_code is _CALL]
    return next((call for call in reversed(calls) if id(call["self"]) in modules), None)


def is_inside_checkpoint() -> bool:
    """Whether a checkpoint runs this; a re-entrant one runs its first forward without gradients, as it should."""
    return any(frame.f_globals.get("__name__") == "torch.utils.checkpoint" for frame in _callers())


def _callers() -> Iterator[FrameType]:
    frame = sys._getframe(1).f_back
    while frame is not None:
        yield frame
        frame = frame.f_back
