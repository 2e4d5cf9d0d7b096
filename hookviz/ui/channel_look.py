"""The open channel's map, large, and beside it the same over the photograph; a position of both can be chosen."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st
from torch import Tensor

from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channel_photo import show_photo
from hookviz.ui.channel_readout import is_double
from hookviz.ui.position_picture import Position, PositionPicture, show_position_picture
from hookviz.views import Mosaic, maximum_of, mosaic_picture, value_text
from hookviz.views.labels import MINUS, Numbers, numbers_of

WIDEST = 300
"""CSS pixels of each of the two pictures."""

_WIDEST_VALUE = 72
"""CSS pixels of a single value's colour."""


@st.fragment
def show_look(channels: CardChannels, channel: int) -> None:
    """Show both pictures; a fragment of its own, so that choosing a position runs nothing else."""
    card, maps = channels.position, channels.shown.maps
    height, width = maps.maps.shape[1:]
    position = state.settle_position("at", card, height, width, f"{channels.belongs_to} {height} {width}")
    picture = mosaic_picture(maps, order=[channel], per_page=1, **channels.shown.display)
    with st.container(horizontal=True, key=f"look-{card}", gap="small"):
        with st.container(key=f"look-map-{card}"):
            _show_map(channels, channel, picture, position)
        with st.container(key=f"look-photo-{card}"):
            show_photo(channels, channel, picture, position, WIDEST)
    state.write_card(card)


def _show_map(channels: CardChannels, channel: int, picture: Mosaic, position: Position | None) -> None:
    maps, geometry = channels.shown.maps, picture.geometry
    maximum = maximum_of(maps, channel)
    place = position or maximum
    alone = geometry.width * geometry.height == 1
    show_position_picture(
        "at",
        channels.position,
        PositionPicture(
            png=picture.png,
            height=geometry.height,
            width=geometry.width,
            alt=f"Channel {channel} of {channels.layer}",
            widest=_WIDEST_VALUE if alone else WIDEST,
            words=[] if alone or place is None else _words(channels, channel, place, is_maximum=place == maximum),
            chosen=position,
            maximum=maximum,
        ),
        channel_turn=state.channel_turn(channels.position),
    )


def _words(channels: CardChannels, channel: int, place: Position, *, is_maximum: bool) -> list[str]:
    row, column = place
    maps = channels.shown.maps
    text = exact_text(channels.values()[channel, row, column], numbers_of(maps.dtype, maps.shows))
    return [f"row {row}, column {column}", text + (" · maximum" if is_maximum else "")]


def exact_text(value: Tensor, numbers: Numbers) -> str:
    """A value with the fewest digits that tell it from every other of its kind."""
    number = float(value)
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else f"{'+' if number > 0 else MINUS}Inf"
    if numbers != "real":
        return value_text(number, numbers)
    text = str(number if is_double(value) else np.float32(number))
    return text.removesuffix(".0").replace("-", MINUS)
