"""All channels of a layer in three pictures: principal components, groups of positions, likeness to one position."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from hookviz.position_features import PcaPicture, cluster_positions, cosine_to, pca_rgb
from hookviz.types import ChannelMaps
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channel_mosaic import ramp_markup
from hookviz.ui.position_picture import PositionPicture, show_position_picture
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.sentences import one_sentence
from hookviz.ui.shelf import Shelf
from hookviz.ui.style import escaped, show
from hookviz.views import channel_picture, cluster_colours, cluster_picture, pca_picture
from hookviz.views.palette import NAN, css

FEWEST, MOST, GROUPS = 2, 12, 5
"""Groups of positions: least, most, at first."""

BYTES_KEPT = 32 * 2**20
WIDEST = 340
"""CSS pixels of each picture."""

_CMAP = "coolwarm"


@st.cache_resource(show_spinner=False)
def overviews() -> Shelf[Any]:
    """What takes a while to compute, of all sessions: :class:`PcaPicture` and labels."""
    return Shelf(BYTES_KEPT, _bytes)


def _bytes(value: PcaPicture | npt.NDArray[np.int64]) -> int:
    if isinstance(value, PcaPicture):
        return value.rgb.nbytes + value.scores.nbytes + value.components.nbytes
    return value.nbytes


@st.fragment
def show_overview(channels: CardChannels) -> None:
    """Show the three pictures in one row; a fragment of its own, so that its choices run nothing else."""
    card = channels.position
    with st.container(key=f"overview-{card}"), one_sentence():
        components, groups, likeness = st.columns(3, gap="medium")
        with components:
            _show_components(channels)
        with likeness:
            _show_likeness(channels)
        with groups:
            _show_groups(channels)
    state.write_card(card)


def _show_components(channels: CardChannels) -> None:
    maps = channels.shown.maps
    found: PcaPicture = _kept((channels.of, "components"), lambda: pca_rgb(maps))
    _show_head("Principal components", f"What tells positions apart most, of all {maps.channels:,} channels")
    _show_picture(pca_picture(found.rgb), maps, "The three principal components as red, green and blue")
    names = zip(("red", "green", "blue"), found.explained, strict=True)
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in names)
    _show_caption(f"share of the variance: {shares}, together {100 * float(np.sum(found.explained)):.1f} %")


def _show_groups(channels: CardChannels) -> None:
    card, maps = channels.position, channels.shown.maps
    _show_head("Groups", "Positions with much the same channels, by k-means")
    picture_place, legend_place = st.container(), st.container()
    key = f"groups-{card}"
    state.settle_count(key, FEWEST, MOST, GROUPS, parameter=f"k{card}")
    count = int(st.slider("Number of groups", FEWEST, MOST, key=key))
    labels = _kept((channels.of, "groups", count), lambda: cluster_positions(maps, count))
    with picture_place:
        _show_picture(cluster_picture(labels), maps, f"Positions in {count} groups")
    with legend_place:
        show(_legend(labels))


def _show_likeness(channels: CardChannels) -> None:
    card, maps = channels.position, channels.shown.maps
    height, width = maps.maps.shape[1:]
    position = state.settle_position("like", card, height, width, f"{channels.belongs_to} {height} {width}")
    place = position or (height // 2, width // 2)
    cosine = cosine_to(maps, place)
    _show_head("Like one position", "Cosine of the angle between its channels and each other’s")
    picture = PositionPicture(
        png=channel_picture(cosine[None], 0, scale="symmetric", cmap=_CMAP),
        height=height,
        width=width,
        alt=f"Cosine similarity of all positions to row {place[0]}, column {place[1]}",
        widest=WIDEST,
        words=[f"like row {place[0]}, column {place[1]}"],
        chosen=place,
    )
    show_position_picture("like", card, picture)
    show(_scale(int(np.isnan(cosine).sum())))


def _scale(without: int) -> str:
    """From opposite to alike; a position is wholly like itself, so that the scale always ends at 1."""
    none = f'<span><span class="swatch" style="background:{css(_CMAP, NAN)}"></span>no direction {without:,}</span>'
    return f'<div class="hv-legend"><span>−1 opposite{ramp_markup(_CMAP)}alike 1</span>{none if without else ""}</div>'


def _legend(labels: npt.NDArray[np.int64]) -> str:
    count = int(labels.max(initial=-1)) + 1
    shares = [100 * float((labels == label).mean()) for label in range(count)]
    entries = [
        f'<span><span class="swatch" style="background:{colour}"></span>{share:.1f} %</span>'
        for colour, share in zip(cluster_colours(count), shares, strict=True)
    ]
    return f'<div class="hv-legend">{"".join(entries)}</div>'


def _show_head(title: str, about: str) -> None:
    show(f'<div class="hv-part-title">{escaped(title)}</div><div class="hv-quiet hv-about">{escaped(about)}</div>')


def _show_picture(png: bytes, maps: ChannelMaps, alt: str) -> None:
    height, width = maps.maps.shape[1:]
    size = f"max-width:{WIDEST}px;aspect-ratio:{width} / {height}"
    show(f'<div class="hv-positions" style="{size}"><img src="{data_url(png)}" alt="{escaped(alt)}"></div>')


def _show_caption(text: str) -> None:
    show(f'<div class="hv-quiet">{escaped(text)}</div>')


def _kept(key: Hashable, make: Callable[[], Any]) -> Any:
    return overviews().get(key, make)
