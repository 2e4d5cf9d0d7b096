"""Copies that cost nothing until somebody writes: torch's copy-on-write clone, where it is safe.

Most outputs of a forward are never written to again, and those that are, by an in-place operation, keep their memory in
the copy while the writer gets a new one. ``Tensor._lazy_clone`` is private to torch, so that everything is looked at
before it is called, and a plain copy is made wherever anything is unusual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from torch import Tensor, nn

from hookviz.hooks.code_names import uses_any
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import leaves

_PAST_TORCH = frozenset(
    {
        *("numpy", "__array__", "from_numpy", "asarray", "frombuffer", "from_dlpack", "to_dlpack", "data_ptr"),
        *("resize_", "resize_as_", "set_", "out", "ctypes"),
    }
)
"""Names in a network's code by which memory is reached that torch does not watch, or made larger, which torch 2.14
cannot do with memory that is marked to be copied on writing."""

CAN_WAIT = hasattr(Tensor, "_lazy_clone") and hasattr(torch._C, "_storage_Use_Count")
"""Whether torch has the functions; they may go as they came."""

_keys = torch._C._dispatch_keys
_holders = getattr(torch._C, "_storage_Use_Count", lambda _: 0)
_TENSOR_AND_STORAGE = 2
"""Who holds the memory of a tensor without views: it, and the Python object of its storage."""

_PLAIN = _keys(torch.empty(0)).raw_repr()
"""Dense, strided, on the CPU; not quantised, conjugated, negated, batched by vmap, nor made in inference mode."""

_REAL = frozenset(
    {
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    }
)
"""Numbers that are neither conjugated nor quantised."""


class LazyCopies:
    """Copies the tensors that were made in a run; parameters, buffers and what the caller passed are copied at once."""

    def __init__(self, modules: Collection[nn.Module]) -> None:
        self._safe = CAN_WAIT and not uses_any(_PAST_TORCH, modules)
        self._waits = False
        self._modules = modules
        self._buffers: set[int] = set()
        self._arguments: set[int] = set()
        self._weights: set[int] | None = None

    def begin(self, arguments: object) -> None:
        """Start a run with these arguments."""
        self._waits = self._safe and not torch.is_inference_mode_enabled()
        if self._waits:
            self._arguments = _storages([tensor for _, tensor in leaves(arguments, Tensor)])
            owners = [module for module in self._modules if module._buffers]
            self._buffers = {id(buffer) for module in owners for buffer in module._buffers.values()}
            self._weights = None

    def copy(self, tensor: Tensor) -> Tensor:
        """Copy a tensor: as ``snapshot`` does, but perhaps later, when somebody is about to write into either."""
        if not self._waits or type(tensor) is not Tensor:  # a subclass may be anything
            return snapshot(tensor)
        # Asking torch for the keys takes as long as the copy.
        if not (tensor.dtype in _REAL and tensor.is_cpu) and _keys(tensor).raw_repr() != _PLAIN:
            return snapshot(tensor)
        try:
            storage = tensor.untyped_storage()
            memory = storage._cdata
            if (
                storage.nbytes() != tensor.nbytes  # part of a larger memory would keep all of it
                or memory in self._arguments
                or id(tensor) in self._buffers
                or (_holders(memory) > _TENSOR_AND_STORAGE and memory in self._memory_of_weights())
            ):
                return snapshot(tensor)
            copied = (tensor.detach() if tensor.requires_grad else tensor)._lazy_clone()
        except RuntimeError:  # the memory is numpy's or a file's, or there is none: sparse, batched by vmap
            return snapshot(tensor)
        # What was made in inference mode has no place in a graph.
        return snapshot(tensor) if copied.is_inference() else copied

    def _memory_of_weights(self) -> set[int]:
        # Only now, since a run without views asks for it never.
        if self._weights is None:
            self._weights = _storages(_weights(self._modules))
        return self._weights

    def end(self, output: object) -> None:
        """End a run: what the caller gets is ordinary memory again, shared with nothing."""
        if self._safe:
            for _, tensor in leaves(output, Tensor):
                if type(tensor) is Tensor and _keys(tensor).raw_repr() == _PLAIN:
                    tensor.data_ptr()  # the right to write is asked for here, so torch copies what is marked


def _weights(modules: Iterable[nn.Module]) -> list[Tensor]:
    owned = [own for module in modules for own in (module._parameters, module._buffers) if own]
    return [tensor for own in owned for tensor in own.values() if tensor is not None]


def _storages(tensors: Collection[Tensor]) -> set[int]:
    """Say which memory tensors are in, whatever views of it they are; those without any of their own are left out."""
    try:
        return {tensor.untyped_storage()._cdata for tensor in tensors}
    except (NotImplementedError, RuntimeError, ValueError):  # sparse, batched by vmap, of a lazy module
        return set().union(*(_storages([tensor]) for tensor in tensors)) if len(tensors) > 1 else set()
