"""A network's scores while one channel of a layer is zero, for each channel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.channel_edits import Shape, ZeroEach
from hookviz.hooks.class_scores import class_scores, scores_of_one
from hookviz.hooks.edit import edit
from hookviz.hooks.edits import Edit, Zero
from hookviz.hooks.private_run import Arguments, private_run
from hookviz.hooks.structure import each_tensor

OnProgress: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Spot:
    """The tensor whose channels are meant; ``shapes`` are those it has in the calls that are meant."""

    layer: str
    call: int | None
    path: str
    axis: int
    channels: int
    shapes: frozenset[Shape]


@dataclass(frozen=True, slots=True, eq=False)
class ZeroedScores:
    """``zeroed`` and ``plain`` are (channels, classes) in float64: with that channel zero, and without, from one batch.

    ``rounding`` is how far scores of the same item lay apart in two batches at most, and ``batched`` says whether there
    were any.
    """

    zeroed: Tensor
    plain: Tensor
    rounding: float
    batched: bool


class _MixedError(Exception):
    """The network does not treat the items of a batch one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class ZeroedRuns:
    """Runs of a network, one item each, with one channel zero; ``scores`` are (1, classes), with none zero."""

    module: nn.Module
    arguments: Arguments
    spot: Spot
    scores: Tensor
    on_progress: OnProgress

    def run(self, batch: int) -> ZeroedScores:
        """Zero every channel, ``batch - 1`` of them in one forward where the network treats items one by one."""
        if batch > 1:
            try:
                return self._together(batch)
            except _MixedError:
                pass
        return self._one_by_one()

    def _one_by_one(self) -> ZeroedScores:
        rows = []
        for channel in range(self.spot.channels):
            rows.append(self._alone(channel))
            self.on_progress(channel + 1, self.spot.channels)
        return ZeroedScores(torch.cat(rows), self.scores.double().expand(len(rows), -1), 0.0, batched=False)

    def _together(self, batch: int) -> ZeroedScores:
        """One item of every batch is left untouched: it is what the others are compared with."""
        zeroed, plain, rounding, proven = [], [], 0.0, False
        for first in range(0, self.spot.channels, batch - 1):
            channels = range(first, min(first + batch - 1, self.spot.channels))
            untouched, rows = self._batch((None, *channels)).split([1, len(channels)])
            rounding = max(rounding, self._distance(untouched, self.scores.double()))
            proven = proven or self._is_proven(channels, rows, untouched)
            zeroed.append(rows)
            plain.append(untouched.expand_as(rows))
            self.on_progress(channels.stop, self.spot.channels)
        return ZeroedScores(torch.cat(zeroed), torch.cat(plain), rounding, batched=True)

    def _is_proven(self, channels: range, rows: Tensor, untouched: Tensor) -> bool:
        """Whether the strongest channel of a batch, run alone, gives the same; False while none does anything."""
        changes = (rows - untouched).abs().amax(1).nan_to_num(torch.inf)
        strongest = int(changes.argmax())
        if float(changes[strongest]) <= self._tolerance:
            return False
        self._distance(rows[strongest : strongest + 1], self._alone(channels[strongest]))
        return True

    def _distance(self, scores: Tensor, expected: Tensor) -> float:
        both = scores.isfinite() & expected.isfinite()
        distance = float((scores - expected)[both].abs().max()) if bool(both.any()) else 0.0
        if distance > self._tolerance or not torch.equal(scores.isfinite(), expected.isfinite()):
            raise _MixedError
        return distance

    @property
    def _tolerance(self) -> float:
        """Half the digits of the largest score: kernels add in another order for a batch of another size."""
        return float(torch.finfo(self.scores.dtype).eps ** 0.5 * self.scores.abs().max())

    def _alone(self, channel: int) -> Tensor:
        spot = self.spot
        return scores_of_one(self._output(Zero(channel, call=spot.call, path=spot.path, axis=spot.axis), 1)).double()

    def _batch(self, channels: tuple[int | None, ...]) -> Tensor:
        spot = self.spot
        each = ZeroEach(channels, spot.shapes, call=spot.call, path=spot.path, axis=spot.axis)
        scores = None
        with suppress(Exception):  # what a network raises that takes one item only is anybody's choice
            scores = class_scores(self._output(each, len(channels)))
        if scores is None or len(scores) != len(channels):
            raise _MixedError
        return scores.double()

    def _output(self, one: Edit, items: int) -> Any:
        args, kwargs = each_tensor(own_arguments(self.arguments), lambda tensor: _repeated(tensor, items))
        with private_run(self.module) as private, edit(private, {self.spot.layer: one}):
            return private(*args, **kwargs)


def _repeated(tensor: Tensor, items: int) -> Tensor:
    """Several of an item, in the tensors whose first axis is it."""
    return torch.cat([tensor] * items) if items > 1 and tensor.ndim and len(tensor) == 1 else tensor
