"""Edits that measure a layer's channels; they are no part of the public vocabulary."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import torch
from torch import Tensor

from hookviz.errors import HookvizError
from hookviz.hooks.edits import Edit

Shape: TypeAlias = tuple[int, ...]


class BatchError(HookvizError):
    """A layer's output in which the items of the batch cannot be found."""


@dataclass(frozen=True)
class ZeroEach(Edit):
    """Set another channel to 0 in each item of a batch, and none where ``channels_of`` has None.

    ``shapes`` are those the layer returns for one item alone. The items are found along the axis that has grown, and
    lie one behind the other where one item takes several places (windows).
    """

    channels_of: tuple[int | None, ...]
    shapes: frozenset[Shape]

    def apply(self, tensor: Tensor) -> Tensor:
        """Fill each item's channel with 0.

        Raises:
            BatchError: no axis, or not one alone, has grown with the batch.
        """
        channel_axis = self.axis % tensor.ndim
        item_axis = self._item_axis(tensor.shape, channel_axis)
        zeroed = torch.zeros(len(self.channels_of), tensor.shape[channel_axis], dtype=torch.bool)
        for item, channel in enumerate(self.channels_of):
            if channel is not None:
                zeroed[item, channel] = True
        zeroed = zeroed.repeat_interleave(tensor.shape[item_axis] // len(self.channels_of), 0)
        shape = [1] * tensor.ndim
        shape[item_axis], shape[channel_axis] = zeroed.shape
        arranged = zeroed if item_axis < channel_axis else zeroed.T
        return tensor.masked_fill(arranged.reshape(shape).to(tensor.device), 0)

    def _item_axis(self, shape: Shape, channel_axis: int) -> int:
        for alone in self.shapes:
            if len(alone) == len(shape):
                grown = [axis for axis, size in enumerate(alone) if size != shape[axis]]
                if len(grown) == 1 and self._holds_items(grown[0], alone, shape) and grown[0] != channel_axis:
                    return grown[0]
        raise BatchError(f"the items of the batch cannot be found in a tensor of shape {tuple(shape)}.")

    def _holds_items(self, axis: int, alone: Shape, shape: Shape) -> bool:
        return shape[axis] == alone[axis] * len(self.channels_of) and (axis == 0 or alone[axis] == 1)


@dataclass(frozen=True)
class TimesOne(Edit):
    """Multiply by ones whose gradient is the gradient of the output times its value; ``ones`` collects them.

    Unlike a hook on the output, this gives every value as it was when the layer returned it, whatever is written over
    it later, and needs no parameter that requires a gradient.
    """

    ones: list[Tensor] = field(default_factory=list)

    def apply(self, tensor: Tensor) -> Tensor:
        """Copy the output, times 1."""
        self._need_floats(tensor)
        ones = torch.ones_like(tensor, requires_grad=True)
        self.ones.append(ones)
        return tensor.clone() * ones
