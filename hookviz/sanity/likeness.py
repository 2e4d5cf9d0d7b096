"""How alike the layers of two networks respond to the same images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks import list_layers, private_copy, record
from hookviz.hooks.preserve import random_state_kept
from hookviz.sanity.channel_tally import by_channel
from hookviz.types import LayerInfo

POSITIONS = 1024
"""Positions compared in all; of larger maps evenly spaced ones, the same in both networks."""


@dataclass(frozen=True, slots=True)
class LayerLikeness:
    """One layer of two networks: ``cka`` is 1 where they respond alike up to rotation and scale, about 0 where not.

    ``scale`` is the root mean square of the second network's values over the first's. Either is None where it cannot be
    had: maps of another size, or without variety.
    """

    layer: str
    class_name: str
    cka: float | None
    scale: float | None


def linear_cka(one: Tensor, other: Tensor) -> float | None:
    """Linear centred kernel alignment, without its bias towards 1 for few examples of many features.

    Kornblith et al., "Similarity of Neural Network Representations Revisited" (2019), with the unbiased estimate of
    Song et al., "Feature Selection via Dependence Maximization" (2012), as in Nguyen et al. (2021).

    Args:
        one: (examples, features).
        other: (examples, other features), of the same examples.

    Returns:
        The alignment, at most 1; unrelated features give about 0, and less by chance. None for fewer than four
        examples, and where either has no variety.

    Raises:
        HookvizError: another number of examples.
    """
    if len(one) != len(other):
        raise HookvizError(f"Both need the same examples, got {len(one)} and {len(other)}.")
    if len(one) < 4:
        return None
    first, second = (_gram(values) for values in (one, other))
    own = _hsic(first, first), _hsic(second, second)
    if not (own[0] > 0 and own[1] > 0):
        return None
    return min(1.0, _hsic(first, second) / math.sqrt(own[0] * own[1]))


def compare_layers(
    module: nn.Module, other: nn.Module, inputs: Sequence[tuple[Any, ...]], layers: Sequence[str] | None = None
) -> list[LayerLikeness]:
    """How alike the layers of the same names respond, over all inputs; both networks are left as they were found.

    Private copies run in eval mode, both over the same inputs.

    Args:
        module: the first network.
        other: the second one, of the same architecture or another; layers that it has not are left out.
        inputs: for each image what the networks are called with.
        layers: which layers; by default those without layers inside.

    Raises:
        HookvizError: no inputs, or such as the other network cannot run on.
    """
    if not inputs:
        raise HookvizError("There are no inputs; give at least one.")
    infos = list_layers(module, *inputs[0])
    names = [one for one in layers or leaf_names(module) if one in dict(other.named_modules())]
    known = {info.name: info for info in infos if info.name in names and info.calls}
    take = {name: _positions(info, len(inputs)) for name, info in known.items()}
    ours = _features(module, inputs, known, take)
    try:
        theirs = _features(other, inputs, known, take)
    except (HookvizError, MemoryError):
        raise
    except Exception as error:  # a network of one's own may raise anything
        notes = [note.removeprefix("hookviz: ") for note in getattr(error, "__notes__", ())]
        raise HookvizError(
            f"{type(other).__name__} cannot run on what {type(module).__name__} is given, so their layers cannot be "
            f"compared: {(notes or [repr(error)])[0]}"
        ) from error
    return [_likeness(info, ours.get(name), theirs.get(name)) for name, info in known.items()]


def leaf_names(module: nn.Module) -> list[str]:
    """Layers without layers inside, but for those that hand on what they are given."""
    return [
        name
        for name, one in module.named_modules()
        if name and not any(True for _ in one.children()) and not isinstance(one, nn.Identity)
    ]


Take = Callable[[Tensor], "Tensor | None"]


def _positions(info: LayerInfo, images: int) -> Take:
    """What makes (positions, channels) of a layer's output, in float64."""
    layout = info.layouts[0].name if info.layouts and info.layouts[0] is not None else ""
    most = max(4, POSITIONS // images)

    def take(tensor: Tensor) -> Tensor | None:
        rows = by_channel(tensor, layout) if layout and tensor.ndim == len(layout) else None
        if rows is None:
            return None
        step = -(-rows.shape[1] // most)
        return rows[:, ::step].T.double().cpu()

    return take


def _features(
    module: nn.Module, inputs: Sequence[tuple[Any, ...]], known: dict[str, LayerInfo], take: dict[str, Take]
) -> dict[str, Tensor]:
    private = private_copy(module).eval()
    parts: dict[str, list[Tensor]] = {name: [] for name in known}
    with random_state_kept(private), torch.no_grad():
        for arguments in inputs:
            with record(private, list(known)) as rec:
                private(*arguments)
            for name in known:
                output = rec[name][0].output if rec.get(name) else None
                features = take[name](output) if isinstance(output, Tensor) else None
                if features is not None and bool(torch.isfinite(features).all()):
                    parts[name].append(features)
    return {name: torch.cat(some) for name, some in parts.items() if len(some) == len(inputs)}


def _likeness(info: LayerInfo, ours: Tensor | None, theirs: Tensor | None) -> LayerLikeness:
    if ours is None or theirs is None or len(ours) != len(theirs):
        return LayerLikeness(info.name, info.class_name, None, None)
    scale, other = (float(one.square().mean().sqrt()) for one in (ours, theirs))
    return LayerLikeness(info.name, info.class_name, linear_cka(ours, theirs), other / scale if scale else None)


def _gram(values: Tensor) -> Tensor:
    wide = values.double()
    wide = wide - wide.mean(0)
    gram = wide @ wide.T
    return gram.fill_diagonal_(0)


def _hsic(one: Tensor, other: Tensor) -> float:
    """The unbiased estimate, from two Gram matrices whose diagonal is 0."""
    count = len(one)
    trace = (one * other).sum()
    sums = one.sum() * other.sum() / ((count - 1) * (count - 2))
    cross = 2 * (one.sum(0) @ other.sum(0)) / (count - 2)
    return float((trace + sums - cross) / (count * (count - 3)))
