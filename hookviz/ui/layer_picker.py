"""Choosing layers: by typing, by a quick choice, or from the tree of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from torch import nn

from hookviz.describe import describe
from hookviz.hooks.choices import called, first_choice, first_middle_last, grad_cam_layer
from hookviz.hooks.stages import Stage, stages
from hookviz.layer_tree import layer_rows
from hookviz.models import Model
from hookviz.types import LayerInfo
from hookviz.ui import state
from hookviz.ui.layer_tree import show_layer_tree

MOST_LAYERS = 12
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Hardswish, nn.Sigmoid)


def choose_layers(model: Model, layers: Sequence[LayerInfo]) -> list[str]:
    """The names of the layers to show, at most ``MOST_LAYERS``."""
    infos = {info.name: info for info in layers}
    state.settle_layers(model.name, list(infos), first_choice(model.module, layers), MOST_LAYERS)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", key="quick choices"):
            st.markdown("**Layers**", width="content")
            _show_quick_choices(model, layers)
            _show_stages(stages(layers))
        st.multiselect(
            "Layers to show",
            list(infos),
            key=state.LAYERS,
            format_func=lambda name: describe(infos[name]),
            max_selections=MOST_LAYERS,
            placeholder="Type a name or a kind of layer, for instance conv",
            label_visibility="collapsed",
            on_change=state.changed,
            select_all=False,
        )
        title = f"All {len(layers)} layers and operations: type, output, parameters, calls"
        with st.expander(title, key="all layers"):  # by its key it stays open when another network has more of them
            show_layer_tree(model.name, layer_rows(layers), MOST_LAYERS)
    return state.chosen_layers()


def _show_quick_choices(model: Model, layers: Sequence[LayerInfo]) -> None:
    convolutions = called(model.module, layers, nn.Conv2d)
    activations = [name for kind in _ACTIVATIONS for name in called(model.module, layers, kind)]
    order = [info.name for info in layers]
    grad_cam = grad_cam_layer(model.module, layers)
    choices = {
        "First, middle, last conv": first_choice(model.module, layers),
        "Last conv": convolutions[-1:],
        "Activations": first_middle_last(sorted(set(activations), key=order.index)),
        "Grad-CAM layer": [] if grad_cam is None else [grad_cam],
        "Output": [""],
    }
    for title, names in choices.items():
        if names:
            st.button(title, key=f"choose {title}", on_click=state.choose_layers, args=(names,), type="tertiary")


def _show_stages(found: Sequence[Stage]) -> None:
    """For each resolution its first, middle and last layer; and one layer of each resolution."""
    if not found:
        return
    with st.popover("Stages", type="tertiary", help="First, middle and last layer at each resolution"):
        for number, stage in enumerate(found):
            names = _ends(stage)
            single = {title: [name] for title, name in names.items()}
            _offer(f"{stage.height} × {stage.width}", single | {"All": list(dict.fromkeys(names.values()))}, number)
        if len(found) > 1:
            each = {title: [_ends(stage)[title] for stage in found][:MOST_LAYERS] for title in _ends(found[0])}
            _offer("Each of them", each, len(found))


def _ends(stage: Stage) -> dict[str, str]:
    names = stage.layers
    return {"First": names[0], "Middle": names[len(names) // 2], "Last": names[-1]}


def _offer(title: str, choices: Mapping[str, Sequence[str]], number: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", wrap=False, key=f"stage {number}"):
        st.markdown(title, width=96)
        for label, names in choices.items():
            key = f"choose stage {number} {label}"
            st.button(label, key=key, on_click=state.choose_layers, args=(names,), type="tertiary", wrap=False)
