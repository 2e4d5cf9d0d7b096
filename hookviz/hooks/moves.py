"""How far a tensor of one run is from the same tensor of another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from hookviz.hooks.norms import total_norm
from hookviz.hooks.structure import tensor_info
from hookviz.numeric import dense

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """How far one tensor moved between two runs.

    ``relative`` is ``||after - before|| / ||before||``, ``largest`` the largest absolute change, and ``norm`` is
    ``||before||``, all in float64 over the elements that are finite in both runs. ``relative`` is infinite where such
    elements were all 0 before. All three are None where there is no such element, where the shape is another one, and
    where the tensor came in one run only. Complex numbers count with their magnitudes, quantized ones dequantized.

    ``new_nonfinite`` counts the NaN and infinities that were not there before, ``gone_nonfinite`` those that have
    become finite; a NaN that stays NaN has not moved. ``shape_before`` and ``shape_after`` are None where that run has
    no such tensor.
    """

    relative: float | None
    largest: float | None
    norm: float | None
    new_nonfinite: int
    gone_nonfinite: int
    shape_before: Shape | None
    shape_after: Shape | None

    @property
    def rank(self) -> tuple[int, float]:
        """Sorts the farthest move first: what no number can say, then what is not finite any more, then the rest."""
        if self.relative is None:
            return (0, 0.0)
        return (1 if self.new_nonfinite else 2, -self.relative)


def move(before: Tensor | None, after: Tensor | None) -> Move | None:
    """Measure how far a tensor moved; None where all values are the same, NaN being the same as NaN."""
    shapes = _shape(before), _shape(after)
    if before is None or after is None or shapes[0] != shapes[1]:
        return Move(None, None, None, 0, 0, *shapes)
    if _surely_equal(before, after):
        return None
    old, new = _wide(before), _wide(after)
    if old.shape != new.shape:  # nested tensors whose items have other lengths
        return Move(None, None, None, 0, 0, *shapes)
    same = (old == new) | (old.isnan() & new.isnan())
    if bool(same.all()):
        return None
    was, stays = old.isfinite(), new.isfinite()
    both = was & stays
    counts = int((~stays & ~same).sum()), int((~was & stays).sum())
    return Move(*_distance(old[both], new[both]), *counts, *shapes)


def _distance(old: Tensor, new: Tensor) -> tuple[float | None, float | None, float | None]:
    if not old.numel():
        return None, None, None
    difference = new - old
    norm, distance = total_norm([old]), total_norm([difference])
    relative = distance / norm if norm else (math.inf if distance else 0.0)
    return relative, float(difference.abs().max()), norm


def _shape(tensor: Tensor | None) -> Shape | None:
    return None if tensor is None else tensor_info("", tensor).shape


def _surely_equal(before: Tensor, after: Tensor) -> bool:
    plain = all(one.layout is torch.strided and not one.is_nested and one.element_size() > 1 for one in (before, after))
    return plain and before.dtype == after.dtype and torch.equal(before, after)


def _wide(tensor: Tensor) -> Tensor:
    plain = dense(tensor)
    flat = torch.cat([item.flatten() for item in plain.unbind()]) if plain.is_nested else plain.flatten()
    return flat.to(torch.complex128 if flat.is_complex() else torch.float64)
