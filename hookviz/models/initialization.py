"""The values a network is built with: drawn from one seed, or left out where a file is about to fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

SEED = 0
"""Untrained networks are as ``torch.manual_seed(0)`` and then their own constructor make them."""

# Those of nn.init that torch lets a mode see; all others come down to a tensor's own methods.
_INITIALIZERS: frozenset[Callable[..., Any]] = frozenset([nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_])
_DRAWS: frozenset[Callable[..., Any]] = frozenset(
    [
        Tensor.normal_,
        Tensor.uniform_,
        Tensor.bernoulli_,
        Tensor.random_,
        torch.rand,
        torch.randn,
        torch.randint,
        torch.randperm,
        torch.normal,
        torch.bernoulli,
    ]
)


@contextmanager
def seeded_initialization() -> Iterator[None]:
    """Networks built inside get the same values in any process and thread; the caller's random state is not touched."""
    with _plain_construction(), _OwnRandomness():
        yield


@contextmanager
def skipped_initialization() -> Iterator[None]:
    """Networks built inside have undefined values for a strict ``load_state_dict`` to fill, which saves seconds."""
    with _plain_construction(), _OwnRandomness(skip=True):
        yield


class _OwnRandomness(TorchFunctionMode):
    # Seeding and restoring torch's one global generator would let every other thread of a server draw from it
    # meanwhile, and a prediction that ends then would rewind it; a mode belongs to its thread alone.

    def __init__(self, *, skip: bool = False) -> None:
        super().__init__()
        self.skip = skip
        self.generator = torch.Generator().manual_seed(SEED)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        # Whole initializers are skipped, never a draw inside one: trunc_normal_ draws until every value is in range.
        if self.skip and func in _INITIALIZERS:
            return args[0] if args else options["tensor"]  # nn.init passes it on by this name
        if func in _INITIALIZERS or func in _DRAWS:
            options["generator"] = self.generator
        return func(*args, **options)


@contextmanager
def _plain_construction() -> Iterator[None]:
    """Ordinary float32 parameters on the CPU, whatever defaults the caller has set."""
    dtype = torch.get_default_dtype()
    with torch.inference_mode(False), torch.device("cpu"):
        # Global to the process, so set only where it is not float32 already, which it nearly always is.
        if dtype is not torch.float32:
            torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            if dtype is not torch.float32:
                torch.set_default_dtype(dtype)
