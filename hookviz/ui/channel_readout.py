"""The line that says what the pointer is on: the channel, the exact value, the range."""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch
from torch import Tensor

from hookviz.numeric import to_float32, to_float64
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.own_component import own_component
from hookviz.views import Mosaic

VALUES_AT_ONCE = 2**17
"""Values that are sent when somebody stays on one of them: half a megabyte of them, or one of 64-bit floats."""

VALUES_AT_ONCE_UNASKED = 2**13
"""A page of so few values is sent with the line itself."""

_show = own_component("channel_readout", isolate_styles=False)


@st.fragment
def show_channel_readout(channels: CardChannels, picture: Mosaic) -> None:
    """Show the line of a card's mosaic.

    A fragment of its own, so that asking for values runs nothing else.
    """
    position, geometry = channels.position, picture.geometry
    rows = max(1, VALUES_AT_ONCE // geometry.tile_width)
    few = len(geometry.channels) * geometry.tile_height * geometry.tile_width <= VALUES_AT_ONCE_UNASKED
    block = 0 if few else state.block_asked_for(position, channels.of)
    exact = channels.values()
    numbers = None if block is None else block_of(exact, geometry.channels, block * rows, rows)
    _show(
        key=state.readout_key(position),
        data={
            "card": position,
            "of": channels.of,
            "width": geometry.tile_width,
            "height": geometry.tile_height,
            "rows": rows,
            "numbers": picture.numbers,
            "block": block,
            "double": is_double(exact),
            "values": None if numbers is None else base64.b64encode(numbers.tobytes()).decode(),
        },
        on_block_change=lambda: state.take_block(position),
    )


def is_double(values: Tensor) -> bool:
    """Whether it takes 64-bit floats to hold these values."""
    return values.dtype not in {torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.int8}


def block_of(values: Tensor, channels: tuple[int, ...], first: int, count: int) -> npt.NDArray[np.floating]:
    """Rows ``first`` to ``first + count`` of the given channels' maps, the maps one below the other, without loss.

    Only integers beyond 2**53 do not fit.
    """
    height = values.shape[1]
    places = range(max(first, 0), min(first + count, len(channels) * height))
    spans = [(place, *_span(places, place, height)) for place in range(len(channels))]
    parts = [values[channels[place], start:end] for place, start, end in spans if start < end]
    if not parts:
        return np.zeros(0, np.float32)
    rows = torch.cat(parts)
    return (to_float64(rows) if is_double(values) else to_float32(rows)).astype("<f8" if is_double(values) else "<f4")


def _span(rows: range, place: int, height: int) -> tuple[int, int]:
    """Which rows of the map at a place are among these."""
    return max(0, rows.start - place * height), min(height, rows.stop - place * height)
