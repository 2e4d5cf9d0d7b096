"""What recording costs, measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from hookviz.errors import HookvizError
from hookviz.hooks.as_found import left_as_found, own_arguments
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.estimate import output_bytes
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.record import record
from hookviz.hooks.recording import Recording


@dataclass(frozen=True, slots=True)
class HookCost:
    """What recording costs over a plain forward.

    ``plain`` and ``recorded`` are medians in seconds, ``ratio`` the median of recorded / plain over pairs of forwards.
    ``bytes`` is what the tensors of the recording hold, ``by_layer`` the same for each layer that ran.
    """

    plain: float
    recorded: float
    ratio: float
    bytes: int
    by_layer: dict[str, int]


def hook_cost(module: nn.Module, *args: Any, layers: Layers = "*", pairs: int = 5, **kwargs: Any) -> HookCost:
    """Measure what recording some layers costs in time and memory.

    Forwards without and with ``record(module, layers)`` alternate, so that a busy machine slows both alike; one of each
    comes before and is not timed. They run without gradients in the network's own train/eval mode, on copies of the
    arguments, eagerly also where the network is compiled; afterwards it is as it was. On a GPU every timing waits until
    it has finished.

    Args:
        module: the network.
        args: what to call it with.
        layers: what to record, as in ``record``.
        pairs: how many pairs of forwards to time.
        kwargs: what to call it with.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
        HookvizError: ``pairs`` is less than 1.
    """
    if pairs < 1:
        raise HookvizError(f"pairs is {pairs}; time one pair of forwards at least.")
    root = LayerNames(module).root

    def plain() -> None:
        own_args, own_kwargs = own_arguments((args, kwargs))
        root(*own_args, **own_kwargs)

    def recorded() -> Recording:
        own_args, own_kwargs = own_arguments((args, kwargs))
        with record(root, layers) as rec:
            root(*own_args, **own_kwargs)
        return rec

    with left_as_found(root, gradients=False), run_eagerly():
        plain()
        held = _held(recorded())
        timed = [_pair(plain, recorded, swapped=bool(number % 2)) for number in range(pairs)]
    return HookCost(
        plain=statistics.median(first for first, _ in timed),
        recorded=statistics.median(second for _, second in timed),
        ratio=statistics.median(second / first for first, second in timed),
        bytes=sum(held.values()),
        by_layer=held,
    )


def _held(recording: Recording) -> dict[str, int]:
    return {layer: output_bytes(call.output_info for call in calls) for layer, calls in recording.items()}


def _pair(first: Callable[[], object], second: Callable[[], object], *, swapped: bool) -> tuple[float, float]:
    if swapped:
        later, earlier = _seconds(second), _seconds(first)
        return earlier, later
    return _seconds(first), _seconds(second)


def _seconds(run: Callable[[], object]) -> float:
    _wait_for_gpu()
    start = time.perf_counter()
    result = run()
    _wait_for_gpu()
    elapsed = time.perf_counter() - start
    del result  # freeing what was recorded is not part of recording it
    return elapsed


def _wait_for_gpu() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
