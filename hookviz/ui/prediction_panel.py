"""What went in and what came out: the pixels the network saw, and its five most probable classes."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import streamlit as st
from torch import Tensor

from hookviz.models import Model
from hookviz.types import Prediction
from hookviz.ui.sidebar import ChosenImage
from hookviz.ui.style import badge, escaped, show
from hookviz.views import png_bytes, rgb_pixels


def data_url(content: bytes, mime: str = "image/png") -> str:
    """Bytes as an address that a browser shows without asking the server again."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def show_input(model: Model, image: ChosenImage, batch: Tensor) -> None:
    """The network's input, turned back into pixels."""
    mean, std = model.normalization
    pixels = rgb_pixels(batch[0].cpu().numpy(), mean, std)
    height, width = pixels.shape[:2]
    title = f"{image.title}, as the network saw it"
    whole = image.reading.image
    show(
        f'<figure class="hv-saw" style="margin:0"><img src="{data_url(png_bytes(pixels))}" alt="{escaped(title)}">'
        f'<figcaption class="hv-quiet" style="margin-top:.5rem">What the network saw: {width} × {height},<br>'
        f"from {escaped(image.title)}, {whole.width} × {whole.height}</figcaption></figure>"
    )
    for note in image.reading.notes:
        st.caption(note)


def show_predictions(model: Model, predictions: Sequence[Prediction]) -> None:
    """The most probable classes as bars, longest first."""
    heading = "Prediction" + ("" if model.trained else " " + badge("warn", "untrained: the classes mean nothing"))
    rows = "".join(
        f'<span class="name" title="{escaped(one.label)}">{escaped(one.label)}</span>'
        f'<span class="track"><span class="bar" style="display:block;width:{100 * one.probability:.2f}%"></span></span>'
        f'<span class="share">{100 * one.probability:.1f} %</span>'
        for one in predictions
    )
    with st.container(key="predictions"):
        show(
            f'<div style="font-weight:600;font-size:1.05rem;margin-bottom:.8rem">{heading}</div>'
            f'<div class="hv-bars" role="list">{rows}</div>'
            f'<div class="hv-quiet" style="margin-top:.9rem">{escaped(model.source)}</div>'
        )
