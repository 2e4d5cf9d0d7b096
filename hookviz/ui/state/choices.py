"""What is chosen for the whole page, and what there is to choose from."""

from __future__ import annotations

from functools import cache
from typing import get_args

import streamlit as st

from hookviz.layer_picture import Display
from hookviz.models import list_models, own
from hookviz.samples import list_samples
from hookviz.types import ChannelOrder, Scale
from hookviz.ui.start_options import start_options
from hookviz.ui.state.keys import CMAP, MODEL, ROBUST, SAMPLE, SCALE, SORT
from hookviz.views import COLORMAPS


@cache
def every_option() -> dict[str, list[str]]:
    """What can be chosen, by key; the first is the default."""
    return {
        MODEL: _model_names(),
        SAMPLE: [sample.name for sample in list_samples()],
        SORT: list(get_args(ChannelOrder)),
        SCALE: list(get_args(Scale)),
        CMAP: list(COLORMAPS),
    }


def _model_names() -> list[str]:
    """All models; what the page was started with comes first."""
    own.offer(start_options().models)
    return list(dict.fromkeys([*own.asked_for(), *list_models()]))


def options(key: str) -> list[str]:
    """What can be chosen for ``model``, ``sample``, ``sort``, ``scale`` or ``cmap``; the first is the default."""
    return every_option()[key]


def chosen(key: str) -> str:
    """The value chosen for ``model``, ``weights``, ``sample``, ``sort``, ``scale`` or ``cmap``."""
    value: str = st.session_state[key] or options(key)[0]
    return value


def chosen_order() -> ChannelOrder:
    """What channels are sorted by."""
    order: ChannelOrder = st.session_state[SORT]
    return order


def display() -> Display:
    """How values become colours, as the views take it."""
    return Display(
        scale=st.session_state[SCALE], robust=bool(st.session_state.get(ROBUST)), cmap=st.session_state[CMAP]
    )
