"""What can be done to a layer's output: frozen values that make a new tensor of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import TypeAlias

import torch
from torch import Tensor

from hookviz.errors import HookvizError

Channels: TypeAlias = "int | Iterable[int] | None"
"""One channel, several, or None for all; negative ones count from the end."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """A change to a layer's output.

    Args:
        call: which call of the layer in a run is meant, from 0; None means every call.
        path: where the tensor sits in an output that is a tuple, list or dict (``"0"``, ``"out"``, ``"1.h"``); ``""``
            where the output is the tensor.
        axis: the axis that counts channels: 1 for NCHW, -1 for tokens and NHWC.
    """

    call: int | None = None
    path: str = ""
    axis: int = 1

    def __post_init__(self) -> None:
        channels = getattr(self, "channels", None)
        if channels is not None:
            many = [channels] if isinstance(channels, int) or not isinstance(channels, Iterable) else channels
            object.__setattr__(self, "channels", tuple(index(channel) for channel in many))

    def apply(self, tensor: Tensor) -> Tensor:
        """Make the edited tensor; the one given is only read.

        Raises:
            HookvizError: the tensor does not have the axis or a channel, or not numbers of the kind that is needed.
        """
        raise NotImplementedError

    def _chosen(self, tensor: Tensor, channels: Channels) -> Tensor:
        """Which channels are meant, as booleans that broadcast against the tensor."""
        if not -tensor.ndim <= self.axis < tensor.ndim:
            raise HookvizError(f"axis {self.axis} is not in a tensor of shape {tuple(tensor.shape)}; give axis=.")
        count = tensor.shape[self.axis]
        shape = [1] * tensor.ndim
        shape[self.axis] = count
        chosen = torch.zeros(count, dtype=torch.bool)
        for channel in range(count) if channels is None else channels:  # type: ignore[union-attr]  # a tuple by now
            if not -count <= channel < count:
                raise HookvizError(
                    f"there is no channel {channel} among the {count} of axis {self.axis}; "
                    f"choose from 0 to {count - 1}."
                )
            chosen[channel] = True
        return chosen.to(tensor.device).view(shape)

    def _into(self, tensor: Tensor, channels: Channels, changed: Tensor) -> Tensor:
        return changed if channels is None else torch.where(self._chosen(tensor, channels), changed, tensor)

    def _need_floats(self, tensor: Tensor) -> None:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise HookvizError(
                f"{type(self).__name__} needs floating-point values, not {tensor.dtype}; choose a layer before."
            )


@dataclass(frozen=True)
class Zero(Edit):
    """Set channels to 0, those that are NaN too."""

    channels: Channels = None

    def apply(self, tensor: Tensor) -> Tensor:
        """Fill the chosen channels with 0."""
        return tensor.masked_fill(self._chosen(tensor, self.channels), 0)


@dataclass(frozen=True)
class KeepOnly(Edit):
    """Set every other channel to 0."""

    channels: Channels

    def apply(self, tensor: Tensor) -> Tensor:
        """Fill the channels that are not chosen with 0."""
        return tensor.masked_fill(~self._chosen(tensor, self.channels), 0)


@dataclass(frozen=True)
class ReplaceByMean(Edit):
    """Replace every value of a channel by the channel's mean over its positions, in each item of the batch."""

    channels: Channels = None

    def apply(self, tensor: Tensor) -> Tensor:
        """Average over every axis but the first and the channels'."""
        self._need_floats(tensor)
        chosen = self._chosen(tensor, self.channels)
        positions = [axis for axis in range(1, tensor.ndim) if axis != self.axis % tensor.ndim]
        if not positions:
            raise HookvizError(
                f"a tensor of shape {tuple(tensor.shape)} has no positions to average over; use Zero or Scale."
            )
        return torch.where(chosen, tensor.mean(positions, keepdim=True), tensor)


@dataclass(frozen=True)
class Scale(Edit):
    """Multiply channels by a factor."""

    factor: float
    channels: Channels = None

    def apply(self, tensor: Tensor) -> Tensor:
        """Multiply the chosen channels."""
        self._need_floats(tensor)
        return self._into(tensor, self.channels, tensor * self.factor)


@dataclass(frozen=True)
class AddNoise(Edit):
    """Add normal noise of a standard deviation, drawn for the whole tensor from a generator of its own.

    Every call gets the noise that ``torch.Generator(device).manual_seed(seed)`` gives; torch's random state is not
    touched.
    """

    std: float
    channels: Channels = None
    seed: int = 0

    def apply(self, tensor: Tensor) -> Tensor:
        """Add ``std`` times standard normal noise to the chosen channels."""
        self._need_floats(tensor)
        generator = torch.Generator(tensor.device).manual_seed(self.seed)
        noise = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device)
        return self._into(tensor, self.channels, tensor + self.std * noise)


@dataclass(frozen=True)
class Clamp(Edit):
    """Limit the values of channels to ``low`` and ``high``, either of which may be None."""

    low: float | None = None
    high: float | None = None
    channels: Channels = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise HookvizError("Clamp needs a low or a high limit.")
        super().__post_init__()

    def apply(self, tensor: Tensor) -> Tensor:
        """Clamp the chosen channels."""
        return self._into(tensor, self.channels, tensor.clamp(self.low, self.high))
