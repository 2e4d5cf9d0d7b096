"""Networks put together by chance: whatever they write where, every layer is kept as it was when it returned."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hookviz.hooks import record
from tests.nets import cloned, same

FEATURES = 6


class Passing(nn.Module):
    """Returns its buffer, or a view of its parameter."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.randn(4, FEATURES))
        self.weight = nn.Parameter(torch.randn(4, FEATURES))

    def forward(self, x: Tensor) -> Tensor:
        return self.table if x.sum() > 0 else self.weight.view(4, FEATURES)


def _enlarged(x: Tensor, _: Tensor) -> Tensor:
    return torch.cat([x, x])[: len(x)]


def _written(write: Callable[[Tensor], object]) -> Callable[[Tensor, Tensor], Tensor]:
    """The same ``x``, after something was written into an earlier layer's output."""

    def after(x: Tensor, earlier: Tensor) -> Tensor:
        write(earlier)
        return x

    return after


STEPS: list[Callable[[Tensor, Tensor], Any]] = [
    lambda x, _: x.add_(1),
    lambda x, _: x * 1.5,
    lambda x, _: x.view(-1).view(x.shape),
    lambda x, _: x[:, :],
    _enlarged,
    _written(lambda earlier: earlier.detach().mul_(0.5)),
    _written(lambda earlier: earlier.data.sub_(0.25)),
    _written(torch.relu_),
]

LAYERS: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(FEATURES, FEATURES),
    lambda: nn.ReLU(inplace=True),
    lambda: nn.Hardswish(inplace=True),
    nn.Identity,
    nn.Dropout,
    lambda: nn.BatchNorm1d(FEATURES),
    Passing,
]


class Block(nn.Module):
    """Layers one after the other, then steps of its own; returns a tensor, a tuple or a dict."""

    def __init__(self, chance: random.Random, depth: int, shared: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([_layer(chance, depth - 1, shared) for _ in range(chance.randint(1, 3))])
        self.steps = chance.choices(range(len(STEPS)), k=chance.randint(0, 3))
        self.returns = chance.choice(["tensor", "tensor", "tuple", "dict"])

    def forward(self, x: Tensor) -> Any:
        outputs: list[Tensor] = []
        for layer in self.layers:
            output = layer(x)
            x = output if isinstance(output, Tensor) else output[0 if isinstance(output, tuple) else "x"]
            outputs.append(x)
        for step in self.steps:
            x = STEPS[step](x, outputs[0])
        return {"tensor": x, "tuple": (x, outputs[0]), "dict": {"x": x, "first": outputs[0]}}[self.returns]


def _layer(chance: random.Random, depth: int, shared: nn.Module) -> nn.Module:
    if depth > 0 and chance.random() < 0.7:
        return Block(chance, depth, shared)
    made: list[Callable[[], nn.Module]] = [*LAYERS, lambda: shared]
    return chance.choice(made)()


def seen_by_cloning_hooks(net: nn.Module, part: nn.Module, x: Tensor) -> tuple[Any, dict[str, list[Any]]]:
    """What a part of a network returns, and each layer's outputs, which torch's own hooks cloned at once."""
    seen: dict[str, list[Any]] = {}
    handles = [
        layer.register_forward_hook(lambda _, __, out, name=name: seen.setdefault(name, []).append(cloned(out)))
        for name, layer in net.named_modules()
    ]
    try:
        return cloned(part(x)), seen
    finally:
        for handle in handles:
            handle.remove()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("seed", range(60))
def test_every_layer_of_a_network_made_by_chance_is_exact(seed: int, mode: Callable[[], Any]) -> None:
    """C01, C02: run whole and in part, recorded by one and by two at once, with inputs and without."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    torch.manual_seed(seed)
    net, x = Block(chance, 3, nn.ELU(inplace=True)).eval(), torch.randn(4, FEATURES)
    as_built = copy.deepcopy(net.state_dict())
    called = [layer for layer in net.modules() if not isinstance(layer, nn.ModuleList)]
    for part in (net, chance.choice(called)):
        with mode():
            expected, outputs = seen_by_cloning_hooks(net, part, x.clone())
        for inputs in (False, True):
            net.load_state_dict(as_built)  # networks made by chance write into their own weights, too
            with mode(), record(net, inputs=inputs) as first, record(net) as second:
                output = cloned(part(x.clone()))
            assert same(output, expected)
            for recording in (first, second):
                assert same({name: [call.output for call in calls] for name, calls in recording.items()}, outputs)
        net.load_state_dict(as_built)
