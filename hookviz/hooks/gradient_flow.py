"""How strong the gradients are, layer by layer, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.errors import GradientError
from hookviz.hooks.names import LayerNames
from hookviz.hooks.norms import total_norm, wide_values

Verdict: TypeAlias = Literal["fine", "vanishing", "exploding", "non-finite", "none arrived", "frozen", "unused"]

VANISHING_RATIO = 1e-6
"""Below this share of the parameters' norm, a gradient is vanishing: a step of SGD at a learning rate of 0.05 then is
shorter than half a float32 unit in the last place (6e-8), so that nothing changes."""

EXPLODING_RATIO = 1e3
"""Above this multiple of the parameters' norm, a gradient is exploding: a step of SGD at a learning rate of 0.001 is
then longer than the parameters themselves."""


@dataclass(frozen=True, slots=True)
class GradientStatistics:
    """The gradient of one parameter, or of a layer's own parameters together; ``name`` is dotted.

    ``norm`` is Euclidean, ``mean`` and ``max`` are of absolute values, all in float64 and over the finite elements;
    ``zeros`` is the share of exact zeros among all elements, 0 to 1. They are None where there is no gradient, which
    ``verdict`` explains: ``"frozen"`` (``requires_grad`` is off), ``"unused"`` (the loss does not depend on it), or
    ``"none arrived"`` (it took part, and yet no gradient came). ``nonfinite`` counts NaN and infinities.
    ``reference`` is the norm of the parameters, which the thresholds refer to.
    """

    name: str
    verdict: Verdict
    count: int
    reference: float
    norm: float | None = None
    mean: float | None = None
    max: float | None = None
    zeros: float | None = None
    nonfinite: int = 0


@dataclass(frozen=True, slots=True)
class GradientFlow:
    """One backward pass: every layer that has parameters of its own, and every parameter, in forward order."""

    layers: tuple[GradientStatistics, ...]
    parameters: tuple[GradientStatistics, ...]

    def __getitem__(self, name: str) -> GradientStatistics:
        """The layer, or the parameter, of that name."""
        for one in (*self.layers, *self.parameters):
            if one.name == name:
                return one
        raise KeyError(name)

    @property
    def mean_norm(self) -> float | None:
        """The average of the layers' norms, over those that have a gradient; None where none has."""
        norms = [one.norm for one in self.layers if one.norm is not None]
        return math.fsum(norms) / len(norms) if norms else None


def gradient_flow(module: nn.Module, loss: Tensor) -> GradientFlow:
    """Measure the gradient of a loss at every parameter of a network.

    >>> flow = gradient_flow(model, criterion(model(images), targets))
    >>> [(layer.name, layer.norm, layer.verdict) for layer in flow.layers]

    No ``.grad`` is read or written, and the graph is kept, so ``loss.backward()`` can follow. The order is that in
    which the forward used the parameters; layers that it did not use stay behind their neighbours in the module tree.
    Verdicts follow ``VANISHING_RATIO`` and ``EXPLODING_RATIO``.

    Args:
        module: the network.
        loss: what a forward of it led to, a tensor of one element with its graph.

    Raises:
        GradientError: the loss has no graph or several elements, the graph has been freed, or holds a re-entrant
            checkpoint, which only ``backward`` can pass (``GradientMonitor`` measures there).
    """
    names = LayerNames(module)
    if not loss.requires_grad or loss.numel() != 1:
        raise GradientError("gradient_flow needs a loss of one element that was computed with gradients enabled.")
    used = _first_uses(loss)
    parameters = [one for one in names.root.parameters() if id(one) in used]
    try:
        arrived = torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True) if parameters else ()
    except RuntimeError as error:
        raise GradientError(f"torch cannot take the gradients of this loss ({error})") from error
    measured = {
        id(one): measure(gradient) for one, gradient in zip(parameters, arrived, strict=True) if gradient is not None
    }
    return assemble(names, measured, used)


@dataclass(frozen=True, slots=True)
class Measured:
    """One gradient in numbers, in float64: what statistics of several together are made from."""

    count: int
    norm: float
    sum: float
    max: float
    zeros: int
    nonfinite: int


