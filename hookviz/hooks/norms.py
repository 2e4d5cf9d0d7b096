"""Norms of gradients, which neither overflow nor hide what is not finite."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor


def wide_values(tensor: Tensor) -> Tensor:
    """The stored values in float64 (complex128), without a graph; of a sparse tensor those it holds."""
    detached = tensor.detach()
    if detached.layout is torch.sparse_coo:
        detached = detached.coalesce().values()
    return detached.to(torch.complex128 if detached.is_complex() else torch.float64)


def is_finite(tensor: Tensor) -> bool:
    """Whether a tensor holds neither NaN nor an infinity."""
    return bool(torch.isfinite(wide_values(tensor)).all())


def total_norm(tensors: Iterable[Tensor], order: float = 2.0) -> float:
    """The norm of all tensors' values together, in float64; 0.0 where there are none.

    Values of 1e20, whose squares float32 cannot hold, and of 1e200, whose squares float64 cannot hold, have the norm
    they should have.
    """
    values = [one for one in map(wide_values, tensors) if one.numel()]
    if not values:
        return 0.0
    plain = _norm(values, order)
    largest = max(float(one.abs().max()) for one in values)
    if math.isfinite(plain) and (plain > 1e-150 or largest == 0):
        return plain
    return plain if not math.isfinite(largest) else largest * _norm([one / largest for one in values], order)


def _norm(values: list[Tensor], order: float) -> float:
    each = [torch.linalg.vector_norm(one, order).cpu() for one in values]
    return float(torch.linalg.vector_norm(torch.stack(each), order))
