"""Where in the image a layer sees a class: Grad-CAM and its relatives, by captum, over the photograph."""

from __future__ import annotations

from typing import get_args

import streamlit as st

from hookviz.attributions import LayerMethod, Values, layer_attribution
from hookviz.errors import HookvizError
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.channel_photo import LONGEST_SIDE, photo_of
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.sentences import sentence
from hookviz.ui.shelf import Shelf
from hookviz.ui.shown_network import ShownTensor
from hookviz.ui.style import escaped, show
from hookviz.views import channel_over_photo, png_bytes

BYTES_KEPT = 16 * 2**20

_TITLES: dict[LayerMethod, str] = {
    "GradCAM": "Grad-CAM",
    "GradientXActivation": "Gradient × activation",
    "IntegratedGradients": "Integrated gradients",
    "Conductance": "Conductance",
}
_SLOW: tuple[LayerMethod, ...] = ("IntegratedGradients", "Conductance")


@st.cache_resource(show_spinner=False)
def attributions() -> Shelf[Values]:
    """Attributions in memory: at most ``BYTES_KEPT``, shared by all sessions."""
    return Shelf(BYTES_KEPT, lambda heat: heat.nbytes)


def get_attribution(tensor: ShownTensor, target: int, method: LayerMethod) -> Values:
    """How much each position of a layer's maps speaks for a class, (height, width), made once for all sessions.

    Raises:
        HookvizError: captum is not installed, or the layer has no such maps or gradient.
    """
    model = tensor.network.model()
    arguments = model.arguments(tensor.network.batch(model))
    name, call = tensor.info.name, tensor.call
    return attributions().get(
        (tensor.network.key, name, call, target, method),
        lambda: layer_attribution(model.module, arguments, name, target, method, call=call),
    )


def show_attribution(channels: CardChannels, target: int) -> None:
    """Offer to draw where a layer's maps speak for a class; nothing where they have no places on the image."""
    tensor, photo = channels.tensor, photo_of(channels.tensor, channels.shown)
    if tensor.path or isinstance(photo, str):
        return
    method: LayerMethod | None = st.pills(
        "Where in the image this layer sees the class",
        get_args(LayerMethod),
        format_func=lambda one: _TITLES[one],
        key=f"attribution-{channels.position}",
        help=f"{' and '.join(_TITLES[one] for one in _SLOW)} take fifty forwards and backwards.",
    )
    if method is None:
        return
    try:
        with st.spinner(_TITLES[method], show_time=True):
            heat = get_attribution(tensor, target, method)
    except HookvizError as error:
        st.info(sentence(str(error)), icon=":material/info:")
        return
    pixels = channel_over_photo(
        photo.pixels, photo.crop, heat, cmap="inferno", interpolation="bilinear", longest_side=LONGEST_SIDE
    )
    alt = f"{_TITLES[method]} of {channels.layer} over {photo.name}"
    height, width = heat.shape
    show(
        f'<div class="hv-drawn"><img src="{data_url(png_bytes(pixels))}" alt="{escaped(alt)}"></div>'
        f'<p class="hv-quiet" style="margin:.5rem 0 0">{height} × {width} positions, from {heat.min():.3g} (dark) to '
        f"{heat.max():.3g} (bright), smoothed.</p>"
    )
