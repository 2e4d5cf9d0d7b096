"""The weights that make the open channel: a picture of the kernel, or bars where each input has a single weight."""

from __future__ import annotations

import streamlit as st

from hookviz.hooks import ChannelKernel, channel_kernel
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.shown_network import ShownTensor
from hookviz.ui.style import escaped, show
from hookviz.views import KernelPicture, kernel_picture, number

STRONGEST = 9
"""Inputs that are shown of a layer that reads many."""

_COLUMNS = 9
_RGB_WIDTH, _TILE_WIDTH = 112, 48
"""CSS pixels of a coloured kernel, and of that on one input."""


def show_kernel(channels: CardChannels, channel: int) -> None:
    """Show the kernel of a channel; nothing where the layer has none, or its channels are not those of the maps."""
    kernel = kernel_of(channels.tensor, channels.shown.maps.channels, channel)
    if kernel is None or not kernel.weights.size:
        return
    with st.container(key=f"kernel-{channels.position}"):
        if kernel.weights.shape[1:] == (1, 1):
            show(_part("Weights", _about_weights(kernel), _bars(kernel)))
        else:
            picture = kernel_picture(
                kernel.weights, is_rgb=kernel.is_rgb, order=kernel.strongest(STRONGEST), columns=_COLUMNS
            )
            show(
                _part(
                    "Kernel", _about_picture(kernel, picture, _size(channels.tensor, kernel)), _drawn(kernel, picture)
                )
            )


def kernel_of(tensor: ShownTensor, channels: int, channel: int) -> ChannelKernel | None:
    """The weights of one channel of a card's maps."""
    layer = _layer(tensor)
    outputs = getattr(layer, "out_channels", getattr(layer, "out_features", None))
    if tensor.path or outputs != channels:
        return None
    return channel_kernel(tensor.network.model().module, tensor.info.name, channel)


def _layer(tensor: ShownTensor) -> object:
    """The module that a card shows; None of an operation."""
    return None if tensor.info.is_operation else tensor.network.model().module.get_submodule(tensor.info.name)


def _part(title: str, about: str, body: str) -> str:
    return (
        f'<div class="hv-part"><div class="hv-part-title">{title}</div>{body}<div class="hv-quiet">{about}</div></div>'
    )


def _about_picture(kernel: ChannelKernel, picture: KernelPicture, size: str) -> str:
    reach = number(picture.reach)
    if kernel.is_rgb:
        words = f"{size} on red, green and blue; grey is 0, full colour ±{reach}"
    else:
        words = f"{size} on {_inputs(kernel)}; white is 0, blue −{reach}, red {reach}"
    return _sentence(kernel, words)


def _about_weights(kernel: ChannelKernel) -> str:
    return _sentence(kernel, f"on {_inputs(kernel)}")


def _size(tensor: ShownTensor, kernel: ChannelKernel) -> str:
    height, width = kernel.weights.shape[1:]
    slices = getattr(_layer(tensor), "kernel_size", ())
    if isinstance(slices, tuple) and len(slices) == 3 and slices[0] > 1:
        return f"{slices[0]} slices of {height // slices[0]} × {width}, one below the other,"
    return f"{height} × {width}"


def _inputs(kernel: ChannelKernel) -> str:
    count = len(kernel.inputs)
    if count == 1:
        return f"input channel {kernel.inputs[0]}"
    return f"its {count} input channels" if count <= STRONGEST else f"the {STRONGEST} strongest of {count:,} inputs"


def _sentence(kernel: ChannelKernel, words: str) -> str:
    bias = "" if kernel.bias is None else f"bias {number(kernel.bias)}"
    return escaped(" · ".join(filter(None, [words, bias, kernel.note])))


def _drawn(kernel: ChannelKernel, picture: KernelPicture) -> str:
    alt = f"Kernel of channel {kernel.channel}"
    image = f'<img src="{data_url(picture.png)}" alt="{alt}">'
    if picture.geometry is None:
        return f'<div class="hv-kernel" style="max-width:{_RGB_WIDTH}px">{image}</div>'
    count = picture.geometry.columns
    numbers = "".join(f"<span>{kernel.inputs[place]}</span>" for place in picture.geometry.channels)
    row = f'<div class="numbers" style="grid-template-columns:repeat({count},1fr)">{numbers}</div>'
    return f'<div class="hv-kernel" style="max-width:{count * _TILE_WIDTH}px">{image}{row}</div>'


def _bars(kernel: ChannelKernel) -> str:
    places = kernel.strongest(STRONGEST)
    reach = float(abs(kernel.weights[list(places)]).max()) or 1.0
    rows = "".join(_bar(kernel.inputs[place], float(kernel.weights[place, 0, 0]), reach) for place in places)
    return f'<div class="hv-weights">{rows}</div>'


def _bar(source: int, weight: float, reach: float) -> str:
    width = 50 * abs(weight) / reach
    side = f"left:{50 if weight >= 0 else 50 - width:.2f}%;width:{width:.2f}%"
    kind = "more" if weight >= 0 else "less"
    return (
        f'<span class="what">{source}</span><span class="track"><span class="bar {kind}" style="{side}"></span></span>'
        f'<span class="weight">{escaped(number(weight))}</span>'
    )
