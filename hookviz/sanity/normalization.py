from __future__ import annotations

import torch
from torch import Tensor

from hookviz.models.own_recipe import Normalization


def normalized(unit: Tensor, normalization: Normalization) -> Tensor:
    """Values from 0 to 1, (N, C, H, W), without the mean and divided by the deviation."""
    mean, std = _per_channel(unit, normalization)
    return (unit - mean) / std


def unnormalized(batch: Tensor, normalization: Normalization) -> Tensor:
    """The way back."""
    mean, std = _per_channel(batch, normalization)
    return batch * std + mean


def possible_range(normalization: Normalization) -> tuple[float, float]:
    """The least and the greatest value that a normalised image can have."""
    mean, std = normalization
    return (
        min(-one / spread for one, spread in zip(mean, std, strict=True)),
        max((1 - one) / spread for one, spread in zip(mean, std, strict=True)),
    )


def _per_channel(batch: Tensor, normalization: Normalization) -> tuple[Tensor, Tensor]:
    mean, std = (torch.tensor(one, dtype=batch.dtype, device=batch.device)[:, None, None] for one in normalization)
    return mean, std
