"""A card's channels: the mosaic, the line that says what the pointer is on, and beside them the open channel."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from hookviz.layer_picture import PER_PAGE, draw_mosaic
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channel_mosaic import show_channel_mosaic
from hookviz.ui.channel_panel import show_channel
from hookviz.ui.channel_readout import show_channel_readout
from hookviz.ui.layer_views import show_distribution, show_legend, show_note
from hookviz.ui.style import escaped, show


def show_channels(channels: CardChannels, page: int, about: Mapping[str, str]) -> None:
    """Show a page of channels, the open one, and how all values are distributed.

    Pictures go to the browser first, the histogram, which takes longer, last.
    """
    shown, position = channels.shown, channels.position
    picture = draw_mosaic(shown, page)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        readout_place = st.container(key=f"readout-place-{position}")
        if picture.note:
            show(f'<p class="hv-quiet">{escaped(picture.note)}</p>')
            show_note(shown)
        else:
            show_channel_mosaic(channels, picture, first=page * PER_PAGE)
            show_legend(picture, shown)
    with right:
        channel_place = st.container(key=f"channel-place-{position}")
    if not picture.note:
        with channel_place:
            show_channel(channels)
        with readout_place:
            show_channel_readout(channels, picture)
    show_distribution(shown, about, right, right)
