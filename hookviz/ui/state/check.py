"""What the page Check remembers: who asks, what was asked for, and what was shown last."""

from __future__ import annotations

from collections.abc import Hashable
from uuid import uuid4

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.ui.state.choices import chosen
from hookviz.ui.state.image import image_source
from hookviz.ui.state.keys import ASKED_LAYERS, MODEL, SAMPLE, WEIGHTS
from hookviz.ui.state.layers import choose_layers
from hookviz.ui.state.notes import changed

FILES = "check-files"

_OPEN = "open"
"""Of an address: the layer that a link from Check opens, even where others are chosen."""


_VISITOR = "visitor of the page Check"
_ASKED = "check asked for"
_KEPT = "files to check"
_SHOWN = "report shown last, and what it is of"


def visitor() -> str:
    """What this session is known by, so that what it stops is its own."""
    if _VISITOR not in st.session_state:
        st.session_state[_VISITOR] = uuid4().hex
    token: str = st.session_state[_VISITOR]
    return token


def ask_for_check(of: Hashable) -> None:
    """Note that a check is wanted, so that what was measured is judged without another click."""
    st.session_state[_ASKED] = of


def check_is_asked_for(of: Hashable) -> bool:
    """Whether this check was asked for last."""
    return bool(st.session_state.get(_ASKED) == of)


def report_shown(of: Hashable, key: Hashable) -> None:
    """Note which report is shown of a check."""
    st.session_state[_SHOWN] = (of, key)


def report_shown_last(of: Hashable) -> Hashable | None:
    """The report of a check that was shown last; None where that was of another one."""
    owner, key = st.session_state.get(_SHOWN, (None, None))
    return key if owner == of else None


def link_to_layer(name: str) -> dict[str, str]:
    """The address under which Explore shows a layer of this network, for this image where it is a sample."""
    view = {MODEL: chosen(MODEL), WEIGHTS: st.session_state[WEIGHTS], _OPEN: name}
    return view | ({SAMPLE: chosen(SAMPLE)} if image_source() == SAMPLE else {})


def take_linked_layer() -> None:
    """Choose the layer of a link that was followed, whatever was chosen before."""
    name = st.query_params.get(_OPEN)
    if name is not None:
        choose_layers([name])
        st.session_state[ASKED_LAYERS] = [name]
        del st.query_params[_OPEN]


def settled_value(key: str, default: float) -> float:
    """The number that a widget was given; the default where it was emptied."""
    value = st.session_state.get(key)
    return default if value is None else value


def set_value(key: str, value: float) -> None:
    """Give a number's widget a value before it is shown and settled."""
    st.session_state[key] = value


def take_files() -> None:
    """Keep the files that were chosen: Streamlit forgets them once another page is shown."""
    changed()
    st.session_state[_KEPT] = list(st.session_state[FILES])


def forget_files() -> None:
    """Choose no files any more."""
    changed()
    st.session_state[_KEPT] = []


def chosen_files() -> list[UploadedFile]:
    """The files that were chosen last."""
    return list(st.session_state.get(_KEPT, []))
