"""One tensor among those that a layer returned."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from hookviz.describe import title
from hookviz.errors import HookvizError
from hookviz.hooks import Call
from hookviz.hooks.structure import leaves


def one_call(calls: Sequence[Call], number: int) -> Call:
    """A layer's call, counted from 1.

    Raises:
        HookvizError: it does not run so often.
    """
    if number > len(calls):
        times = "once" if len(calls) == 1 else f"{len(calls)} times"
        raise HookvizError(
            f"{title(calls[0].layer)} runs {times}, so there is no call {number}; choose an earlier one."
        )
    return calls[number - 1]


def one_tensor(call: Call, path: str | None) -> tuple[str, Tensor]:
    """A tensor that a call returned, and its path; without one to look for, the first.

    Raises:
        HookvizError: none is there, or none at all.
    """
    tensors = dict(leaves(call.output, Tensor))
    if not tensors:
        raise HookvizError(f"{title(call.layer)} returned no tensor; choose another layer.")
    if path is None:
        return next(iter(tensors.items()))
    if path not in tensors:
        there = ", ".join(map(repr, tensors))
        raise HookvizError(f"{title(call.layer)} returned no part {path!r}; choose one of {there}.")
    return path, tensors[path]
