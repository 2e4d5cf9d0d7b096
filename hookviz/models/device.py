from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeAlias
from warnings import warn

import torch
from torch import nn

from hookviz.errors import ModelError

OnNote: TypeAlias = Callable[[str], None]
"""Told one sentence when something was done in another way than asked."""

_OUT_OF_MEMORY = ("out of memory", "DefaultCPUAllocator")


class DeviceWarning(UserWarning):
    """A network that was to run on an accelerator runs on the CPU."""


def choose_device(device: str | torch.device) -> torch.device:
    """``"auto"`` is CUDA, else MPS, else the CPU; everything else is taken at its word.

    Raises:
        ModelError: this machine has no such device.
    """
    available = available_devices()
    if device == "auto":
        return available[0]
    for one in available:
        if str(device) in {one.type, f"{one.type}:{one.index or 0}"}:
            return one
    names = ", ".join(map(str, ["auto", *available]))
    raise ModelError(f"There is no device {str(device)!r} here; choose one of {names}.")


def available_devices() -> list[torch.device]:
    """The devices of this machine, the one that ``"auto"`` means first, the CPU last."""
    devices: list[torch.device] = []
    if torch.cuda.is_available():
        current, count = torch.cuda.current_device(), torch.cuda.device_count()
        devices += [torch.device("cuda", index) for index in sorted(range(count), key=lambda one: one != current)]
    if torch.backends.mps.is_available():
        devices.append(torch.device("mps", 0))
    return [*devices, torch.device("cpu")]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether ``error`` says that a device's memory is full; MPS and the CPU say so in words only."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _OUT_OF_MEMORY)


def place(module: nn.Module, device: torch.device) -> torch.device:
    """Move ``module`` to ``device``, or to the CPU where it does not fit; the device it is on now."""
    try:
        module.to(device)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
    else:
        return device
    cpu = torch.device("cpu")
    module.to(cpu)  # the part that had fitted comes back
    return cpu


def copy_on_cpu(module: nn.Module) -> nn.Module:
    """A copy of ``module`` with parameters and buffers on the CPU, for which the accelerator gives no memory."""
    memo: dict[int, object] = {
        id(parameter): nn.Parameter(parameter.detach().cpu(), requires_grad=parameter.requires_grad)
        for parameter in module.parameters()
    }
    memo |= {id(buffer): buffer.detach().cpu() for buffer in module.buffers()}
    return copy.deepcopy(module, memo)


def out_of_memory_note(name: str, device: torch.device) -> str:
    """The sentence for a reader whose network went to the CPU."""
    return f"{name} does not fit in the memory of {device}, so it runs on the CPU, which is slower."


def warn_note(note: str) -> None:
    """What becomes of a note where nobody asked for it."""
    warn(note, DeviceWarning, stacklevel=3)
