"""The tab about gradients: how strong they are layer by layer, one channel of one layer, and clipping."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from hookviz.hook_lab import LossChoice
from hookviz.hooks import GradientFlow
from hookviz.types import FloatArray
from hookviz.ui import state
from hookviz.ui.hooks_page import versus
from hookviz.ui.hooks_page.controls import choose_layer, choose_loss
from hookviz.ui.hooks_page.maps import map_markup, maps_of
from hookviz.ui.hooks_page.subject import Subject, get_clipped, get_flow, get_layer_gradient
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.sentences import one_sentence, sentence
from hookviz.ui.style import badge, escaped, show, theme_name
from hookviz.views import figure_bytes, gradient_flow_figure, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LAYER, _CHANNEL, _CLIP, _MAX_NORM = "gradient-layer", "gradient-channel", "clip-gradients", "max-norm"

_MEANINGS = {
    "fine": "",
    "vanishing": "the gradient is less than a millionth of the parameters’ norm, so that a step of SGD changes nothing",
    "exploding": "the gradient is more than a thousand times the parameters’ norm",
    "none arrived": "the layer took part, and yet no gradient came",
    "non-finite": "there are NaN or infinite gradients",
    "frozen": "requires_grad is off",
    "unused": "this loss does not depend on the layer",
}
_SERIOUS = ("non-finite", "exploding", "vanishing", "none arrived")


def show_gradients_tab(subject: Subject, logits: int | None, ranked: list[int]) -> LossChoice:
    """Everything about the gradients of one class or loss; gives the choice."""
    loss = choose_loss(subject, logits, ranked)
    with one_sentence():
        with st.spinner("Running forward and backward"):
            flow = get_flow(subject.key, loss, subject)
        _show_flow(flow, _of(subject, logits, loss))
        _show_channel(subject, loss)
        _show_clipping(subject, loss)
    return loss


def _of(subject: Subject, logits: int | None, loss: LossChoice) -> str:
    if logits is None or loss.target is None:
        return "mean of the first output"
    return f"{loss.kind} of {subject.class_names(logits)[loss.target]}"


def _show_flow(flow: GradientFlow, of: str) -> None:
    if not flow.layers:
        st.caption("This network has no parameters.")
        return
    show(f'<div class="hv-head">Gradient flow {_summary(flow)}</div>')
    figure = gradient_flow_figure(flow.layers, title=of, theme=theme_name())
    _show_figure(figure, f"Mean and largest absolute gradient of {len(flow.layers)} layers on a logarithmic axis")
    for line in _verdicts(flow):
        st.caption(sentence(line))


def _summary(flow: GradientFlow) -> str:
    wrong = sum(layer.verdict in _SERIOUS for layer in flow.layers)
    if not wrong:
        return badge("good", f"all {len(flow.layers)} layers fine") if _all_fine(flow) else badge("good", "fine")
    return badge("bad", f"{wrong} of {len(flow.layers)} layers")


def _all_fine(flow: GradientFlow) -> bool:
    return all(layer.verdict == "fine" for layer in flow.layers)


def _verdicts(flow: GradientFlow) -> list[str]:
    """A sentence for each verdict but fine, with the layers it is about."""
    layers = defaultdict(list)
    for layer in flow.layers:
        layers[layer.verdict].append(layer.name or "the network itself")
    return [
        f"{verdict}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}, "
        f"that is: {_MEANINGS[verdict]}"
        for verdict, names in layers.items()
        if verdict != "fine"
    ]


def _show_figure(figure: Figure, alt: str) -> None:
    svg = figure_bytes(figure, "svg")
    width = round(96 * figure.get_figwidth())
    show(
        f'<div class="hv-wide"><img src="{data_url(svg, "image/svg+xml")}" alt="{escaped(alt)}" '
        f'style="width:{width}px"></div>'
    )


def _show_channel(subject: Subject, loss: LossChoice) -> None:
    show('<div class="hv-head" style="margin-top:.8rem">One channel: activation, gradient, and their product</div>')
    where, which, _ = st.columns([2.5, 1.4, 4.2], gap="small")
    with where:
        layer = choose_layer(_LAYER, "Layer", subject)
    found = get_layer_gradient(subject.key, loss, layer, subject)
    if found.activation is None:
        st.caption("This layer does not run here.")
        return
    if found.gradient is None or found.gradient.shape != found.activation.shape:
        st.caption("No gradient reached what this layer returned.")
        return
    activation, gradient = (maps_of(one, subject.info(layer)) for one in (found.activation, found.gradient))
    with which:
        channel = _choose_channel(activation)
    maps = {
        "activation": activation[channel],
        "gradient": gradient[channel],
        "activation × gradient": activation[channel] * gradient[channel],
    }
    for place, (title, values) in zip(st.columns(3, gap="medium"), maps.items(), strict=True):
        with place:
            show(map_markup(values, title))


def _choose_channel(activation: FloatArray) -> int:
    with np.errstate(all="ignore"):
        strongest = int(np.nan_to_num(np.abs(activation.astype(np.float64))).mean((1, 2)).argmax())
    options = ["strongest", *map(str, range(len(activation)))]
    state.settle_choice(_CHANNEL, options, "strongest")
    chosen = st.selectbox(
        "Channel",
        options,
        key=_CHANNEL,
        format_func=lambda one: f"Strongest ({strongest})" if one == "strongest" else f"Channel {one}",
    )
    return strongest if chosen == "strongest" else int(chosen)


def _show_clipping(subject: Subject, loss: LossChoice) -> None:
    show('<div class="hv-head" style="margin-top:.8rem">Clipping</div>')
    with st.container(horizontal=True, vertical_alignment="center"):
        clip = st.toggle(
            "Clip by the norm of all gradients together",
            key=_CLIP,
            help="As torch.nn.utils.clip_grad_norm_ does, while backward runs.",
        )
        max_norm = st.select_slider(
            "Largest norm",
            [10.0**power * step for power in range(-3, 3) for step in (1, 2, 5)],
            value=1.0,
            key=_MAX_NORM,
            format_func=lambda norm: f"{norm:g}",
            width=320,
            disabled=not clip,
        )
    if clip:
        clipped = get_clipped(subject.key, loss, max_norm, subject)
        was, now = clipped.total
        st.caption(
            f"All gradients together: {number(was)} → {number(now)}. "
            + ("Each layer keeps its share." if was > now else "The norm is below the limit, so nothing is clipped.")
        )
        rows: dict[str, tuple[float | None, float | None]] = dict(clipped.layers.items())
        show(versus.key("norm of the gradient", "clipped") + versus.norm_rows(rows))
