"""Training one layer by a rule of one's own, while an optimizer trains the rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import HookHandles
from hookviz.hooks.names import LayerNames, Layers


@contextmanager
def own_update(  # noqa: PLR0913  # the rule's coefficients, all by name
    module: nn.Module, layer: Layers, *, lr: float, l1: float = 0.0, l2: float = 0.0, sign: bool = False
) -> Iterator[tuple[str, ...]]:
    """Update a layer's parameters during backward, each as soon as its gradient has arrived.

    >>> with own_update(model, "conv1", lr=0.01, l2=1e-4):
    ...     loss.backward()  # conv1 has made its step
    ...     optimizer.step()  # the others make theirs

    The rule is ``p <- p - lr * (g + l1 * sign(p) + l2 * p)``, where ``g`` is what ``.grad`` holds when the gradient has
    arrived, or its sign. ``.grad`` is None afterwards, so that an optimizer which also has the parameter passes over
    it, momentum and weight decay included. A graph kept for a second backward cannot be used again, as after any
    optimizer's step.

    Args:
        module: the network.
        layer: a name, glob, type or module, or a list of them; a block stands for everything in it.
        lr: the step's length.
        l1: the weight of the absolute values' penalty.
        l2: the weight of half the squares' penalty, which is torch's ``weight_decay``.
        sign: step by the gradient's sign.

    Returns:
        A context manager that gives the dotted names of the parameters it updates.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing.
        HookvizError: the layer has no parameter that requires a gradient.
    """
    names = LayerNames(module)
    chosen = {id(one) for name in names.resolve(layer) for one in names[name].parameters() if one.requires_grad}
    parameters = {name: one for name, one in names.root.named_parameters() if id(one) in chosen}
    if not parameters:
        raise HookvizError(
            f"{layer!r} has no parameter that requires a gradient; choose a layer with weights, or unfreeze it."
        )

    def step(parameter: Tensor) -> None:
        with torch.no_grad():
            _step(parameter, lr=lr, l1=l1, l2=l2, sign=sign)
        parameter.grad = None

    with HookHandles() as handles:
        for parameter in parameters.values():
            handles.add_post_accumulate(parameter, step)
        yield tuple(parameters)


def _step(parameter: Tensor, *, lr: float, l1: float, l2: float, sign: bool) -> None:
    gradient = parameter.grad
    if gradient is None:
        return
    direction = gradient.sign() if sign else gradient
    if l1:
        direction = direction + l1 * parameter.sign()
    if l2:
        direction = direction + l2 * parameter
    parameter.sub_(lr * direction)
