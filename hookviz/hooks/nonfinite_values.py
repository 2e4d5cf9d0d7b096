"""Looking for NaN and Inf in tensors of every kind."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from hookviz.hooks.structure import leaves

Bad: TypeAlias = "tuple[str, int, int, int]"
"""The path of a tensor, and how many NaN, +Inf and -Inf it holds."""


def first_bad(value: Any) -> Bad | None:
    """Find the first tensor in a structure that holds NaN or Inf."""
    for path, tensor in leaves(value, Tensor):
        values = _numbers(tensor)
        if values is not None and not bool(values.isfinite().all()):
            return path, int(values.isnan().sum()), int(values.isposinf().sum()), int(values.isneginf().sum())
    return None


def _numbers(tensor: Tensor) -> Tensor | None:
    """The floating-point numbers a tensor stores; None where it has none, or none that could be anything but finite."""
    tensor = tensor.detach()
    if tensor.is_meta or tensor.is_quantized or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    if tensor.is_nested:
        return torch.cat([part.flatten() for part in tensor.unbind()])
    if tensor.is_mkldnn:
        tensor = tensor.to_dense()
    elif tensor.layout is not torch.strided:
        tensor = tensor.coalesce().values() if tensor.is_sparse else tensor.values()
    if tensor.is_complex():
        return torch.view_as_real(tensor.resolve_conj())
    return tensor.float() if tensor.element_size() == 1 else tensor  # float8 has hardly any operations
