"""One layer's maps in two networks, on the same image."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import HookvizError
from hookviz.hooks import list_layers, private_copy, record
from hookviz.hooks.preserve import random_state_kept
from hookviz.hooks.structure import each_tensor, leaves
from hookviz.layout import channel_maps
from hookviz.types import ChannelMaps


def paired_maps(
    module: nn.Module, other: nn.Module, arguments: tuple[Any, ...], layer: str
) -> tuple[ChannelMaps, ChannelMaps]:
    """The maps that a layer returned first in two networks, read the same way; both are left as they were found.

    Args:
        module: the first network; private copies of both run, in eval mode.
        other: the second one, of the same architecture or with a layer of that name.
        arguments: what both are called with, for one image.
        layer: its name.

    Raises:
        HookvizError: it did not run in one of them, or returned no tensor.
        LayoutError: the second network's tensor has other axes.
    """
    info = next((one for one in list_layers(module, *arguments) if one.name == layer), None)
    layout = info.layouts[0] if info is not None and info.layouts else None
    name, grid = ("auto", None) if layout is None else (layout.name, layout.grid)
    ours, theirs = (channel_maps(_first_output(one, arguments, layer), name, grid) for one in (module, other))
    return ours, theirs


def _first_output(module: nn.Module, arguments: tuple[Any, ...], layer: str) -> Tensor:
    private = private_copy(module).eval()
    with random_state_kept(private), torch.no_grad(), record(private, layer) as rec:
        private(*each_tensor(arguments, Tensor.clone))
    tensor = next((one for _, one in leaves(rec[layer][0].output, Tensor)), None) if rec.get(layer) else None
    if tensor is None:
        raise HookvizError(f"{layer!r} returned no tensor here; choose another layer.")
    return tensor