def measure(gradient: Tensor) -> Measured:
    """Put a gradient into numbers; a sparse one has zeros wherever it holds nothing."""
    values = wide_values(gradient)
    finite = values[torch.isfinite(values)]
    sizes = finite.abs()
    return Measured(
        count=gradient.numel(),
        norm=total_norm([finite]),
        sum=float(sizes.sum()),
        max=float(sizes.max()) if sizes.numel() else 0.0,
        zeros=int((values == 0).sum()) + gradient.numel() - values.numel(),
        nonfinite=values.numel() - finite.numel(),
    )


def assemble(names: LayerNames, measured: Mapping[int, Measured], used: Mapping[int, int]) -> GradientFlow:
    """Put together what was measured, by parameters' ids; ``used`` has when the forward first used a parameter."""
    layers, parameters = [], []
    for name, own in _in_forward_order(names, used):
        rows = [_statistics(key, [one], measured, used) for key, one in own.items()]
        layers.append(_statistics(name, list(own.values()), measured, used))
        parameters.extend(rows)
    return GradientFlow(tuple(layers), tuple(parameters))


def own_parameters(names: LayerNames) -> Iterator[tuple[str, dict[str, nn.Parameter]]]:
    """Give each layer's own parameters by dotted name; what layers share belongs to the first."""
    seen: set[int] = set()
    for name, layer in names.items():
        own = {
            f"{name}.{key}" if name else key: one
            for key, one in layer._parameters.items()
            if one is not None and id(one) not in seen and not is_lazy(one)
        }
        seen.update(map(id, own.values()))
        if own:
            yield name, own


def _in_forward_order(names: LayerNames, used: Mapping[int, int]) -> list[tuple[str, dict[str, nn.Parameter]]]:
    layers = list(own_parameters(names))
    when, times = -1, []
    for _, own in layers:
        when = min((used[id(one)] for one in own.values() if id(one) in used), default=when)
        times.append(when)
    return [layers[number] for number in sorted(range(len(layers)), key=times.__getitem__)]


def _statistics(
    name: str, parameters: list[nn.Parameter], measured: Mapping[int, Measured], used: Mapping[int, int]
) -> GradientStatistics:
    with_gradient = [one for one in parameters if id(one) in measured]
    reference = total_norm(with_gradient or parameters)
    count = sum(one.numel() for one in parameters)
    parts = [measured[id(one)] for one in with_gradient]
    if not parts:
        return GradientStatistics(name, _why_none(parameters, used), count, reference)
    elements, nonfinite = sum(one.count for one in parts), sum(one.nonfinite for one in parts)
    finite = elements - nonfinite
    norm = total_norm([torch.tensor([one.norm for one in parts], dtype=torch.float64)])
    return GradientStatistics(
        name=name,
        verdict="non-finite" if nonfinite else _judge(norm, reference),
        count=count,
        reference=reference,
        norm=norm,
        mean=math.fsum(one.sum for one in parts) / finite if finite else None,
        max=max(one.max for one in parts) if finite else None,
        zeros=sum(one.zeros for one in parts) / elements if elements else None,
        nonfinite=nonfinite,
    )


def _why_none(parameters: Iterable[nn.Parameter], used: Mapping[int, int]) -> Verdict:
    trainable = [one for one in parameters if one.requires_grad]
    if not trainable:
        return "frozen"
    return "none arrived" if any(id(one) in used for one in trainable) else "unused"


def _judge(norm: float, reference: float) -> Verdict:
    if norm == 0 or norm < VANISHING_RATIO * reference:
        return "vanishing"
    # Parameters that are all zeros, as a bias is at first, have no size to compare a step with.
    return "exploding" if reference and norm > EXPLODING_RATIO * reference else "fine"


def _first_uses(loss: Tensor) -> dict[int, int]:
    """When each leaf of a graph was first used: the smallest sequence number of a node that takes it."""
    first: dict[int, int] = {}
    waiting: list[Any] = [loss.grad_fn]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        if type(node).__name__ == "CheckpointFunctionBackward":  # its parameters are in no graph before backward
            raise GradientError(
                "gradient_flow cannot look into a re-entrant checkpoint; use checkpoint(..., use_reentrant=False), "
                "or GradientMonitor around backward()."
            )
        for following, _ in node.next_functions if node is not None else ():
            if following is None:
                continue
            leaf = getattr(following, "variable", None)
            if leaf is not None:
                when = node._sequence_nr()
                first[id(leaf)] = min(first.get(id(leaf), when), when)
            elif following not in seen:
                seen.add(following)
                waiting.append(following)
    return first
