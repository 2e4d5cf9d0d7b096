"""The open channel over the photograph, with the receptive field of a position drawn on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import streamlit as st
import torch
from torch import Tensor

from hookviz.layer_picture import Shown, item_name
from hookviz.layout import axis_lengths
from hookviz.models import Model
from hookviz.models.own_recipe import OwnRecipe
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.own_component import own_component
from hookviz.ui.prediction_panel import data_url, input_pixels
from hookviz.ui.receptive_fields import Field, find_field, is_costly
from hookviz.ui.shown_network import ShownTensor
from hookviz.ui.style import escaped, show
from hookviz.views import Mosaic, channel_over_photo, maximum_of, png_bytes

Position = tuple[int, int]
Box = tuple[float, float, float, float]

LONGEST_SIDE = 384
"""Pixels of the picture: as many as a sharp screen has for it."""

SECONDS_AT_ONCE = 0.2
"""For which one run waits for a receptive field; other clicks wait for no longer than that."""

_FIND = "Find the receptive field"

_show = own_component("channel_photo", isolate_styles=False)


@dataclass(frozen=True, slots=True, eq=False)
class Photo:
    """The picture that maps lie on: pixels, where in them the maps are, and what they are called.

    ``filled`` is how much of the maps' width and height the network's input takes up, from the left and the top.
    """

    pixels: npt.NDArray[np.uint8]
    crop: Box
    name: str = "the image"
    filled: tuple[float, float] = (1.0, 1.0)

    def place(self, shares: Box) -> Box:
        """Shares of the network's input as shares of the crop."""
        across, down = self.filled
        return shares[0] * across, shares[1] * down, shares[2] * across, shares[3] * down


def photo_of(tensor: ShownTensor, shown: Shown) -> Photo | str:
    """The photograph under a card's maps; a sentence where they have no places on one."""
    lengths = axis_lengths(shown.tensor.shape, shown.maps.layout)
    if shown.maps.maps[0].size == 1:
        return "One value for the whole image has no place on it"
    if shown.picture != "maps" or ("L" in lengths and tensor.layout.grid is None):
        return "These values are not arranged as the image is, so they have no places on it"
    model = tensor.network.model()
    if tensor.info.name.startswith("roi_heads"):
        return "These maps are of regions found in the image, not of the whole"
    if lengths.get("N", 1) > 1 and model.task != "optical flow":
        return f"This map is of one {item_name(tensor.layout)} of {lengths['N']:,}, not of the whole image"
    return _photo(tensor, model)


def _photo(tensor: ShownTensor, model: Model) -> Photo | str:
    seen = tensor.network.seen(model)
    if not isinstance(model.recipe, OwnRecipe):
        frame = seen.reading.image
        name = "the first frame" if model.task in {"video", "optical flow"} else "the image"
        across, down = filled(tensor.network.key, model, tensor.network.batch(model))
        left, upper, right, lower = model.crop_box(frame)
        crop = (left, upper, left + (right - left) / across, upper + (lower - upper) / down)
        return Photo(np.asarray(frame.convert("RGB")), crop, name, (across, down))
    pixels = input_pixels(model, tensor.network.batch(model))  # what an own recipe cuts off, nobody knows
    if pixels is None:
        return "What went into the network is no picture"
    return Photo(pixels, (0.0, 0.0, float(pixels.shape[1]), float(pixels.shape[0])), "what the network saw")


@st.cache_data(show_spinner=False, max_entries=64)
def filled(key: tuple[str, str], _model: Model, _batch: Tensor) -> tuple[float, float]:  # noqa: ARG001 - ``key`` is both
    """How much of the width and height that a network works on its input fills.

    All of it, but for torchvision's detectors: they add a border on the right and at the bottom, so that both are
    multiples of 32.
    """
    from torchvision.models.detection.transform import GeneralizedRCNNTransform  # late: it is slow to import

    transform = getattr(_model.module, "transform", None)
    if not isinstance(transform, GeneralizedRCNNTransform):
        return 1.0, 1.0
    with torch.no_grad():
        images, _ = transform(list(_batch))
    (height, width), padded = images.image_sizes[0], images.tensors.shape
    return width / padded[-1], height / padded[-2]


def show_photo(channels: CardChannels, channel: int, picture: Mosaic, position: Position | None, widest: int) -> None:
    """Show a channel over the photo; the field of a position, or of the maximum, follows where it takes its time.

    ``picture`` is the channel's own, of which it has the colours.
    """
    tensor, shown, card = channels.tensor, channels.shown, channels.position
    photo = photo_of(tensor, shown)
    if isinstance(photo, str):
        show(f'<p class="hv-quiet">{escaped(photo)}.</p>')
        return
    maximum = maximum_of(shown.maps, channel)
    place = position or maximum
    field, pending, offer = (None, False, False) if place is None else _field(card, tensor, place)
    pixels = channel_over_photo(
        photo.pixels,
        photo.crop,
        shown.maps.maps[channel],
        cmap=picture.cmap,
        vmin=_finite(picture.limits.vmin[0]),
        vmax=_finite(picture.limits.vmax[0]),
        field=None if field is None or field.shares is None else photo.place(field.shares),
        position=position,
        maximum=maximum,
        longest_side=LONGEST_SIDE,
    )
    _show(
        key=state.photo_key(card),
        data={
            "card": card,
            "picture": data_url(png_bytes(pixels)),
            "alt": f"Channel {channel} over {photo.name}",
            "widest": widest,
            "words": _words(field, pending=pending),
            "note": "" if field is None else field.note,
            "offer": _FIND if offer else "",
            "pending": pending,
            "asks": state.field_asks(card),  # a component whose data stay the same is not told of an answer
        },
        on_ask_change=lambda: state.ask_for_field(card),
    )


def _finite(limit: np.float64) -> float | None:
    return float(limit) if np.isfinite(limit) else None


def _field(card: int, tensor: ShownTensor, place: Position) -> tuple[Field | None, bool, bool]:
    """The field, whether it is being looked for, and whether that is to be offered."""
    waits = state.waits_for_field(card)
    look = waits or not is_costly(tensor)
    field = find_field(tensor, place, look=look, seconds=SECONDS_AT_ONCE if waits else 0.0)
    return field, look and field is None, not look and field is None


def _words(field: Field | None, *, pending: bool) -> str:
    if field is None:
        return "receptive field …" if pending else ""
    return field.words
