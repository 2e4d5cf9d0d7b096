"""How much of each layer is kept: everything, half of the digits, or numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from hookviz.statistics import summarize

Keeping: TypeAlias = Literal["exact", "half", "statistics"]

BYTES_PER_VIEW = 256 * 2**20
"""What the layers of one view may take; so that two visitors' views fit into what is kept for all."""


def keep_function(keeping: Keeping) -> Callable[[Tensor], Any] | None:
    """What to keep of a tensor, as ``record(keep=...)`` takes it; None is an exact copy."""
    return {"exact": None, "half": halved, "statistics": summarize}[keeping]


def halved(tensor: Tensor) -> Tensor:
    """A copy in half precision, or an exact one of what is no 32-bit or 64-bit float, or goes beyond its range."""
    if tensor.dtype not in {torch.float32, torch.float64}:
        return tensor.detach().clone()
    half = tensor.detach().half()
    return half if torch.equal(half.isinf(), tensor.isinf()) else tensor.detach().clone()


def bytes_kept(exact: int, keeping: Keeping) -> int:
    """What the layers take that would take ``exact`` bytes exactly."""
    return {"exact": exact, "half": exact // 2, "statistics": 0}[keeping]
