"""The script for what a card shows."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from hookviz.errors import HookvizError
from hookviz.hooks import Call
from hookviz.models import Model
from hookviz.types import Layout
from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.sentences import one_sentence, sentence
from hookviz.view_code import View, hookviz_script, torch_script

Script = Callable[[Model, bool], str]
"""A text for a model; the second argument says whether its weights are a visitor's own file."""


@st.fragment
def show_code(channels: CardChannels, call: Call, calls: int, page: int) -> None:
    """A button that opens the scripts; they are written when it is pressed."""
    opened = st.popover(
        "Copy as Python", type="tertiary", key=f"python-{channels.position}", on_change="rerun", width="content"
    )
    with opened, one_sentence():
        if not opened.open:
            return
        view = _view(channels, call, calls, page)
        show_scripts(
            channels.tensor.network.model(),
            own_file=channels.tensor.network.chosen.own_weights is not None,
            with_hookviz=lambda model, own: hookviz_script(model, view, own_file=own),
            with_torch=lambda model, own: torch_script(model, view, own_file=own),
        )


def show_scripts(model: Model, *, own_file: bool, with_hookviz: Script, with_torch: Script) -> None:
    """Two texts, each ready to be copied; where one cannot be, the reason."""
    st.caption("Runs where the image lies as image.jpg.")
    for title, write in (("With hookviz", with_hookviz), ("With torch alone", with_torch)):
        with st.expander(title, expanded=write is with_hookviz):
            try:
                st.code(write(model, own_file), "python", height=320)
            except HookvizError as error:
                st.caption(sentence(str(error)))


def _view(channels: CardChannels, call: Call, calls: int, page: int) -> View:
    tensor, shown = channels.tensor, channels.shown
    return View(
        layer=tensor.info.name,
        is_operation=tensor.info.is_operation,
        call=call.index,
        calls=calls,
        output=call.output,
        path=tensor.path,
        layout=Layout(shown.maps.layout, tensor.layout.grid),
        selection=tensor.selection,
        shows=shown.maps.shows,
        order=state.chosen_order(),
        display=shown.display,
        page=page,
        channel=state.opened_channel(channels.position),
    )
