"""One run of a network that starts from the network as it stands, and of which nothing stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import private_copy

Arguments: TypeAlias = "tuple[tuple[Any, ...], dict[str, Any]]"
"""What a network is called with: positional and keyword arguments."""


@contextmanager
def private_run(module: nn.Module, *, gradients: bool = False) -> Iterator[nn.Module]:
    """A fresh private copy in eval mode, for one run inside a ``with`` block.

    Two runs start from the same buffers, the same attributes and the same random state, so that a network which counts
    its calls or draws in eval mode gives the same twice.
    """
    with torch.inference_mode(mode=False), run_eagerly(), torch.set_grad_enabled(gradients):
        private = private_copy(module).eval()
        with random_state_kept(private):
            yield private


def as_arguments(args: Any, kwargs: Mapping[str, Any] | None) -> Arguments:
    """The arguments as they were meant: a tensor stands for a call with it alone.

    Raises:
        HookvizError: positional arguments that are not in a tuple.
    """
    if isinstance(args, Tensor):
        args = (args,)
    if not isinstance(args, tuple):
        raise HookvizError(
            f"give what the network is called with as a tuple, such as (image,), not as {type(args).__name__}."
        )
    return args, dict(kwargs or {})
