"""Which channels of a layer a class depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.channel_edits import TimesOne
from hookviz.hooks.class_scores import checked_target, scores_of_one
from hookviz.hooks.edit import edit
from hookviz.hooks.estimate import output_bytes
from hookviz.hooks.names import LayerNames
from hookviz.hooks.private_run import Arguments, as_arguments, private_run
from hookviz.hooks.record import record
from hookviz.hooks.recording import Call
from hookviz.hooks.structure import leaves
from hookviz.hooks.zeroed_channels import OnProgress, Spot, ZeroedRuns
from hookviz.numeric import dense, real

Values: TypeAlias = npt.NDArray[np.float64]
RankedBy: TypeAlias = Literal["logit_drop", "probability_drop", "mean_activation", "gradient_times_activation"]

LARGEST_OUTPUT = 2**28
"""Bytes that the largest output of a layer may take in a batch; a forward holds a few such outputs at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class ChannelRanking:
    """How much one class depends on each channel of a layer; every array is (channels,) in float64.

    ``logit_drop`` and ``probability_drop`` are what the class loses when that channel alone is zero, negative where it
    gains. ``mean_activation`` is over all positions (of complex numbers, the magnitudes').
    ``gradient_times_activation`` is the gradient of the class's logit times the value, summed over positions: what the
    logit would lose were the network linear from there on; None where torch cannot differentiate. Of several calls, the
    mean is over all of them and the sum of them all.

    ``logit`` and ``probability`` are the class's with nothing zero. ``batched`` says whether many channels were tried
    in one forward; if so, scores of the same item lay apart by ``rounding`` at most, from one batch to another.
    """

    layer: str
    target: int
    logit: float
    probability: float
    logit_drop: Values
    probability_drop: Values
    mean_activation: Values
    gradient_times_activation: Values | None
    batched: bool
    rounding: float

    def order(self, by: RankedBy = "logit_drop") -> list[int]:
        """The channels, largest value first, equal ones by number, NaN last.

        Raises:
            HookvizError: there is no such value, or this ranking has none.
        """
        values = getattr(self, by) if by in RankedBy.__args__ else None  # type: ignore[attr-defined]  # a Literal has
        if values is None:
            raise HookvizError(f"this ranking has no {by!r}; choose from {', '.join(self._available())}.")
        return [int(channel) for channel in np.argsort(-values, kind="stable")]

    def _available(self) -> list[str]:
        return [name for name in RankedBy.__args__ if getattr(self, name) is not None]  # type: ignore[attr-defined]


def rank_channels(  # noqa: PLR0913  # all have defaults but three, and each names one part of one question
    module: nn.Module,
    args: tuple[Any, ...],
    layer: str,
    *,
    kwargs: Mapping[str, Any] | None = None,
    target: int | None = None,
    call: int | None = None,
    path: str = "",
    axis: int = 1,
    batch: int = 16,
    on_progress: OnProgress | None = None,
) -> ChannelRanking:
    """Zero each channel of a layer in turn, and see what that takes from a class.

    >>> ranking = rank_channels(model, (image,), "layer4.1.conv2", target=457)
    >>> [(channel, ranking.logit_drop[channel]) for channel in ranking.order()[:10]]

    Private copies run, in eval mode; the network, its ``.grad`` and hooks, the arguments and the random state stay as
    they are, also when something is raised.

    Args:
        module: the network, which returns scores of classes, (1, classes).
        args: what it is called with, for one item.
        layer: its name.
        kwargs: what it is called with.
        target: the class; None for the most probable one.
        call: which call of the layer, from 0; None for all of them together.
        path: where the tensor sits in an output that is a tuple, list or dict, as in ``edit``.
        axis: the axis that counts channels: 1 for NCHW, -1 for tokens and NHWC.
        batch: how many items run at a time, at most: every tensor of one item is repeated, a channel is zero in each
            but the first, and the first is what the others are compared with. It is less where a layer's output would
            exceed 256 MiB. Where the first does not come out as it does alone, or the network takes no batch, channels
            run one by one. 1 does so always, and is what zeroing by hand gives, to the last bit.
        on_progress: called with how many channels are done and how many there are; what it raises ends the ranking.
            Where the network turns out to mix its items, the count begins anew.

    Raises:
        UnknownLayerError: no layer has that name, or it does not run.
        HookvizError: the layer returns no such tensor, axis or call, the network no scores of one item, or there is no
            such class.
    """
    name, arguments = LayerNames(module).canonical(layer), as_arguments(args, kwargs)
    with private_run(module) as private, record(private, name) as rec:
        scores = scores_of_one(_called(private, arguments))
    tensors = _tensors(name, list(rec.get(name, ())), call, path)
    spot = Spot(name, call, path, axis, _channels(name, tensors, axis), frozenset(tuple(t.shape) for t in tensors))
    chosen = checked_target(scores, target)
    gradients = _gradients(module, arguments, spot, chosen)
    items = min(batch, _batch_that_fits(module, arguments)) if batch > 1 else 1
    found = ZeroedRuns(module, arguments, spot, scores, on_progress or _ignore).run(items)
    logits, certain = _of_class(scores.double(), chosen)
    plain, zeroed = _of_class(found.plain, chosen), _of_class(found.zeroed, chosen)
    return ChannelRanking(
        layer=name,
        target=chosen,
        logit=float(logits),
        probability=float(certain),
        logit_drop=_array(plain[0] - zeroed[0]),
        probability_drop=_array(plain[1] - zeroed[1]),
        mean_activation=_array(torch.cat([_by_channel(real(dense(one)), axis) for one in tensors], 1).mean(1)),
        gradient_times_activation=gradients,
        batched=found.batched,
        rounding=found.rounding,
    )


