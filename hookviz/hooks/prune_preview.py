"""What pruning a layer would do to its feature maps, tried out on a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import prune

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.as_found import own_arguments
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import preserved
from hookviz.hooks.private_copy import detached_copy
from hookviz.hooks.prune import PrunedParameter, pruning_report
from hookviz.hooks.record import record
from hookviz.hooks.recording import LayerCalls

PrunedBy: TypeAlias = Literal["weights", "channels"]


@dataclass(frozen=True, slots=True)
class PrunedMaps:
    """A layer's calls with its weight as it is and pruned; ``pruned`` says what is gone of the weight."""

    layer: str
    before: LayerCalls
    after: LayerCalls
    pruned: PrunedParameter


def maps_before_and_after(
    module: nn.Module, layer: str, *args: Any, amount: float, by: PrunedBy = "weights", **kwargs: Any
) -> PrunedMaps:
    """Run a network with a layer's weight as it is, and once more with it pruned.

    >>> maps = maps_before_and_after(model, "conv1", image, amount=0.5)
    >>> maps.before.output, maps.after.output, maps.pruned.sparsity

    A private copy is pruned and runs, in eval mode and without gradients; the network stays as it is. A weight that is
    pruned already loses a share of what is left, as in ``torch.nn.utils.prune``.

    Args:
        module: the network.
        layer: whose weight to prune and whose output to show.
        args: what to call the network with.
        amount: the share to prune, 0 to 1.
        by: ``"weights"`` prunes the smallest absolute values (``prune.l1_unstructured``); ``"channels"`` the output
            channels with the smallest sums of them (``prune.ln_structured``).
        kwargs: what to call the network with.

    Raises:
        UnknownLayerError: no layer has that name, or it does not run.
        HookvizError: the layer has no weight, or an amount or way that does not exist.
    """
    if not 0 <= amount <= 1:
        raise HookvizError(f"amount is the share to prune, from 0 to 1, not {amount}.")
    if by not in {"weights", "channels"}:
        raise HookvizError(f"pruning goes by 'weights' or by 'channels', not by {by!r}.")
    share = float(amount)  # a whole number is a count to torch
    names = LayerNames(detached_copy(module))
    name = names.canonical(layer)
    chosen = names[name]
    _check_weight(chosen, name, by)
    before = _calls(names.root, name, args, kwargs)
    if by == "weights":
        prune.l1_unstructured(chosen, "weight", share)
    else:
        prune.ln_structured(chosen, "weight", share, n=1, dim=_output_axis(chosen))
    after = _calls(names.root, name, args, kwargs)
    return PrunedMaps(name, before, after, pruning_report(names.root)[f"{name}.weight" if name else "weight"])


def _calls(root: nn.Module, name: str, args: Any, kwargs: Any) -> LayerCalls:
    own_args, own_kwargs = own_arguments((args, kwargs))
    with run_eagerly(), preserved(root), record(root, name) as rec:
        root(*own_args, **own_kwargs)
    if name not in rec:
        raise UnknownLayerError(f"layer {name!r} did not run, so no mask would be applied; choose a layer that runs.")
    return rec[name]


def _check_weight(layer: nn.Module, name: str, by: PrunedBy) -> None:
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, Tensor) or is_lazy(weight) or not weight.is_floating_point():
        raise HookvizError(f"layer {name!r} ({type(layer).__name__}) has no weight to prune; choose a convolution.")
    if by == "channels" and weight.ndim < 2:
        raise HookvizError(f"the weight of layer {name!r} has one axis; prune it by 'weights'.")


def _output_axis(layer: nn.Module) -> int:
    return 1 if isinstance(layer, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)) else 0
