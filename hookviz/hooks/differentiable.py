"""One output of a layer with its graph, down to the image the network was given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.errors import GradientError, LayoutError, UnknownLayerError
from hookviz.hooks.attach import BoundHook, HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.gradient_cuts import GradientCuts, is_floating
from hookviz.hooks.names import LayerNames, unknown_layer
from hookviz.hooks.operations import list_operations, record_operations
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.stopping import ForwardStopped
from hookviz.hooks.structure import each_tensor, leaves, map_leaves


@dataclass(frozen=True, slots=True, eq=False)
class Differentiable:
    """A layer's output and the image it was computed from; both belong to the graph between them.

    ``cut_note`` says in a sentence where values went on without their gradient, else ``""``.
    """

    layer: str
    output: Tensor
    image: Tensor
    cut_note: str


def differentiable_output(
    module: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]], layer: str, *, call: int = 0, path: str = ""
) -> Differentiable:
    """Run a private copy in eval mode as far as one call of a layer, and give the tensor that it returned.

    ``arguments`` are ``(args, kwargs)`` of the module. ``layer`` is the name of a module or of a functional operation.
    The image is the first floating tensor among the arguments that has height and width, or the first floating one.

    Raises:
        UnknownLayerError: there is no such layer, or it made no such call.
        LayoutError: the output has no tensor at that path.
        GradientError: no gradient leads from the image to it.
    """
    names = LayerNames(module)
    name = names.canonical(layer) if layer in names else layer
    private = _frozen_copy(names.root)
    with random_state_kept(private), torch.inference_mode(mode=False), torch.enable_grad(), run_eagerly():
        image, (args, kwargs) = _on_leaf(arguments)
        cuts = GradientCuts()
        catch = _Catch(call)
        with cuts, _caught(private, name, catch, cuts, is_module=layer in names):
            private(*args, **kwargs)
    if not catch.is_done:
        _refuse_call(names, layer, catch.calls, arguments)
    return Differentiable(name, _checked(catch.output, name, path), image, cuts.note)


class _Catch:
    """Counts the calls of a layer, and ends the forward with the one that is wanted."""

    def __init__(self, call: int) -> None:
        self._wanted = call
        self.calls = 0
        self.is_done = False
        self.output: Any = None

    def take(self, output: Any) -> None:
        self.calls += 1
        if self.calls == self._wanted + 1:
            self.output, self.is_done = output, True
            raise ForwardStopped


@contextmanager
def _caught(private: nn.Module, name: str, catch: _Catch, cuts: GradientCuts, *, is_module: bool) -> Iterator[None]:
    """Give ``catch`` each output of a layer, before anything can be written into it."""
    try:
        if is_module:
            layer = LayerNames(private)[name]
            with HookHandles() as handles:
                handles.add(layer, BoundHook(layer, lambda _, output: catch.take(output)), "forward")
                yield
        else:
            # What is kept of an operation has no graph, but it has just come out of the last function called.
            with record_operations(private, name, keep=lambda _: catch.take(cuts.last)):
                yield
    except ForwardStopped:
        if not catch.is_done:
            raise


def _frozen_copy(root: nn.Module) -> nn.Module:
    """A copy of which no parameter needs a gradient, so that only the way to the image is computed."""
    weights = {_memory(parameter) for parameter in root.parameters() if not is_lazy(parameter)}

    def shared_or_copied(tensor: Tensor) -> Tensor:
        # Nothing writes into a parameter here, but a forward may into a buffer; autograd takes no inference tensors.
        return tensor if _memory(tensor) in weights and not tensor.is_inference() else snapshot(tensor)

    private = private_copy(root, tensor=shared_or_copied).eval()
    for parameter in private.parameters():
        if not is_lazy(parameter):
            parameter.requires_grad = False
    return private


def _memory(tensor: Tensor) -> int | None:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else None


def _on_leaf(arguments: Any) -> tuple[Tensor, Any]:
    """The image as a leaf of its own, and the arguments with a clone of it, which a network may write into."""
    own = each_tensor(arguments, snapshot)
    floating = [(path, tensor) for path, tensor in leaves(own, Tensor) if is_floating(tensor)]
    if not floating:
        raise GradientError("the network was given no floating-point tensor, and so nothing that has a gradient.")
    place, image = next((one for one in floating if one[1].ndim >= 3), floating[0])
    image.requires_grad_()
    return image, map_leaves(own, Tensor, lambda path, tensor: image.clone() if path == place else tensor)


def _checked(output: Any, layer: str, path: str) -> Tensor:
    found = dict(leaves(output, Tensor))
    tensor = found.get(path) if path or path in found else next(iter(found.values()), None)
    if tensor is None:
        there = ", ".join(map(repr, found)) or "none"
        raise LayoutError(f"The output of {layer!r} has no tensor at {path!r}; there are {there}.")
    if not is_floating(tensor):
        kind = str(tensor.dtype).removeprefix("torch.")
        raise GradientError(
            f"the output of {layer!r} is {kind}, through which no gradient flows; choose a layer before it whose "
            "values are floating-point numbers."
        )
    if not tensor.requires_grad:
        raise GradientError(f"no gradient leads from the output of {layer!r} to the image; choose another layer.")
    return tensor


def _refuse_call(names: LayerNames, layer: str, calls: int, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    if calls:
        times = "once" if calls == 1 else f"{calls} times"
        raise UnknownLayerError(f"layer {layer!r} was called {times} in this run; calls count from 0.")
    if layer in names:
        raise UnknownLayerError(f"layer {layer!r} did not run; list_layers() shows how often each one does.")
    operations = [info.name for info in list_operations(names.root, *arguments[0], **arguments[1])]
    raise unknown_layer(layer, [*names, *operations], type(names.root).__name__)
