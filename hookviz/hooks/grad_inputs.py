"""What a backward hook's ``grad_input`` holds: by torch's full hook, and by its deprecated one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from hookviz.hooks.as_found import backward_from, own_arguments
from hookviz.hooks.attach import BoundHook, HookHandles, attach
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.inplace import in_place_operation
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import detached_copy
from hookviz.hooks.structure import leaves

Shapes: TypeAlias = "tuple[tuple[int, ...] | None, ...]"
"""A shape for each tensor, None where there is none."""


@dataclass(frozen=True, slots=True)
class GradInputs:
    """What the two kinds of backward hook were given as ``grad_input`` of one layer, as shapes.

    ``inputs`` are the positional arguments the layer was called with. ``full`` is what
    ``register_full_backward_hook`` gives: one entry for each of them, None for one that needs no gradient.
    ``deprecated`` is what ``register_backward_hook`` gives: one entry for each argument of the last operation inside
    the layer, whatever that is; ``labels`` says what they are gradients of. Either is None where the hook did not fire.
    ``parameters`` are the gradients of the layer's own weights by name, where these belong:
    ``Tensor.register_post_accumulate_grad_hook``. ``emulated`` says that torch's full hook raises in this network,
    which writes in place, so that hookviz's stands in for it.
    """

    layer: str
    class_name: str
    inputs: Shapes
    full: Shapes | None
    deprecated: Shapes | None
    labels: tuple[str, ...]
    parameters: Mapping[str, tuple[int, ...]]
    emulated: bool

    @property
    def differ(self) -> bool:
        """Whether the deprecated hook gives something else than the gradients of the layer's inputs."""
        return self.full != self.deprecated


def compare_grad_inputs(
    module: nn.Module, *args: Any, loss: Callable[[Any], Tensor] | None = None, layers: Layers = "*", **kwargs: Any
) -> tuple[GradInputs, ...]:
    """Run a network forward and backward twice, and show what both kinds of backward hook are given.

    >>> for row in compare_grad_inputs(model, image.requires_grad_(), layers=["conv1", "fc1"]):
    ...     print(row.layer, row.full, row.deprecated, row.labels)

    A private copy runs, in the network's own train/eval mode and on copies of the arguments; the network, its
    ``.grad`` and the random state stay as they are. Where a layer runs more than once, the call counts whose gradient
    arrives first. An input whose ``requires_grad`` is off gets no gradient: switch it on to see the first layer's.

    Args:
        module: the network.
        args: what to call it with.
        loss: a function of the output that gives one number; by default the sum of all that has a gradient.
        layers: which layers to show, as in ``record``.
        kwargs: what to call it with.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
        GradientError: a loss that is not one number, or that nothing requires a gradient of.
    """
    names = LayerNames(detached_copy(module))
    chosen = names.resolve(layers)

    def run() -> None:
        own_args, own_kwargs = own_arguments((args, kwargs))
        backward_from((loss or _total)(names.root(*own_args, **own_kwargs)))

    with torch.inference_mode(mode=False), torch.enable_grad(), run_eagerly(), random_state_kept(names.root):
        full, emulated = _by_full_hooks(names, chosen, run)
        deprecated = _by_deprecated_hooks(names, [name for name in chosen if full.reaches_tensor.get(name)], run)
    return tuple(_row(name, names[name], full, deprecated, emulated=emulated) for name in chosen)


def _total(output: Any) -> Any:
    tensors = [tensor for _, tensor in leaves(output, Tensor)]
    return sum(tensor.sum() for tensor in tensors if tensor.requires_grad or len(tensors) == 1)


