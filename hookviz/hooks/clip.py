"""Clipping the gradients of parameters while backward runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import HookHandles
from hookviz.hooks.backward_passes import BackwardPasses
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.names import LayerNames
from hookviz.hooks.norms import is_finite, total_norm, wide_values

ClipScope: TypeAlias = Literal["model", "layer"]
Scale: TypeAlias = float | Callable[[], float]

_EPSILON = 1e-6
"""Added to the norm before dividing by it, as ``torch.nn.utils.clip_grad_norm_`` does."""


@dataclass(frozen=True, slots=True)
class ClippedGroup:
    """Parameters clipped together: a layer's, or under the name ``""`` the whole model's.

    ``norm`` is that of the gradients before clipping, their scale taken out. ``factor`` is what they were multiplied
    by, 1 where they were left alone; ``clamped`` counts the elements cut off by value. ``nonfinite`` names the
    parameters whose gradients hold NaN or infinities; where there are any, the group was left as it was.
    """

    name: str
    norm: float
    factor: float = 1.0
    clamped: int = 0
    nonfinite: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClipReport:
    """What one backward pass's gradients were, and what was done to them, group by group.

    ``norm`` is that of all gradients together before clipping, their scale taken out.
    """

    per: ClipScope
    norm: float
    groups: tuple[ClippedGroup, ...]

    @property
    def nonfinite(self) -> tuple[str, ...]:
        """The parameters whose gradients hold NaN or infinities, left as they were."""
        return tuple(name for group in self.groups for name in group.nonfinite)

    @property
    def skip_step(self) -> bool:
        """Whether the optimizer's step should be left out, since some gradients are not finite."""
        return bool(self.nonfinite)


@dataclass(slots=True)
class GradientClipping:
    """What an open clipping did: ``last`` is the report of the last backward pass, None before the first."""

    last: ClipReport | None = None


@contextmanager
def clip_parameter_gradients(  # noqa: PLR0913  # what limits, and of what: all by name
    module: nn.Module,
    *,
    max_norm: float | None = None,
    max_value: float | None = None,
    per: ClipScope = "model",
    scale: Scale = 1.0,
    norm_type: float = 2.0,
) -> Iterator[GradientClipping]:
    """Clip the gradients of a network's parameters during every backward pass inside the block.

    >>> with clip_parameter_gradients(model, max_norm=1.0) as clipping:
    ...     loss.backward()
    ...     if not clipping.last.skip_step:
    ...         optimizer.step()

    What is clipped is ``.grad`` as the optimizer would see it; where gradients of several passes are accumulated, open
    the block around the last of them. Gradients that hold NaN or infinities are left as they were, with everything
    that would have been clipped together with them, and named in the report.

    Args:
        module: the network.
        max_norm: the norm that gradients are scaled down to. With ``per="model"`` this is
            ``torch.nn.utils.clip_grad_norm_``, its norm taken in float64.
        max_value: instead, the absolute value that each element is cut off at.
        per: ``"model"`` clips everything together after the last gradient has arrived; ``"layer"`` each layer by its
            own norm, weight and bias together, as soon as its gradients are there.
        scale: what the loss was multiplied by, or a function that says it (``scaler.get_scale``); limits and reported
            norms are those without it, the gradients stay scaled.
        norm_type: which norm; ``math.inf`` is the largest absolute value.

    Returns:
        A context manager that gives a ``GradientClipping``.

    Raises:
        HookvizError: not exactly one limit, a limit that is not positive, or another ``per``.
    """
    limit = max_norm if max_value is None else max_value
    if (max_norm is None) == (max_value is None) or limit is None or not limit > 0:
        raise HookvizError("give either max_norm or max_value, and let it be larger than 0.")
    if per not in {"model", "layer"}:
        raise HookvizError(f"gradients are clipped per 'model' or per 'layer', not per {per!r}.")
    clip = partial(_clip_norm if max_value is None else _clip_value, limit=limit, scale=scale, order=norm_type)
    names = LayerNames(module)
    groups = [_Group("", dict(names.root.named_parameters()))] if per == "model" else _by_layer(names)
    clipping = GradientClipping()
    with run_eagerly(), HookHandles() as handles:
        clipper = _Clipper(per, groups, clip, clipping, norm_type)
        clipper.install(BackwardPasses(names.root, handles, clipper.finish), handles)
        yield clipping


