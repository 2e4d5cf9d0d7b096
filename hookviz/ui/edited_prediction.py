"""The prediction with edits beside the one without, what is edited, and the layers that moved most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from hookviz.class_names import numbered_class_names
from hookviz.errors import ModelError
from hookviz.hooks.edit_effect import LayerMove
from hookviz.hooks.estimate import Estimate
from hookviz.models import Model
from hookviz.ui import state
from hookviz.ui.bar_rows import BarRow, show_bar_rows
from hookviz.ui.edit_outcomes import EditOutcome, get_outcome
from hookviz.ui.hooks_page import versus
from hookviz.ui.hooks_page.style import apply_versus_style
from hookviz.ui.layer_picker import MOST_LAYERS
from hookviz.ui.prediction_panel import in_words, show_drawn, show_head, show_origin
from hookviz.ui.python_code import show_scripts
from hookviz.ui.sentences import literal, one_sentence, sentence
from hookviz.ui.style import escaped, show
from hookviz.ui.switch_address import written
from hookviz.ui.switches import Switch, edits_of, words
from hookviz.view_code import edited_hookviz_script, edited_torch_script

_MOVED = "moved layers"
_MOVED_SHOWN = 8
_NOTICED = 0.0005
_WAS, _NOW = "as it is", "with the edits"


def show_edited_prediction(
    key: tuple[str, str], model: Model, batch: Tensor, switches: Sequence[Switch], estimated: Estimate
) -> None:
    """Show what the network says as it is and with the edits, the edits to undo, and the layers that moved most."""
    apply_versus_style()
    with st.container(key="predictions"):
        head_place = st.container()
        result_place = st.container()
        _show_switches(switches)
        moved_place = st.container()
        with one_sentence(), result_place:
            outcome = get_outcome(key, model, batch, switches, estimated)
            with head_place:
                show_head(model, classes=outcome.scores is not None)
            state.tell_effect(_show_result(model, batch, outcome))
            with moved_place:
                _show_moved(outcome)
        _show_code(model, switches)
        show_origin(model)


def _show_switches(switches: Sequence[Switch]) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="edits"):
        for one in switches:
            st.button(
                literal(words(one)),
                key=f"undo {written([one])[0]}",
                icon=":material/close:",
                icon_position="right",
                help="Undo",
                on_click=state.remove_switch,
                args=(one,),
            )
        if len(switches) > 1:
            st.button("Undo all", key="undo all", type="tertiary", on_click=state.remove_all_switches)


@st.fragment
def _show_code(model: Model, switches: Sequence[Switch]) -> None:
    """The scripts for what is shown; written when they are asked for."""
    opened = st.popover("Copy as Python", type="tertiary", key="python edits", on_change="rerun", width="content")
    with opened, one_sentence():
        if opened.open:
            edits = edits_of(switches)
            show_scripts(
                model,
                own_file=model.report is not None,
                with_hookviz=lambda model, own: edited_hookviz_script(model, edits, own_file=own),
                with_torch=lambda model, own: edited_torch_script(model, edits, own_file=own),
            )


def _show_result(model: Model, batch: Tensor, outcome: EditOutcome) -> str:
    """Show both results; gives what has changed in a few words."""
    if outcome.scores is not None:
        return _show_classes(model, *outcome.scores)
    try:
        results = [model.purpose.read(one, model, k=5, size=None) for one in (outcome.before, outcome.after)]
    except ModelError as error:
        show(f'<p class="hv-quiet">{escaped(error)}</p>')
        return ""
    _show_pictures(model, batch, results)
    return "" if isinstance(results[1], tuple) else in_words(results[1])


def _show_classes(model: Model, before: Tensor, after: Tensor) -> str:
    if not bool(torch.isfinite(after).all()):
        show('<p class="hv-quiet">With the edits the scores are not finite, so the classes have no order.</p>')
        return "the scores are not finite any more"
    count = before.shape[1]
    names = model.categories if len(model.categories) == count else tuple(numbered_class_names(count))
    show(versus.key(_WAS, _NOW) + versus.class_rows(before, after, names))
    if torch.equal(before, after):
        show('<p class="hv-quiet" style="margin-top:.5rem">The scores are the same to the last bit.</p>')
        return "the prediction stays the same to the last bit"
    return farthest_class(before, after, names)


def farthest_class(before: Tensor, after: Tensor, names: Sequence[str]) -> str:
    """The class whose probability changed most: ``military uniform 18.1 → 12.2 %``; or that none did by much."""
    was, now = (logits.float().softmax(1)[0] for logits in (before, after))
    index = int((now - was).abs().argmax())
    if float((now - was).abs().max()) < _NOTICED:
        return "no probability changes by 0.05 % or more"
    return f"{names[index]} {100 * float(was[index]):.1f} → {100 * float(now[index]):.1f} %"


def _show_pictures(model: Model, batch: Tensor, results: Sequence[Any]) -> None:
    for column, title, result in zip(st.columns(2), (_WAS, _NOW), results, strict=True):
        with column:
            show(f'<div class="hv-quiet">{title.capitalize()}</div>')
            show_drawn(model, result, batch)
            st.caption(sentence(in_words(result)))


def _show_moved(outcome: EditOutcome) -> None:
    moved = outcome.moved[:_MOVED_SHOWN]
    if not moved:
        show('<p class="hv-quiet">No later layer moved.</p>')
        return
    which = "" if outcome.watched else ", of the outer ones"
    show(
        f'<div style="font-weight:600;font-size:.92rem;margin-top:.4rem">Layers that moved most{which} '
        '<span class="hv-quiet" style="font-weight:400">change in length, of what it was</span></div>'
    )
    show_bar_rows(
        _MOVED,
        moved_rows(moved),
        label="Layers that moved most",
        does="Show",
        on_choice=lambda layer: state.show_layer_too(layer, MOST_LAYERS),
        finds="card",
    )


def moved_rows(moved: Sequence[LayerMove]) -> list[BarRow]:
    """A row for each move, the longest bar the farthest."""
    finite = [one.move.relative for one in moved if one.move.relative is not None and math.isfinite(one.move.relative)]
    largest = max(finite, default=0.0) or 1.0
    return [
        BarRow(
            id=one.name,
            name=_name(one),
            share=1.0 if one.move.relative is None else min(one.move.relative / largest, 1.0),
            texts=[_far(one)],
        )
        for one in moved
    ]


def _name(one: LayerMove) -> str:
    call = f"call {one.call + 1}" if one.call else ""
    return " · ".join(filter(None, [one.name, call, one.path]))


def _far(one: LayerMove) -> str:
    move = one.move
    if move.new_nonfinite:
        return f"{move.new_nonfinite:,} new NaN, Inf"
    if move.relative is None:
        return "other shape" if move.shape_before and move.shape_after else "other calls"
    if math.isinf(move.relative):
        return "was all 0"
    return f"{100 * move.relative:.3g} %"
