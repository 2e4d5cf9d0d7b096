"""One layer's maps beside those of the network that it is compared with."""

from __future__ import annotations

from collections.abc import Hashable

import streamlit as st

from hookviz.sanity import Compared, Inspection
from hookviz.sanity.conclusions import untrained_twin
from hookviz.sanity.paired_maps import paired_maps
from hookviz.types import ChannelMaps
from hookviz.ui import state
from hookviz.ui.check_page.checks import Order, loading
from hookviz.ui.mosaic_figure import show_mosaic_figure
from hookviz.ui.sentences import one_sentence
from hookviz.ui.style import show
from hookviz.views import mosaic_picture

_CHANNELS = 32
_LAYER = "check-maps"


@st.fragment
def show_side_by_side(key: Hashable, order: Order, inspection: Inspection, compared: Compared) -> None:
    """Show the first channels of a layer of both, on the first image and in the same colours."""
    layers = [one.layer for one in compared.layers if one.cka is not None]
    if not layers or not inspection.images:
        return
    with st.container(key="check-side-by-side"), one_sentence():
        show('<div class="hv-head" style="margin-top:1rem">The same maps in both networks</div>')
        state.settle_choice(_LAYER, layers, layers[0])
        asked, _ = st.columns([1, 2])
        with asked:
            layer = str(st.selectbox("Maps of", layers, key=_LAYER))
        ours, theirs = _maps(str(key), layer, inspection, order)
        numbers = range(min(_CHANNELS, ours.channels, theirs.channels))
        left, right = st.columns(2, gap="medium")
        with left:
            picture = mosaic_picture(ours, order=numbers, like=theirs, scale="symmetric", cmap="RdBu_r")
            show_mosaic_figure("This network", picture, ours.shows)
        with right:
            picture = mosaic_picture(theirs, order=numbers, like=ours, scale="symmetric", cmap="RdBu_r")
            show_mosaic_figure(compared.other[:1].upper() + compared.other[1:], picture, theirs.shows)


@st.cache_resource(show_spinner="Running both networks", max_entries=8)
def _maps(
    key: str,  # noqa: ARG001  # what the cache knows it by
    layer: str,
    _inspection: Inspection,
    _order: Order,
) -> tuple[ChannelMaps, ChannelMaps]:
    subject = _inspection.subject
    load = loading(_order.against, str(subject.model.device))
    loaded = None if load is None else load()
    other = untrained_twin(subject.model) if loaded is None else loaded.module
    assert other is not None, "layers were compared, so there is a network to compare them with"  # noqa: S101
    return paired_maps(subject.module, other, _inspection.first_arguments(), layer)