@dataclass(slots=True)
class _Group:
    name: str
    parameters: Mapping[str, nn.Parameter]
    arrived: set[int] = field(default_factory=set)
    is_late: bool = False
    """Whether it has to wait for the pass's end, since part of it came from a checkpoint and more may follow."""

    @property
    def is_complete(self) -> bool:
        return len(self.arrived) == sum(one.requires_grad for one in self.parameters.values())

    def gradients(self) -> dict[str, Tensor]:
        return {name: one.grad for name, one in self.parameters.items() if one.grad is not None}


def _by_layer(names: LayerNames) -> list[_Group]:
    seen: set[int] = set()
    groups = []
    for name, layer in names.items():
        prefix = f"{name}." if name else ""
        own = {prefix + key: one for key, one in layer._parameters.items() if one is not None and id(one) not in seen}
        seen.update(map(id, own.values()))
        if own:
            groups.append(_Group(name, own))
    return groups


class _Clipper:
    """Clips each group when it is due, and collects the report of the pass."""

    def __init__(
        self,
        per: ClipScope,
        groups: list[_Group],
        clip: Callable[[str, dict[str, Tensor]], ClippedGroup],
        clipping: GradientClipping,
        order: float,
    ) -> None:
        self._per = per
        self._groups = groups
        self._clip = clip
        self._clipping = clipping
        self._order = order
        self._clipped: dict[str, ClippedGroup] = {}

    def install(self, passes: BackwardPasses, handles: HookHandles) -> None:
        for group in self._groups:
            for parameter in group.parameters.values():
                if parameter.requires_grad:
                    handles.add_post_accumulate(parameter, partial(self._arrive, passes, group))

    def _arrive(self, passes: BackwardPasses, group: _Group, parameter: Tensor) -> None:
        group.is_late |= not passes.delivers()
        group.arrived.add(id(parameter))
        if self._per == "layer" and group.is_complete and not group.is_late:
            self._clip_group(group)

    def finish(self) -> None:
        """Clip what has not been clipped yet, and report."""
        for group in self._groups:
            if group.arrived and group.name not in self._clipped:
                self._clip_group(group)
            group.arrived.clear()
            group.is_late = False
        if self._clipped:
            groups = tuple(self._clipped[group.name] for group in self._groups if group.name in self._clipped)
            norm = total_norm([torch.tensor([one.norm for one in groups], dtype=torch.float64)], self._order)
            self._clipping.last = ClipReport(self._per, norm, groups)
        self._clipped.clear()

    def _clip_group(self, group: _Group) -> None:
        with torch.no_grad():
            self._clipped[group.name] = self._clip(group.name, group.gradients())


def _clip_norm(name: str, gradients: dict[str, Tensor], *, limit: float, scale: Scale, order: float) -> ClippedGroup:
    norm = total_norm(gradients.values(), order) / _number(scale)
    if nonfinite := _not_finite(gradients):
        return ClippedGroup(name, norm, nonfinite=nonfinite)
    factor = min(1.0, limit / (norm + _EPSILON))
    if factor < 1:
        for gradient in gradients.values():
            _multiply(gradient, factor)
    return ClippedGroup(name, norm, factor)


def _clip_value(name: str, gradients: dict[str, Tensor], *, limit: float, scale: Scale, order: float) -> ClippedGroup:
    factor = _number(scale)
    norm = total_norm(gradients.values(), order) / factor
    if nonfinite := _not_finite(gradients):
        return ClippedGroup(name, norm, nonfinite=nonfinite)
    bound = limit * factor
    clamped = sum(int((wide_values(one).abs() > bound).sum()) for one in gradients.values())
    for gradient in gradients.values():
        gradient.clamp_(-bound, bound)
    return ClippedGroup(name, norm, clamped=clamped)


def _number(scale: Scale) -> float:
    return float(scale() if callable(scale) else scale)


def _not_finite(gradients: dict[str, Tensor]) -> tuple[str, ...]:
    return tuple(name for name, gradient in gradients.items() if not is_finite(gradient))


def _multiply(gradient: Tensor, factor: float) -> None:
    if gradient.layout is torch.strided:
        gradient.copy_(wide_values(gradient) * factor)  # float32 has no factor for gradients of 1e38 and more
    else:
        gradient.mul_(factor)
