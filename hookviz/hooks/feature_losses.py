"""Comparing the features of two networks, whose channels and sizes may differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.errors import HookvizError

FeatureLoss: TypeAlias = Literal["mse", "cosine", "attention"]

_CONVOLUTIONS: dict[int, Any] = {4: nn.Conv2d, 5: nn.Conv3d}
_POOLING: dict[int, Callable[..., Tensor]] = {4: F.adaptive_avg_pool2d, 5: F.adaptive_avg_pool3d}


def channel_axis(feature: Tensor) -> int:
    """Where the channels are: behind the batch, and last in tokens (N, T, C)."""
    return 2 if feature.ndim == 3 else 1


def adapter_for(feature: Tensor, target: Tensor) -> nn.Module | None:
    """Make a trainable 1x1 convolution, or linear layer, between two numbers of channels; None where they agree.

    Raises:
        HookvizError: features of different or unknown kinds.
    """
    if feature.ndim != target.ndim or not 2 <= feature.ndim <= 5:
        raise _misfit(feature, target)
    given, wanted = feature.shape[channel_axis(feature)], target.shape[channel_axis(target)]
    if given == wanted:
        return None
    kind = _CONVOLUTIONS.get(feature.ndim)
    adapter: nn.Module = nn.Linear(given, wanted) if kind is None else kind(given, wanted, kernel_size=1)
    return adapter.to(feature.device, feature.dtype)


def same_size(feature: Tensor, target: Tensor, *, channels: bool) -> tuple[Tensor, Tensor]:
    """Pool two maps to the smaller height and width of both, and check that all else agrees.

    Raises:
        HookvizError: it does not; ``channels`` says whether their numbers of channels have to agree too.
    """
    if feature.ndim == target.ndim and feature.ndim in _POOLING:
        size = tuple(map(min, feature.shape[2:], target.shape[2:]))
        pool = _POOLING[feature.ndim]
        feature, target = (one if one.shape[2:] == size else pool(one, size) for one in (feature, target))
    axis = channel_axis(feature)
    ours, theirs = list(feature.shape), list(target.shape)
    if not channels and len(ours) == len(theirs) and len(ours) > axis:
        ours[axis] = theirs[axis] = 1
    if ours != theirs:
        raise _misfit(feature, target)
    return feature, target


def _mse(feature: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(feature, target)


def _cosine(feature: Tensor, target: Tensor) -> Tensor:
    return 1 - F.cosine_similarity(feature, target, dim=channel_axis(feature)).mean()


def _attention(feature: Tensor, target: Tensor) -> Tensor:
    if feature.ndim < 3:
        raise HookvizError("vectors have no places to attend to; use loss='mse' or 'cosine' for this pair.")
    maps = [F.normalize(one.square().mean(channel_axis(one)).flatten(1), dim=1) for one in (feature, target)]
    return (maps[0] - maps[1]).square().mean()


FEATURE_LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": _mse,
    "cosine": _cosine,
    "attention": _attention,
}


def _misfit(feature: Tensor, target: Tensor) -> HookvizError:
    return HookvizError(
        f"the student's feature {tuple(feature.shape)} cannot be compared with the teacher's {tuple(target.shape)}; "
        "choose layers of the same kind, or bring an adapter."
    )
