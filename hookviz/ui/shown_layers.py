"""Layers read and measured once for all sessions: another order, scale, colormap or page computes none of it again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch
from torch import Tensor

from hookviz.channels import channel_order
from hookviz.layer_picture import Display, Selection, Shown, arranged
from hookviz.layout import arrange
from hookviz.types import ChannelOrder, Layout
from hookviz.ui.shelf import Shelf

BYTES_KEPT = 64 * 2**20
"""For the maps of all sessions; the values they were made of are kept elsewhere."""


@st.cache_resource(show_spinner=False)
def shown_layers() -> Shelf[Shown]:
    """Layers as they are shown, in the order of their channels' numbers, without the tensor itself."""
    return Shelf(BYTES_KEPT, lambda shown: shown.maps.maps.nbytes)


def get_shown(  # noqa: PLR0913, PLR0917 - as arranged, and what its tensor is known by
    key: Hashable, tensor: Tensor, layout: Layout, by: ChannelOrder, display: Display, selection: Selection
) -> Shown:
    """As ``arranged``, from memory where it is still there; ``key`` is what the tensor is known by.

    Raises:
        LayoutError: the layout does not fit the tensor.
    """
    reading = (key, layout, selection)

    def read(order: ChannelOrder) -> Shown:
        return shown_layers().get((reading, order), lambda: _without_tensor(tensor, layout, order, display, selection))

    if by == "index" or selection.depth is not None:
        return replace(read(by), tensor=tensor, display=display)
    shown = read("index")
    return replace(shown, tensor=tensor, display=display, order=channel_order(shown.statistics, by))


def exact_values(tensor: Tensor, layout: Layout, selection: Selection) -> Tensor:
    """The values behind the maps, (C, H, W) in a dtype that holds them."""
    item, depth, shows = selection.item, selection.depth, selection.shows
    return arrange(tensor, layout.name, layout.grid, item, depth=depth, shows=shows).values


def order_of(shown: Shown) -> npt.NDArray[np.int64]:
    """The channels' numbers in the order shown."""
    return np.arange(shown.maps.channels) if shown.order is None else shown.order


def _without_tensor(tensor: Tensor, layout: Layout, by: ChannelOrder, display: Display, selection: Selection) -> Shown:
    return replace(arranged(tensor, layout, by, display, selection), tensor=torch.empty(0))
