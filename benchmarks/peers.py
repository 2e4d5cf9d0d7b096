"""Recording every module of a network: hookviz against what others do, all in one run.

Run with ``python -m benchmarks.peers [network ...]``. The two hooks that tutorials show are always measured; captum and
torchlens where they are installed. One way is wrong, and the last column says how often: of a reference that is stored
the values change when the next operation writes in place.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torchvision import models

from benchmarks.timing import ratio
from hookviz.hooks import record

Values = dict[tuple[str, int], Tensor]
Way = Callable[[nn.Module, Tensor], Values]


def plain(net: nn.Module, x: Tensor) -> Values:
    """A forward of which nothing is kept."""
    net(x)
    return {}


def hookviz(net: nn.Module, x: Tensor) -> Values:
    """Every module recorded."""
    with record(net) as rec:
        net(x)
    return {(name, call.index): call.output for name, calls in rec.items() for call in calls}


def hooked(net: nn.Module, x: Tensor, keep: Callable[[Tensor], Tensor]) -> Values:
    """A forward hook on every module, as tutorials write it."""
    values: Values = {}
    calls: dict[str, int] = {}

    def store(name: str, _: nn.Module, __: Any, output: Tensor) -> None:
        values[name, calls.setdefault(name, 0)] = keep(output)
        calls[name] += 1

    handles = [module.register_forward_hook(partial(store, name)) for name, module in net.named_modules()]
    try:
        net(x)
    finally:
        for handle in handles:
            handle.remove()
    return values


def captum(net: nn.Module, x: Tensor) -> Values:
    """LayerActivation of captum for every module; of one that runs twice it keeps one call."""
    attribution = importlib.import_module("captum.attr")
    names = [name for name, _ in net.named_modules() if name]
    found = attribution.LayerActivation(net, [net.get_submodule(name) for name in names]).attribute(x)
    return {(name, 0): one[0] if isinstance(one, tuple) else one for name, one in zip(names, found, strict=True)}


def torchlens(net: nn.Module, x: Tensor) -> Values:
    """A trace of every operation by torchlens; its values are by operation, so they are not compared here."""
    importlib.import_module("torchlens").trace(net, x)
    return {}


def wrong(values: Values, expected: Values) -> str:
    """How many of the values are not what the module returned."""
    if not values:
        return ""
    known = [key for key in values if key in expected]
    bad = sum(not torch.equal(values[key], expected[key]) for key in known)
    return f"{bad} of {len(expected)} wrong, {len(expected) - len(known)} missing"


def ways() -> dict[str, Way]:
    """What is measured, by name."""
    found: dict[str, Way] = {
        "hooks that store detach()": partial(hooked, keep=Tensor.detach),
        "hooks that store clone()": partial(hooked, keep=lambda output: output.detach().clone()),
    }
    for name, way in (("captum", captum), ("torchlens", torchlens)):
        if importlib.util.find_spec(name):
            found[name] = way
        else:
            print(f"{name} is not installed and left out")
    # Last, since hookviz has the allocator keep memory from then on, which would make the others faster too.
    return found | {"hookviz record": hookviz}


def main() -> None:
    """Print one line for each way and network."""
    x = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    networks = sys.argv[1:] or ("resnet18", "vgg16", "densenet121", "mobilenet_v3_small")
    for name, way in ways().items():
        for network in networks:
            torch.manual_seed(0)
            net = models.get_model(network, weights=None).eval()
            with torch.no_grad():
                expected = hooked(net, x, keep=lambda output: output.detach().clone())
                pairs = 5 if name == "torchlens" else 15
                measured = ratio(partial(way, net, x), partial(plain, net, x), pairs=pairs)
                print(measured.line(f"{network}, {name}"), wrong(way(net, x), expected))


if __name__ == "__main__":
    main()
