"""Running a network as it stands, train mode and gradients included, without leaving a trace on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import GradientError
from hookviz.hooks.preserve import preserved
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves, map_leaves


@contextmanager
def left_as_found(module: nn.Module, *, gradients: bool) -> Iterator[None]:
    """Let ``module`` run in its own train/eval flags; afterwards it and the random state are as before.

    A backward pass inside the block finds every ``.grad`` empty, and leaves them as they were.
    """
    training = [(one, one.training) for one in module.modules()]
    with torch.inference_mode(mode=False), preserved(module), torch.set_grad_enabled(gradients):
        for one, flag in training:
            one.training = flag
        for parameter in module.parameters() if gradients else ():
            parameter.grad = None  # backward would add to it in place
        yield


def own_arguments(arguments: Any) -> Any:
    """Copy the tensors of arguments, so that what a network does to them stays here."""
    return map_leaves(arguments, Tensor, lambda _, tensor: _own(tensor))


def _own(tensor: Tensor) -> Tensor:
    copied = snapshot(tensor)
    if not tensor.requires_grad:
        return copied
    copied.requires_grad_()
    return copied if tensor.is_leaf else copied.clone()


def backward_from(value: Any) -> None:
    """Run the backward pass of a loss.

    Raises:
        GradientError: the loss is not one number, or nothing it was computed from requires a gradient.
    """
    if not isinstance(value, Tensor) or value.numel() != 1:
        given = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
        raise GradientError(f"loss must make one number of the output, not {given}; for instance its .sum().")
    if not value.requires_grad:
        raise GradientError(
            "nothing requires a gradient: every parameter is frozen and so is the input; call requires_grad_() on the "
            "input first."
        )
    value.backward()


def tensors_in(value: Any) -> list[Tensor]:
    """The tensors of a structure, in order."""
    return [tensor for _, tensor in leaves(value, Tensor)]