class _Seen:
    """What the hooks of one run saw, by layer."""

    def __init__(self) -> None:
        self.inputs: dict[str, Shapes] = {}
        self.grad_inputs: dict[str, Shapes] = {}
        self.labels: dict[str, tuple[str, ...]] = {}
        self.parameters: dict[int, tuple[int, ...]] = {}
        self.reaches_tensor: dict[str, bool] = {}
        self._edges: dict[str, dict[tuple[Any, int], str]] = {}

    def enter(self, name: str, args: tuple[Any, ...]) -> None:
        tensors = [value if isinstance(value, Tensor) else None for value in args]
        self.inputs[name] = _shapes(tensors)
        several = sum(tensor is not None for tensor in tensors) > 1
        self._edges[name] = {
            (edge.node, edge.output_nr): f"input {number}" if several else "input"
            for number, tensor in enumerate(tensors)
            if tensor is not None and tensor.requires_grad
            for edge in [get_gradient_edge(tensor)]
        }

    def leave(self, name: str, module: nn.Module, _: Any, output: Any) -> None:
        tensor = _first_as_torch_finds_it(output)
        self.reaches_tensor[name] = tensor is not None
        if tensor is not None and tensor.grad_fn is not None:
            own = {id(parameter): key for key, parameter in module.named_parameters()}
            self.labels[name] = tuple(
                self._edges[name].get(edge) or _label(edge[0], own) for edge in tensor.grad_fn.next_functions
            )

    def backward(self, name: str, _: nn.Module, grad_input: tuple[Tensor | None, ...], __: Any) -> None:
        self.grad_inputs.setdefault(name, _shapes(grad_input))

    def accumulated(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self.parameters[id(parameter)] = tuple(parameter.grad.shape)


def _by_full_hooks(names: LayerNames, chosen: list[str], run: Callable[[], None]) -> tuple[_Seen, bool]:
    for emulated in (False, True) if not in_place_operation(names.root) else (True,):
        seen = _Seen()
        hooks = {name: partial(seen.backward, name) for name in chosen}
        try:
            with HookHandles() as handles, attach(names.root, hooks, "backward", emulate=emulated):
                _watch_calls(names, chosen, seen, handles)
                for parameter in {id(one): one for name in chosen for one in names[name].parameters()}.values():
                    if parameter.requires_grad:
                        handles.add_post_accumulate(parameter, seen.accumulated)
                run()
        except RuntimeError as error:
            if emulated or "BackwardHookFunction" not in str(error):
                raise
        else:
            break
    return seen, emulated


def _by_deprecated_hooks(names: LayerNames, chosen: list[str], run: Callable[[], None]) -> _Seen:
    seen = _Seen()
    with HookHandles() as handles:
        _watch_calls(names, chosen, seen, handles)
        for name in chosen:
            # Torch warns at every call with such a hook; that they are not what one thinks is what is shown here.
            names[name].__dict__["_maybe_warn_non_full_backward_hook"] = _say_nothing
            handles.add_deprecated_backward(names[name], partial(seen.backward, name))
        run()
    return seen


def _say_nothing(*_: Any) -> None: ...


def _watch_calls(names: LayerNames, chosen: list[str], seen: _Seen, handles: HookHandles) -> None:
    for name in chosen:
        layer = names[name]
        handles.add(layer, BoundHook(layer, partial(seen.enter, name)), "forward_pre")
        handles.add(layer, BoundHook(layer, partial(seen.leave, name, layer)), "forward")


def _row(name: str, layer: nn.Module, full: _Seen, deprecated: _Seen, *, emulated: bool) -> GradInputs:
    by_deprecated = deprecated.grad_inputs.get(name)
    return GradInputs(
        layer=name,
        class_name=type(layer).__name__,
        inputs=full.inputs.get(name, ()),
        full=full.grad_inputs.get(name),
        deprecated=by_deprecated,
        labels=() if by_deprecated is None else deprecated.labels[name],
        parameters={
            key: full.parameters[id(one)]
            for key, one in layer.named_parameters(recurse=False)
            if id(one) in full.parameters
        },
        emulated=emulated,
    )


def _shapes(tensors: Any) -> Shapes:
    return tuple(None if tensor is None else tuple(tensor.shape) for tensor in tensors)


def _first_as_torch_finds_it(output: Any) -> Tensor | None:
    """The tensor whose operation a deprecated hook sits on; None where torch would raise, or search for ever."""
    while isinstance(output, (tuple, list, dict)) and output:
        if isinstance(output, dict):
            output = next((one for one in output.values() if isinstance(one, Tensor)), None)
        else:
            output = output[0]
    return output if isinstance(output, Tensor) else None


def _label(node: Any, parameters: Mapping[int, str]) -> str:
    if node is None:
        return "needs no gradient"
    own = parameters.get(id(getattr(node, "variable", None)))
    if own:
        return own
    if type(node).__name__ == "TBackward0":
        turned = parameters.get(id(getattr(node.next_functions[0][0], "variable", None)))
        if turned:
            return f"{turned} transposed"
    return "a value computed inside"
