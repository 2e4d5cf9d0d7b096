"""Keeping a tensor's values as they are at this moment."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from hookviz.errors import KeepError
from hookviz.hooks.structure import map_leaves

Keep: TypeAlias = Callable[[Tensor], Any]


def snapshot(tensor: Tensor) -> Tensor:
    """Copy a tensor: same values, dtype, device and layout; no graph, no memory shared, usable in autograd later."""
    if torch.is_inference_mode_enabled() or tensor.is_inference():
        with torch.inference_mode(mode=False), torch.no_grad():
            return _cloned(tensor)
    return _cloned(tensor.detach())


def _cloned(tensor: Tensor) -> Tensor:
    try:
        return tensor.clone()
    except NotImplementedError:  # torch cannot clone numbers of fewer than eight bits, but it can copy their memory
        return copy.deepcopy(tensor)


class Keeper:
    """Applies what the caller wants kept of each tensor; without such a function, the whole tensor is copied."""

    def __init__(self, keep: Keep | None, copy: Callable[[Tensor], Tensor] = snapshot) -> None:
        self._keep = keep
        self._copy = copy

    @property
    def keeps_tensors(self) -> bool:
        """Whether what is kept of each tensor is that tensor."""
        return self._keep is None

    def value(self, layer: str, value: Any) -> Any:
        """Keep every tensor of a structure."""
        if isinstance(value, Tensor):
            return self.tensor(layer, value)
        return map_leaves(value, Tensor, lambda _, tensor: self.tensor(layer, tensor))

    def tensor(self, layer: str, tensor: Tensor) -> Any:
        """Keep one tensor.

        Raises:
            KeepError: the function failed, or wrote into the tensor.
        """
        if self._keep is None:
            return self._copy(tensor)
        version = _version(tensor)
        try:
            with torch.no_grad():
                kept = self._keep(tensor.detach())
        except Exception as error:
            raise KeepError(f"the keep function failed on layer {layer!r}: {type(error).__name__}: {error}") from error
        if _version(tensor) != version:
            raise KeepError(f"the keep function wrote into the tensor of layer {layer!r}; let it work on a clone.")
        # It may have returned a view of the live tensor, which the network is about to overwrite.
        return map_leaves(kept, Tensor, lambda _, one: snapshot(one))


def _version(tensor: Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # inference tensors count no versions
