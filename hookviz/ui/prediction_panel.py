"""What went in and what came out: the pixels the network saw, and its five most probable classes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st
from PIL import Image
from torch import Tensor

from hookviz.models import Model
from hookviz.models.drawing import CERTAIN, draw
from hookviz.models.own_recipe import OwnRecipe
from hookviz.models.results import ClassMap, Detections, Flow
from hookviz.types import Prediction
from hookviz.ui.checkpoint_report import show_report
from hookviz.ui.resources import SeenImage
from hookviz.ui.sentences import sentence
from hookviz.ui.style import badge, escaped, show
from hookviz.views import png_bytes, rgb_pixels


def data_url(content: bytes, mime: str = "image/png") -> str:
    """Bytes as an address that a browser shows without asking the server again."""
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"


def input_pixels(model: Model, batch: Tensor) -> npt.NDArray[np.uint8] | None:
    """What went into the network, turned back into (H, W, 3) pixels: of several frames the first; None: no picture."""
    if isinstance(model.recipe, OwnRecipe):
        return model.recipe.pixels(batch)
    frame = batch[0] if batch.ndim == 4 else batch[0, :, 0]
    mean, std = model.normalization
    return rgb_pixels(frame.cpu().numpy(), mean, std)


def show_input(model: Model, title: str, seen: SeenImage, batch: Tensor) -> None:
    """The pixels that the network saw, and what was done to get them."""
    pixels = input_pixels(model, batch)
    whole = seen.reading.image
    if pixels is None:
        shape = " × ".join(map(str, batch.shape))
        show(f'<p class="hv-quiet">What went in: a tensor of {shape}, which is no picture</p>')
    else:
        height, width = pixels.shape[:2]
        alt = f"{title}, as the network saw it"
        show(
            f'<figure class="hv-saw" style="margin:0"><img src="{data_url(png_bytes(pixels))}" alt="{escaped(alt)}">'
            f'<figcaption class="hv-quiet" style="margin-top:.5rem">What the network saw: {width} × {height},<br>'
            f"from {escaped(title)}, {whole.width} × {whole.height}</figcaption></figure>"
        )
    for note in (*seen.reading.notes, model.input_note(seen.pictures)):
        if note:
            st.caption(sentence(note))


def show_result(model: Model, result: Any, batch: Tensor) -> None:
    """What the network says: classes as bars, everything else drawn into its picture."""
    with st.container(key="predictions"):
        show_head(model, classes=isinstance(result, tuple))
        if isinstance(result, tuple):
            show(_bars(result))
        else:
            show_drawn(model, result, batch)
            st.caption(sentence(in_words(result)))
        show_origin(model)


def show_head(model: Model, *, classes: bool) -> None:
    """The heading, which says so where a prediction means nothing."""
    means = "the classes mean nothing" if classes else "the result means nothing"
    untrained = "" if model.trained else " " + badge("warn", f"untrained: {means}")
    show(f'<div style="font-weight:600;font-size:1.05rem;margin-bottom:.8rem">Prediction{untrained}</div>')


def show_origin(model: Model) -> None:
    """Where network and weights come from, and how a visitor's own file fitted."""
    show(f'<div class="hv-quiet" style="margin-top:.6rem">{escaped(model.source)}</div>')
    if model.report is not None:
        st.caption(sentence(model.report.verdict))
        show_report(model.report)


def show_drawn(model: Model, result: Detections | ClassMap | Flow, batch: Tensor) -> None:
    """The picture that the network saw, with its result drawn into it; nothing where it was no picture."""
    pixels = input_pixels(model, batch)
    if pixels is None:
        return
    drawn = np.asarray(draw(Image.fromarray(pixels), result))
    alt = f"The picture with the network's {model.task} drawn into it"
    show(f'<div class="hv-drawn"><img src="{data_url(png_bytes(drawn))}" alt="{escaped(alt)}"></div>')


def _bars(predictions: Sequence[Prediction]) -> str:
    rows = "".join(
        f'<span class="name" title="{escaped(one.label)}">{escaped(one.label)}</span>'
        f'<span class="track"><span class="bar" style="display:block;width:{100 * one.probability:.2f}%"></span></span>'
        f'<span class="share">{100 * one.probability:.1f} %</span>'
        for one in predictions
    )
    return f'<div class="hv-bars" role="list">{rows}</div>'


def in_words(result: Detections | ClassMap | Flow) -> str:
    """A result that is no list of classes, in a sentence."""
    match result:
        case Detections():
            found = result.above(CERTAIN)
            things = ", ".join(f"{label} {score:.2f}" for label, score in zip(found.labels, found.scores, strict=True))
            return things or f"Nothing with a score of {CERTAIN} or more, among {len(result)} guesses."
        case ClassMap():
            return ", ".join(f"{label} {100 * share:.0f} %" for label, share in list(result.shares.items())[:5])
        case Flow():
            length = np.hypot(*result.vectors)
            return f"Motion of {length.mean():.1f} pixels on average, {length.max():.1f} at most."