def _ignore(*_: int) -> None:
    """What is done of progress that nobody follows."""


def _called(private: nn.Module, arguments: Arguments) -> Any:
    args, kwargs = own_arguments(arguments)
    return private(*args, **kwargs)


def _tensors(name: str, calls: list[Call], call: int | None, path: str) -> list[Tensor]:
    if not calls:
        raise UnknownLayerError(f"layer {name!r} did not run; choose one that runs.")
    if call is not None and not 0 <= call < len(calls):
        raise HookvizError(f"layer {name!r} ran {len(calls)} times; choose call= from 0 to {len(calls) - 1}.")
    found = [dict(leaves(one.output, Tensor)) for one in (calls if call is None else calls[call : call + 1])]
    if not all(path in one for one in found):
        there = ", ".join(repr(path) for path in found[0])
        raise HookvizError(
            f"layer {name!r} returned no tensor at path {path!r}; choose path= from {there}."
            if there
            else f"layer {name!r} returned no tensor; choose another layer."
        )
    return [one[path] for one in found]


def _channels(name: str, tensors: list[Tensor], axis: int) -> int:
    for one in tensors:
        if one.is_nested or not -one.ndim <= axis < one.ndim:
            raise HookvizError(f"layer {name!r} returned {tuple(one.shape)}, which has no axis {axis}; give axis=.")
    counts = {one.shape[axis] for one in tensors}
    if len(counts) > 1:
        raise HookvizError(f"the calls of layer {name!r} returned {sorted(counts)} channels; say which one, call=0.")
    return counts.pop()


def _gradients(module: nn.Module, arguments: Arguments, spot: Spot, target: int) -> Values | None:
    probe = TimesOne(call=spot.call, path=spot.path, axis=spot.axis)
    with private_run(module, gradients=True) as private:
        try:
            with edit(private, {spot.layer: probe}):
                logit = scores_of_one(_called(private, arguments))[0, target]
            arrived = torch.autograd.grad(logit, probe.ones, allow_unused=True)
        except (HookvizError, RuntimeError, NotImplementedError):  # integers, int8 kernels, detached or in-place parts
            return None
    each = [_by_channel(one, spot.axis).sum(1) for one in arrived if one is not None]
    return _array(torch.stack(each).sum(0)) if each else np.zeros(spot.channels)


def _batch_that_fits(module: nn.Module, arguments: Arguments) -> int:
    with private_run(module) as private, record(private, keep=lambda _: None) as rec:
        _called(private, arguments)
    largest = max(output_bytes([call.output_info]) for calls in rec.values() for call in calls)
    return max(1, LARGEST_OUTPUT // max(1, largest))


def _by_channel(tensor: Tensor, axis: int) -> Tensor:
    return (
        tensor.detach().double().movedim(axis, 0).flatten(1) if tensor.ndim > 1 else tensor.detach().double()[:, None]
    )


def _of_class(scores: Tensor, target: int) -> tuple[Tensor, Tensor]:
    """Logit and probability."""
    return scores[:, target], scores.softmax(1)[:, target]


def _array(values: Tensor) -> Values:
    array: Values = values.cpu().numpy()
    return array
