"""Networks whose factory planted hooks on them, for the page Hooks to find."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hookviz import Network


def planted(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
    return output * 1


def noted(*_: Any) -> None: ...


def halved(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
    """A hook of the operator's own, for ``--hook``."""
    return output / 2


def broken(*_: Any) -> None:
    raise ValueError("a hook may fail")


NOT_A_FUNCTION = 3


def small() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 3),
    )  # fmt: skip


def hooked() -> Network:
    """A hook that replaces an output, the deprecated kind, and a full backward hook in front of an in-place ReLU."""
    module = small()
    module[0].register_forward_hook(planted)
    module[5].register_backward_hook(noted)
    module[1].register_full_backward_hook(noted)
    return Network(module, class_names=["cat", "dog", "bird"], example=torch.zeros(1, 3, 16, 16))
