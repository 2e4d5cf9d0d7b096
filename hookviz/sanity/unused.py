"""Layers and parameters that have no part in the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import detached_copy
from hookviz.hooks.structure import each_tensor, leaves
from hookviz.sanity.findings import Finding, counted, named
from hookviz.types import LayerInfo


def unused_findings(
    module: nn.Module, layers: Sequence[LayerInfo], inputs: Sequence[tuple[Any, ...]]
) -> Iterator[Finding]:
    """Layers with parameters that were never called, and parameters of called ones that the answer does not hang on."""
    never = [one.name for one in layers if one.parameters and not one.calls and _is_lowest(module, one.name)]
    if never:
        yield Finding(
            "note",
            "weights",
            "never_called",
            f"{counted(len(never), 'layer')} with parameters {'is' if len(never) == 1 else 'are'} never called: "
            f"{named(never)}.",
            "Its values change nothing." if len(never) == 1 else "Their values change nothing.",
            "Usual for auxiliary heads that only train; otherwise look at the network's forward.",
            tuple(never),
            amount=len(never),
        )
    unused = [name for name in _without_gradient(module, inputs) if not _is_below(name, never)]
    if unused:
        yield Finding(
            "note",
            "weights",
            "unused_parameter",
            f"The answer does not depend on {counted(len(unused), 'parameter')}: {named(unused)}.",
            "It could be left out." if len(unused) == 1 else "They could be left out.",
            "Look at the forward of the layer that holds it.",
            tuple(dict.fromkeys(name.rpartition(".")[0] for name in unused)),
            amount=len(unused),
        )


def _is_lowest(module: nn.Module, name: str) -> bool:
    """Whether a layer holds parameters itself, so that it is named rather than what contains it."""
    return any(True for _ in module.get_submodule(name).parameters(recurse=False))


def _is_below(name: str, layers: Sequence[str]) -> bool:
    return any(name.startswith(f"{layer}.") for layer in layers)


def _without_gradient(module: nn.Module, inputs: Sequence[tuple[Any, ...]]) -> list[str]:
    """Parameters that no path leads to from what the network returns; none where it cannot be differentiated."""
    if not inputs:
        return []
    private = detached_copy(module).eval()
    for parameter in private.parameters():
        parameter.requires_grad_(parameter.is_floating_point())
    try:
        with random_state_kept(private), torch.enable_grad():
            output = private(*each_tensor(inputs[0], Tensor.clone))
            ends = [one.sum() for _, one in leaves(output, Tensor) if one.requires_grad]
            if not ends:
                return []
            parameters = dict(private.named_parameters())
            found = torch.autograd.grad(torch.stack(ends).sum(), list(parameters.values()), allow_unused=True)
    except (RuntimeError, NotImplementedError):  # int8, in-place operations on what autograd needs, no memory
        return []
    return [name for name, gradient in zip(parameters, found, strict=True) if gradient is None]
