"""A network to experiment on: nothing done to it reaches the one it was made from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hook_lab.experiment import HookLabError, LossChoice
from hookviz.hooks.private_copy import detached_copy
from hookviz.hooks.structure import each_tensor, leaves


def own_copy(module: nn.Module) -> nn.Module:
    """A copy in eval mode: the weights' values are shared; ``.grad``, buffers and hooks are its own."""
    return detached_copy(module).eval()


def own_inputs(arguments: tuple[Any, ...], *, gradients: bool) -> tuple[Any, ...]:
    """Copies of a network's arguments; with ``gradients``, those that are tensors of floating point require them."""
    copied: tuple[Any, ...] = each_tensor(arguments, lambda tensor: tensor.detach().clone())
    for one in copied if gradients else ():
        if isinstance(one, Tensor) and one.is_floating_point():
            one.requires_grad_()
    return copied


def logits_of(output: Any) -> Tensor | None:
    """The scores (1, classes) in what a network returned; None where it gives none."""
    logits = getattr(output, "logits", output)
    if isinstance(logits, Tensor) and logits.ndim == 2 and len(logits) == 1 and logits.shape[1] > 1:
        return logits
    return None


def loss_of(output: Any, choice: LossChoice) -> Tensor:
    """The number that gradients are taken of; of a network without classes, the mean of its first output.

    Raises:
        HookLabError: there is no such class, or nothing that has gradients.
    """
    logits = logits_of(output)
    if logits is None:
        found = [tensor for _, tensor in leaves(output, Tensor) if tensor.requires_grad]
        if not found:
            raise HookLabError("no gradient flows through this network; choose a forward hook.")
        return found[0].mean()
    target = int(logits.argmax()) if choice.target is None else choice.target
    if not 0 <= target < logits.shape[1]:
        raise HookLabError(f"there is no class {target}; choose from 0 to {logits.shape[1] - 1}.")
    if choice.kind == "logit":
        return logits[0, target]
    return torch.nn.functional.cross_entropy(logits, torch.tensor([target], device=logits.device))
