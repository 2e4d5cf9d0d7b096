"""The gradients of one class or loss, layer by layer, and what clipping makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hook_lab.experiment import LossChoice
from hookviz.hook_lab.own_copy import loss_of, own_copy, own_inputs
from hookviz.hooks import GradientFlow, clip_parameter_gradients, gradient_flow, record
from hookviz.hooks.gradient_flow import own_parameters
from hookviz.hooks.names import LayerNames
from hookviz.hooks.norms import total_norm
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.structure import leaves


@dataclass(frozen=True, slots=True, eq=False)
class LayerGradient:
    """What a layer returned in its first call and the gradient that reached it, both detached; None where none did."""

    activation: Tensor | None
    gradient: Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class ClippedNorms:
    """The norm of each layer's own parameters' gradients without and with clipping, and of all together."""

    layers: dict[str, tuple[float, float]]
    total: tuple[float, float]


def measure_flow(module: nn.Module, arguments: tuple[Any, ...], loss: LossChoice) -> GradientFlow:
    """The gradient of a class or loss at every parameter of a copy of a network, in eval mode.

    Raises:
        HookLabError: there is no such class.
        GradientError: gradients cannot be taken.
    """
    copy = own_copy(module)
    with random_state_kept(copy), torch.enable_grad():
        output = copy(*own_inputs(arguments, gradients=True))
        return gradient_flow(copy, loss_of(output, loss))


def layer_gradient(module: nn.Module, arguments: tuple[Any, ...], loss: LossChoice, layer: str) -> LayerGradient:
    """A layer's activation and its gradient, from one run of a copy of a network.

    Raises:
        HookLabError: there is no such class.
        UnknownLayerError: there is no such layer.
    """
    copy = own_copy(module)
    with random_state_kept(copy), torch.enable_grad(), record(copy, [layer], gradients=True) as rec:
        loss_of(copy(*own_inputs(arguments, gradients=True)), loss).backward()
    if layer not in rec:
        return LayerGradient(None, None)
    call = rec[layer][0]
    return LayerGradient(_first(call.output), _first(call.grad_output))


def _first(value: Any) -> Tensor | None:
    return next((tensor.detach() for _, tensor in leaves(value, Tensor)), None)


def clipped_norms(module: nn.Module, arguments: tuple[Any, ...], loss: LossChoice, *, max_norm: float) -> ClippedNorms:
    """What ``clip_parameter_gradients`` by the norm of all gradients together does, layer by layer.

    Raises:
        HookLabError: there is no such class.
        HookvizError: ``max_norm`` is not positive.
    """
    copy = own_copy(module)
    with random_state_kept(copy), torch.enable_grad():
        value = loss_of(copy(*own_inputs(arguments, gradients=True)), loss)
        value.backward(retain_graph=True)
        before = _norms(copy)
        copy.zero_grad(set_to_none=True)
        with clip_parameter_gradients(copy, max_norm=max_norm):
            value.backward()
        after = _norms(copy)
    layers = {name: (norm, after[name]) for name, norm in before.items()}
    return ClippedNorms(layers, (_total(before), _total(after)))


def _norms(module: nn.Module) -> dict[str, float]:
    found = {}
    for name, own in own_parameters(LayerNames(module)):
        gradients = [one.grad for one in own.values() if one.grad is not None]
        if gradients:
            found[name] = total_norm(gradients)
    return found


def _total(norms: dict[str, float]) -> float:
    return math.sqrt(math.fsum(norm**2 for norm in norms.values()))
