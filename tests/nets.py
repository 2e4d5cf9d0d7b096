"""Tiny networks, each named after the trap it sets, and the oracles that the tests compare with."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.checkpoint import checkpoint


class InplaceReLUNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True))


class ReusedReLUNet(nn.Module):
    """One ReLU after each of two Linears of different widths."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 3)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.second(self.relu(self.first(x))))  # type: ignore[no-any-return]


class ResidualInplaceNet(nn.Module):
    """``y = conv(x); y += x; relu_(y)``: torch's full backward hooks raise here."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        y += x
        return self.relu(y)  # type: ignore[no-any-return]


class ConcatNet(nn.Module):
    """A dense block in small: everything so far is concatenated, and then rectified in place."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Conv2d(2, 3, 1)
        self.b = nn.Conv2d(5, 2, 1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        together = torch.cat([x, self.a(x)], 1)
        return self.relu(torch.cat([together, self.b(together)], 1))  # type: ignore[no-any-return]


class Pair(NamedTuple):
    mean: Tensor
    rest: Tensor | None


@dataclass(frozen=True)
class Boxes:
    scores: Tensor
    label: str


class PlainBag:
    """Neither a tuple nor a dataclass, like torchvision's ImageList."""

    def __init__(self, tensors: Tensor, sizes: list[tuple[int, int]]) -> None:
        self.tensors = tensors
        self.sizes = sizes


class Returning(nn.Module):
    """Returns whatever a function makes of its input."""

    def __init__(self, make: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> Any:
        return self.make(x)


class DictOutputNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = DictHeads()

    def forward(self, x: Tensor) -> Tensor:
        out = self.heads(x)
        return out["a"].sum() + (out["b"][0] ** 2).sum()  # type: ignore[no-any-return]


class DictHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> dict[str, Any]:
        return {"a": self.lin(x), "b": [x * 2], "c": None, "d": "words"}


class CheckpointNet(nn.Module):
    def __init__(self, *, reentrant: bool | None) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
        self.head = nn.Linear(4, 2)
        self.reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        if self.reentrant is None:
            return self.head(self.block(x))  # type: ignore[no-any-return]
        return self.head(checkpoint(self.block, x, use_reentrant=self.reentrant))  # type: ignore[no-any-return]


class FifthFailsNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 6), nn.ReLU(), nn.Linear(7, 2), nn.ReLU())


class KeywordNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin(input=x)  # type: ignore[no-any-return]


class TwoBranchNet(nn.Module):
    """Which branch runs depends on the values, so nothing can be known from shapes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 3)
        self.positive = nn.Linear(3, 3)
        self.tail = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for _ in range(2 if bool(x.sum() > 0) else 1):
            x = self.positive(x)
        return self.tail(x)  # type: ignore[no-any-return]


class FunctionalNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu_(self.conv(x))


class AliasNet(nn.Module):
    """One module under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(3, 3))
        self.tied = self.encoder[0]

    def forward(self, x: Tensor) -> Tensor:
        return self.tied(self.encoder(x))  # type: ignore[no-any-return]


def hook_count(module: nn.Module) -> int:
    """How many hooks sit on a network, torch's global ones included (oracle O4)."""
    dicts = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    own = sum(len(getattr(one, name)) for one in module.modules() for name in dicts)
    return own + sum(len(getattr(torch_module, f"_global{name}")) for name in dicts)


def fingerprint(module: nn.Module) -> dict[str, Any]:
    """Everything that looking must not change (oracle O5)."""
    return {
        "state": {name: tensor.detach().clone() for name, tensor in module.state_dict().items()},
        "training": {name: one.training for name, one in module.named_modules()},
        "requires_grad": {name: one.requires_grad for name, one in module.named_parameters()},
        "grads": {name: one.grad is None for name, one in module.named_parameters()},
        "attributes": {name: sorted(one.__dict__) for name, one in module.named_modules()},
        "hooks": hook_count(module),
    }


def same(a: Any, b: Any) -> bool:
    """Equal to the last bit, NaN equal to itself, structures and their types included."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return torch.equal(a, b) or bool(
            torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def clones_at_hook_time(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Any, dict[str, list[Any]]]:
    """Run a deepcopy with torch's own hooks that clone at once (oracle O1): the output, and each layer's by call."""
    private = copy.deepcopy(module)
    seen: dict[str, list[Any]] = {}
    for name, layer in private.named_modules():

        def store(_: nn.Module, __: Any, output: Any, name: str = name) -> None:
            seen.setdefault(name, []).append(cloned(output))

        layer.register_forward_hook(store)
    return private(*args, **kwargs), seen


def cloned(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(cloned, value))
    if isinstance(value, (list, tuple)):
        return type(value)(cloned(item) for item in value)
    if isinstance(value, dict):
        return type(value)((key, cloned(item)) for key, item in value.items())
    return value
