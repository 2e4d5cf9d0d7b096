"""All pages, from top to bottom."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.navigation.page import StreamlitPage
from torch import Tensor

from hookviz.errors import ModelError, WeightsUnavailableError
from hookviz.models import Model
from hookviz.models.catalogue import model_task
from hookviz.models.checkpoints import CheckpointError
from hookviz.models.model import UNTRAINED
from hookviz.types import LayerInfo
from hookviz.ui import resources, state
from hookviz.ui.before_run import bytes_needed, choose_keeping, show_cost
from hookviz.ui.check_page.page import show_check_page
from hookviz.ui.checkpoint_report import show_report
from hookviz.ui.cycle_collector import set_aside
from hookviz.ui.display import choose_display
from hookviz.ui.edited_prediction import show_edited_prediction
from hookviz.ui.hooks_page.page import show_hooks_page
from hookviz.ui.hooks_page.subject import Subject
from hookviz.ui.layer_card import Card, show_layer
from hookviz.ui.layer_picker import choose_layers
from hookviz.ui.prediction_panel import show_input, show_result
from hookviz.ui.resources import LayerCapture
from hookviz.ui.sentences import log_shown, one_sentence, sentence
from hookviz.ui.shown_network import ShownNetwork
from hookviz.ui.sidebar import (
    ChosenImage,
    choose_device,
    choose_image,
    choose_model,
    choose_own_weights,
    show_brand,
)
from hookviz.ui.statistics_card import show_statistics
from hookviz.ui.style import apply_style, escaped, show

_HOOKS, _CHECK = "hooks", "check"


def run() -> None:
    """Show the page that the reader is on; the sidebar is the same on all."""
    apply_style()
    page = _navigate()
    with one_sentence():
        state.notes_went()
        with set_aside(first=state.begin()):
            _show_page(page)


def _show_page(page: str) -> None:
    state.settle_display()
    with st.sidebar:
        show_brand()
        name, weights = choose_model()
        image_place = st.container()
        if page == _HOOKS:
            choose_display(beside=False)
        own_weights, class_names = choose_own_weights(name)
        device = choose_device()
        device_place = st.container(key="device")
    notes_place = st.container()
    with image_place:
        image = choose_image(model_task(name))
    chosen = resources.ChosenModel(name, weights, device, own_weights, class_names)
    model = _load(chosen)
    if model is None:
        state.write_address(resources.default_weights(name), layers=False)
        return
    if page == _HOOKS:
        more = _show_hooks(chosen, model, image)
        state.write_address(resources.default_weights(name), layers=False, more=more)
    elif page == _CHECK:
        more = show_check_page(chosen, model, image, _explore())
        state.write_address(resources.default_weights(name), layers=False, more=more)
    else:
        state.take_linked_layer()
        _show_network(chosen, model, image, device_place)
    with notes_place:
        _show_notes()


def _navigate() -> str:
    """Show the names of the pages, and say which one the reader is on: its part of the address."""
    others = [st.Page(_nothing, title=path.capitalize(), url_path=path) for path in (_HOOKS, _CHECK)]
    return st.navigation([_explore(), *others], position="top").url_path


def _explore() -> StreamlitPage:
    return st.Page(_nothing, title="Explore", default=True, url_path="explore")


def _nothing() -> None:
    """Stand for a page: what it shows, run() does, since the sidebar chooses what it is of."""


def _show_hooks(chosen: resources.ChosenModel, model: Model, image: ChosenImage) -> dict[str, str]:
    key = (chosen.key, image.key)
    seen = resources.get_image(image.key, model.task in resources.MOVING, image.content, image.second)
    batch = resources.get_batch(key, model, seen)
    layers = resources.get_layers((key[0], tuple(batch.shape)), model, batch)
    return show_hooks_page(Subject(key, model, batch, tuple(layers), chosen.own_weights is not None))


def _show_notes() -> None:
    for note in state.notes():
        st.warning(sentence(note), icon=":material/link_off:")


def _load(chosen: resources.ChosenModel) -> Model | None:
    """The model; where its weights cannot be had, a sentence and the offer of the same model untrained."""
    place = st.empty()

    def on_progress(done: int, total: int) -> None:
        share = f"{done / 2**20:.0f} of {total / 2**20:.0f} MB" if total else f"{done / 2**20:.0f} MB"
        place.progress(min(1.0, done / total) if total else 0.0, f"Downloading the weights of {chosen.name}: {share}")

    try:
        with st.spinner(f"Loading {chosen.name}", show_time=True):
            model = resources.get_model(chosen, on_progress)
    except WeightsUnavailableError as error:
        place.empty()
        reason = str(error).partition("; load_model(")[0]  # what to do in code; here it is the button
        st.error(sentence(reason), icon=":material/cloud_off:")
        st.button(
            f"Show {chosen.name} untrained instead",
            on_click=state.choose_weights,
            args=(UNTRAINED,),
            key="untrained instead",
        )
        return None
    except CheckpointError as error:
        if error.report is None:
            raise
        place.empty()
        log_shown(error)
        st.error(sentence(str(error)), icon=":material/error:")
        show_report(error.report)
        return None
    place.empty()
    return model


def _show_network(
    chosen: resources.ChosenModel, model: Model, image: ChosenImage, device_place: DeltaGenerator
) -> None:
    key = (chosen.key, image.key)
    seen = resources.get_image(image.key, model.task in resources.MOVING, image.content, image.second)
    batch = resources.get_batch(key, model, seen)
    saw, said = st.columns([1, 2.4], gap="large")
    with saw:
        show_input(model, image.title, seen, batch)
    with said:
        _show_answer(key, model, batch)
    layers = resources.get_layers((key[0], tuple(batch.shape)), model, batch)
    names = choose_layers(model, layers)
    cost = st.empty()
    with cost:
        show_cost(layers, names, flops=None)
    keeping = choose_keeping(bytes_needed(layers, names))
    if keeping is not None:
        captured = resources.get_captures(key, model, batch, names, keeping)
        network = ShownNetwork(key, chosen, image)
        if names:
            _show_layers(network, {info.name: info for info in layers}, {name: captured[name] for name in names})
    if not names:
        st.info("Choose a layer above to see what it computed.", icon=":material/layers:")
    with cost:  # behind the cards, since counting takes longer than a card
        show_cost(layers, names, resources.get_estimate((key[0], tuple(batch.shape)), model, batch).flops)
    with device_place:
        _show_device(model)
    state.write_address(resources.default_weights(model.name))


@st.fragment
def _show_layers(network: ShownNetwork, infos: Mapping[str, LayerInfo], captured: Mapping[str, LayerCapture]) -> None:
    """A card for each layer; a fragment, so that another order or colormap runs nothing but these."""
    if state.notes_went():
        st.rerun()  # they stand further up
    state.settle_display()
    key = network.key
    choose_display(beside=True)
    for position, (layer, capture) in enumerate(captured.items()):
        if capture.kept == "statistics":
            show_statistics(position, infos[layer], capture)
        else:
            show_layer(Card(position, f"{key[0]} {layer}", f"{key} {layer}", infos[layer], capture, network))
    state.write_address(resources.default_weights(network.chosen.name))


def _show_answer(key: tuple[str, str], model: Model, batch: Tensor) -> None:
    """What the network says, beside what it says with edits where there are any."""
    if state.edits_wanted(model.name):
        shape = (key[0], tuple(batch.shape))
        edits = state.settle_edits({info.name: info for info in resources.get_layers(shape, model, batch)})
        if edits:
            show_edited_prediction(key, model, batch, edits, resources.get_estimate(shape, model, batch))
            return
    _show_result(key, model, batch)


def _show_result(key: tuple[str, str], model: Model, batch: Tensor) -> None:
    """What the network says; where it says nothing, the reason, and the page goes on with its layers."""
    try:
        result = resources.get_result(key, model, batch)
    except ModelError as error:
        with st.container(key="predictions"):
            st.info(sentence(str(error)), icon=":material/info:")
    else:
        show_result(model, result, batch)


def _show_device(model: Model) -> None:
    where = "CPU" if model.device.type == "cpu" else str(model.device).upper()
    threads = f" · {resources.device_threads()} threads" if model.device.type == "cpu" else ""
    kept = f"{resources.captures().total / 2**20:.0f} of {resources.BYTES_KEPT / 2**20:.0f} MB kept"
    note = f"<br>{escaped(model.note)}" if model.note else ""
    show(f'<div class="hv-quiet">Runs on {where}{threads}<br>{kept} for all visitors{note}</div>')
