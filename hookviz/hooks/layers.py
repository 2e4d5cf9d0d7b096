"""Listing the layers of a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from hookviz.hooks.layouts import infer_layouts
from hookviz.hooks.names import LayerNames
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.private_copy import private_copy
from hookviz.hooks.record import record
from hookviz.hooks.recording import Recording
from hookviz.hooks.snapshot import snapshot
from hookviz.hooks.structure import each_tensor
from hookviz.types import LayerInfo, Layout


def list_layers(module: nn.Module, *args: Any, **kwargs: Any) -> list[LayerInfo]:
    """List every module of a network, in the order of ``named_modules()``; the root comes first.

    >>> list_layers(model)  # names, classes, parameters
    >>> list_layers(model, image)  # calls and output shapes too, from one forward with these arguments

    The forward runs in eval mode on a private copy that shares the weights: nothing happens to the network, its hooks
    do not fire, the arguments and the random state stay as they are.

    Raises:
        HookvizError: the network cannot be copied, or is a TorchScript module.
        Exception: whatever the forward raises, with a note naming the layer.
    """
    return layer_infos(module, _run(module, args, kwargs) if args or kwargs else None)


def layer_infos(module: nn.Module, rec: Recording | None) -> list[LayerInfo]:
    """List the layers with what a recording of all of them says; ``rec`` may be of a copy of ``module``."""
    layouts = {} if rec is None else infer_layouts(module, rec)
    return [_info(name, layer, rec, layouts.get(name, ())) for name, layer in LayerNames(module).items()]


def _run(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Recording:
    private = private_copy(module).eval()
    own_args, own_kwargs = each_tensor((args, kwargs), snapshot)
    with random_state_kept(private), torch.no_grad(), record(private, keep=lambda _: None) as rec:
        private(*own_args, **own_kwargs)
    return rec


def _info(
    name: str, layer: nn.Module, rec: Recording | None, layouts: Sequence[tuple[Layout | None, ...]]
) -> LayerInfo:
    calls = [] if rec is None or name not in rec else rec[name]
    return LayerInfo(
        name=name,
        class_name=type(layer).__name__,
        depth=name.count(".") + 1 if name else 0,
        parameters=sum(parameter.numel() for parameter in layer.parameters() if not is_lazy(parameter)),
        calls=None if rec is None else len(calls),
        outputs=tuple(call.output_info for call in calls),
        layouts=tuple(next(iter(call), None) for call in layouts),
        other_layouts=tuple(call[1:] for call in layouts),
    )
