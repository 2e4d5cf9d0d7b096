"""The promise put to the proof on one network: every layer and call against clones that torch's own hooks take.

Nothing here comes from hookviz but ``record``: values are copied and compared by other code than the one under test.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hooks import record
from tests.nets import hook_count


@dataclass(frozen=True)
class Proof:
    """How many layers and calls there were, and a sentence for everything that was not as it should be."""

    layers: int
    calls: int
    wrong: tuple[str, ...]


def prove(network: nn.Module, arguments: tuple[Any, ...]) -> Proof:
    """Run a network plainly, run a deepcopy with torch's hooks, run it recorded; say what differs."""
    with torch.no_grad():
        plain = seeded_run(network, arguments)  # some networks make buffers and caches in their first forward
        before = state(network)
        expected = clones_at_hook_time(network, arguments)
        given = copied(arguments)
        with record(network) as rec:
            out = seeded_run(network, arguments)
    wrong = [
        f"{name or 'the network'}, call {index}"
        for name, outputs in expected.items()
        for index, output in enumerate(outputs)
        if name not in rec or index >= len(rec[name]) or not identical(rec[name][index].output, output)
    ]
    counted = {name: len(outputs) for name, outputs in expected.items()}
    statements = {
        "the output differs from the plain forward's": identical(out, plain),
        "the arguments were changed": identical(arguments, given),
        "layers fired in another order, or another number of times": list(counted.items())
        == [(name, len(rec[name])) for name in rec],
        "layers that never fired are not all reported": set(rec.not_called)
        == {name for name, _ in network.named_modules()} - counted.keys(),
        "the network is not as it was found": identical(state(network), before),
    }
    wrong += [sentence for sentence, holds in statements.items() if not holds]
    return Proof(len(counted), sum(counted.values()), tuple(wrong))


def seeded_run(network: nn.Module, arguments: tuple[Any, ...]) -> Any:
    torch.manual_seed(0)
    return network(*arguments)


def clones_at_hook_time(network: nn.Module, arguments: tuple[Any, ...]) -> dict[str, list[Any]]:
    # Copying packs int8 weights anew, for kernels that may round otherwise: there the hooks visit the network itself.
    twin = network if is_int8(network) else copy.deepcopy(network)
    seen: dict[str, list[Any]] = {}
    handles = []
    for name, layer in twin.named_modules():

        def store(_: nn.Module, __: Any, output: Any, name: str = name) -> None:
            seen.setdefault(name, []).append(copied(output))

        handles.append(layer.register_forward_hook(store))
    seeded_run(twin, arguments)
    for handle in handles:
        handle.remove()
    return seen


def is_int8(network: nn.Module) -> bool:
    return any("quantized" in type(one).__module__ for one in network.modules())


def state(network: nn.Module) -> dict[str, Any]:
    """All that looking must leave alone: values, gradients, flags, attributes and hooks."""
    modules = dict(network.named_modules())
    return {
        "values": copied(dict(network.state_dict())),
        "buffers": copied(dict(network.named_buffers())),
        "gradients": {name: one.grad is None for name, one in network.named_parameters()},
        "requires_grad": {name: one.requires_grad for name, one in network.named_parameters()},
        "training": {name: one.training for name, one in modules.items()},
        "attributes": {name: sorted(one.__dict__) for name, one in modules.items()},
        "hooks": hook_count(network),
    }


def copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(copied, value))
    if isinstance(value, dict):
        return type(value)((key, copied(item)) for key, item in value.items())
    if is_plain_object(value):
        other = copy.copy(value)
        other.__dict__.update({name: copied(item) for name, item in vars(value).items()})
        return other
    return value


def identical(a: Any, b: Any) -> bool:
    """Equal to the last bit, NaN equal to itself, with the same types all the way down."""
    if type(a) is not type(b) and not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    if isinstance(a, Tensor):
        return same_kind(a, b) and (same_integers(a, b) if a.is_quantized else same_values(a, b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[key], b[key]) for key in a)
    if is_plain_object(a):
        return identical(vars(a), vars(b))
    return bool(a == b)


def same_kind(a: Tensor, b: Tensor) -> bool:
    return (a.shape, a.dtype, a.layout, a.device) == (b.shape, b.dtype, b.layout, b.device)


def same_values(a: Tensor, b: Tensor) -> bool:
    if torch.equal(a, b):
        return True
    return a.is_floating_point() and torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def same_integers(a: Tensor, b: Tensor) -> bool:
    return quantization(a) == quantization(b) and torch.equal(a.int_repr(), b.int_repr())


def quantization(tensor: Tensor) -> tuple[Any, ...]:
    if tensor.qscheme() in {torch.per_tensor_affine, torch.per_tensor_symmetric}:
        return tensor.qscheme(), tensor.q_scale(), tensor.q_zero_point()
    scales, zero_points = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return tensor.qscheme(), tensor.q_per_channel_axis(), scales.tolist(), zero_points.tolist()


def is_plain_object(value: Any) -> bool:
    """Such as torchvision's ImageList."""
    return hasattr(value, "__dict__") and not isinstance(value, (nn.Module, type)) and not callable(value)
