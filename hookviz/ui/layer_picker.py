"""Choosing layers, by name, by kind, or from the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from torch import nn

from hookviz.hooks.choices import called, first_choice, first_middle_last
from hookviz.models import Model
from hookviz.types import LayerInfo
from hookviz.ui import state

MOST_LAYERS = 12
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Hardswish, nn.Sigmoid)


def choose_layers(model: Model, layers: Sequence[LayerInfo]) -> list[str]:
    """The names of the layers to show, at most ``MOST_LAYERS``."""
    infos = {info.name: info for info in layers}
    state.settle_layers(model.name, list(infos), first_choice(model.module, layers))
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Layers**", width="stretch")
            _show_quick_choices(model, layers)
        st.multiselect(
            "Layers to show",
            list(infos),
            key=state.LAYERS,
            format_func=lambda name: describe(infos[name]),
            max_selections=MOST_LAYERS,
            placeholder="Type a name or a kind of layer, for instance conv",
            label_visibility="collapsed",
            on_change=state.layers_chosen,
            select_all=False,
        )
        _show_table(layers)
    return state.chosen_layers()


def describe(info: LayerInfo) -> str:
    """A layer in one line: name, class, output."""
    shapes = list(dict.fromkeys(map(size, info.output_shapes)))
    times = f" · {info.calls} calls" if info.calls and info.calls > 1 else ""
    outputs = ", ".join(shapes[:2]) or "not called"
    return f"{info.name or '(whole network)'} · {kind(info)} · {outputs}{times}"


def kind(info: LayerInfo) -> str:
    """What a layer is: its class, or that it is a function called in a forward."""
    return f"{info.class_name}()" if info.is_operation else info.class_name


def size(shape: Sequence[int]) -> str:
    """A shape without its batch axis: 64 × 56 × 56."""
    return " × ".join(map(str, shape[1:] if len(shape) > 1 else shape)) or "scalar"


def _show_quick_choices(model: Model, layers: Sequence[LayerInfo]) -> None:
    convolutions = called(model.module, layers, nn.Conv2d)
    activations = [name for kind in _ACTIVATIONS for name in called(model.module, layers, kind)]
    order = [info.name for info in layers]
    choices = {
        "First, middle, last conv": first_choice(model.module, layers),
        "Last conv": convolutions[-1:],
        "Activations": first_middle_last(sorted(set(activations), key=order.index)),
        "Output": [""],
    }
    for title, names in choices.items():
        if names:
            st.button(title, key=f"choose {title}", on_click=state.choose_layers, args=(names,), type="tertiary")


def _show_table(layers: Sequence[LayerInfo]) -> None:
    with st.expander(f"All {len(layers)} layers and operations: type, output, parameters, calls"):
        text = st.text_input("Filter by name or type", key="layer-filter", placeholder="Filter by name or type")
        listed = [info for info in layers if text.lower() in f"{info.name} {kind(info)}".lower()]
        names = [info.name for info in listed]
        key = state.table_key(text)
        st.dataframe(
            {
                "layer": [info.name or "(whole network)" for info in listed],
                "type": [kind(info) for info in listed],
                "output": [" | ".join(map(size, info.output_shapes)) or "not called" for info in listed],
                "parameters": [info.parameters for info in listed],
                "calls": [info.calls or 0 for info in listed],
            },
            key=key,
            height=320,
            hide_index=True,
            on_select=lambda: state.take_rows(key, names),
            selection_mode="multi-row",
            selection_default={
                "selection": {"rows": [row for row, name in enumerate(names) if name in set(state.chosen_layers())]}
            },
            alt="All layers with their type, output size, parameters and calls",
        )
