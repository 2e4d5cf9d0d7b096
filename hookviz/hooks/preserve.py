"""Running a network ourselves without leaving a trace on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def preserved(module: nn.Module) -> Iterator[None]:
    """Run ``module`` in eval mode without gradients; afterwards it, the grad mode and the random state are as before.

    Put back: train/eval flags per module, ``requires_grad``, ``.grad``, buffers (values and identity), and the random
    state of the CPU and of the module's CUDA devices. The train/eval flags are the module's own, so threads that share
    a module must share it in eval mode.
    """
    with (
        _flags_kept(module),
        _gradients_kept(module),
        _buffers_kept(module),
        random_state_kept(module),
        torch.no_grad(),
    ):
        yield


@contextmanager
def random_state_kept(module: nn.Module) -> Iterator[None]:
    """Put the random state back, on the CPU and on the module's CUDA devices, if something drew from it.

    ``torch.random.fork_rng`` puts it back always, which would rewind other threads' draws.
    """
    devices = {tensor.device for tensor in module.parameters() if tensor.is_cuda}
    before = torch.get_rng_state()
    before_on = {device: torch.cuda.get_rng_state(device) for device in devices}
    try:
        yield
    finally:
        if not torch.equal(torch.get_rng_state(), before):
            torch.set_rng_state(before)
        for device, state in before_on.items():
            torch.cuda.set_rng_state(state, device)


@contextmanager
def _flags_kept(module: nn.Module) -> Iterator[None]:
    before = [(one, one.training) for one in module.modules()]
    try:
        for one, _ in before:
            one.training = False
        yield
    finally:
        for one, training in before:
            one.training = training


@contextmanager
def _gradients_kept(module: nn.Module) -> Iterator[None]:
    before = [(parameter, parameter.requires_grad, parameter.grad) for parameter in module.parameters()]
    try:
        yield
    finally:
        for parameter, requires_grad, gradient in before:
            if parameter.requires_grad is not requires_grad:
                parameter.requires_grad_(requires_grad)
            if parameter.grad is not gradient:
                parameter.grad = gradient


@contextmanager
def _buffers_kept(module: nn.Module) -> Iterator[None]:
    before = [
        (owner, name, buffer, None if buffer is None else buffer.detach().clone())
        for owner in module.modules()
        for name, buffer in owner._buffers.items()
    ]
    try:
        yield
    finally:
        for owner, name, buffer, value in before:
            if owner._buffers.get(name) is not buffer:
                owner._buffers[name] = buffer
            if buffer is not None and value is not None:
                _restore(buffer, value)


def _restore(buffer: Tensor, value: Tensor) -> None:
    if not torch.equal(buffer, value):
        with torch.no_grad():
            buffer.copy_(value)
