"""What a forward will take, found out before it is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from hookviz.hooks.attach import attach
from hookviz.hooks.names import LayerNames
from hookviz.hooks.operations import record_operations
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import on_meta, private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Recording
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import each_tensor
from hookviz.types import TensorInfo


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one forward takes.

    ``parameters`` counts the elements of every parameter once, ``parameter_bytes`` what they occupy. ``flops`` counts
    the floating-point operations of matrix products, convolutions and attention, a multiplication and an addition as
    two; it is None where the network computes with integers. ``outputs`` has the bytes of what each layer and each
    functional operation returns, all calls together. ``ran`` says whether the numbers come from a real forward, which
    some networks insist on.
    """

    parameters: int
    parameter_bytes: int
    flops: int | None
    outputs: Mapping[str, int]
    ran: bool

    def kept_by(self, layers: Iterable[str]) -> int:
        """The bytes that a recording of these layers holds."""
        return sum(self.outputs.get(name, 0) for name in layers)


def estimate(module: nn.Module, *args: Any, **kwargs: Any) -> Estimate:
    """Find out what a forward with these arguments takes: parameters, operations, and bytes of every output.

    It runs a private copy in eval mode on torch's meta device, where nothing is computed and nothing allocated; a
    network whose control flow depends on values refuses that, and a copy of it is run for real. The network, its hooks,
    the arguments and the random state stay as they are.

    Raises:
        HookvizError: the network cannot be copied.
        Exception: whatever a real forward raises, with a note naming the layer.
    """
    root = LayerNames(module).root
    own = {id(one): one for one in root.parameters() if not is_lazy(one)}.values()
    flops, outputs, ran = _forward(root, (args, kwargs))
    return Estimate(
        parameters=sum(one.numel() for one in own),
        parameter_bytes=sum(one.nbytes for one in own),
        flops=flops,
        outputs=outputs,
        ran=ran,
    )


def output_bytes(outputs: Iterable[Iterable[TensorInfo]]) -> int:
    """What the tensors of several calls occupy, each densely."""
    return sum(prod(info.shape) * _item_size(info.dtype) for call in outputs for info in call)


def _item_size(dtype: str) -> int:
    kind: torch.dtype = getattr(torch, dtype)
    return kind.itemsize


def _forward(module: nn.Module, arguments: Any) -> tuple[int | None, dict[str, int], bool]:
    with suppress(Exception):  # a refusal can be of any type
        return *_run(module, arguments, on_meta), False
    return *_run(module, arguments, None), True


def _run(
    module: nn.Module, arguments: Any, place: Callable[[Tensor], Tensor] | None
) -> tuple[int | None, dict[str, int]]:
    private = private_copy(module, tensor=place).eval()
    args, kwargs = each_tensor(arguments, place or snapshot)
    counter = _FlopCounter()  # type: ignore[no-untyped-call]  # torch's own __init__ is untyped
    with (
        random_state_kept(private),
        torch.no_grad(),
        record(private, keep=lambda _: None) as layers,
        record_operations(private, keep=lambda _: None) as operations,
        counter,
        # Before the network's own first operation, those of tracing it for the names have gone by.
        attach(private, {"": counter.begin}, kind="forward_pre"),
    ):
        private(*args, **kwargs)
    return (None if counter.integers else counter.total), _bytes(layers) | _bytes(operations)


def _bytes(recording: Recording) -> dict[str, int]:
    return {name: output_bytes(call.output_info for call in calls) for name, calls in recording.items()}


class _FlopCounter(TorchDispatchMode):
    """Adds up torch's own formulas; its FlopCounterMode sets hooks on every module of the process, this does not."""

    total = 0
    integers = False

    def begin(self, *_: object) -> None:
        """Count from here."""
        self.total, self.integers = 0, False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        output = func(*args, **(kwargs or {}))
        formula = flop_registry.get(func.overloadpacket)
        if formula is not None:
            self.total += formula(*args, **(kwargs or {}), out_val=output)
        self.integers |= func.namespace == "quantized"
        return output
