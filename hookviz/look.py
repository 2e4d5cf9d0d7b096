"""One look at a network: a forward on an input, with some layers recorded and their later overwriting watched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.names import LayerNames
from hookviz.hooks.operations import record_operations
from hookviz.hooks.overwrites import Overwrite, watch_overwrites
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Call
from hookviz.hooks.snapshot import Keep
from hookviz.hooks.structure import each_tensor, leaves
from hookviz.models.device import copy_on_cpu, is_out_of_memory


class LookError(HookvizError):
    """A forward that broke off; the sentence names the layer."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one forward showed: the calls of each layer and operation, and who overwrote what afterwards."""

    calls: dict[str, tuple[Call, ...]]
    overwrites: tuple[Overwrite, ...]


def look(module: nn.Module, arguments: tuple[Any, ...], layers: Sequence[str], *, keep: Keep | None = None) -> Look:
    """Run a private copy of a network, in eval mode and without gradients, and record layers and operations.

    Nothing happens to the network itself. Where its accelerator's memory is full, the CPU does it.

    Args:
        module: the network.
        arguments: what it is called with, on its device.
        layers: names of layers, and of functional operations as ``list_operations`` gives them.
        keep: applied to each tensor in place of a copy, as in ``record``; then nothing is kept of what overwrote what.

    Raises:
        LookError: the forward failed.
    """
    try:
        return _look(private_copy(module).eval(), arguments, layers, keep)
    except LookError as error:
        if _is_on_cpu(arguments) or not (error.__cause__ and is_out_of_memory(error.__cause__)):
            raise
    # Outside the except: the error holds the failed forward's tensors, and with them the memory, until it is gone.
    return _look(copy_on_cpu(private_copy(module)).eval(), each_tensor(arguments, Tensor.cpu), layers, keep)


def _is_on_cpu(arguments: tuple[Any, ...]) -> bool:
    return all(tensor.device.type == "cpu" for _, tensor in leaves(arguments, Tensor))


def _look(private: nn.Module, arguments: tuple[Any, ...], layers: Sequence[str], keep: Keep | None) -> Look:
    names = LayerNames(private)
    modules, operations = [name for name in layers if name in names], [name for name in layers if name not in names]
    with (
        random_state_kept(private),
        torch.no_grad(),
        record(private, modules, keep=keep) as rec,
        record_operations(private, operations, keep=keep) as seen,
        watch_overwrites(private, [] if keep else modules) as overwrites,
    ):
        try:
            private(*each_tensor(arguments, Tensor.clone))
        except RuntimeError as error:
            raise LookError(str(rec.failed or error)) from error
    calls = {name: tuple(rec.get(name, ()) or seen.get(name, ())) for name in layers}
    return Look(calls, tuple(overwrites))
