"""Components of our own: plain markup, style and script, kept beside the module that shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

_HERE = files("hookviz.ui")


def own_component(name: str, *, isolate_styles: bool = True) -> Callable[..., Any]:
    """Declare the component whose files are ``name.html``, ``name.css`` and ``name.js``.

    ``isolate_styles`` is Streamlit's: False where the page's own style is to reach it. The script gets ``data`` as the
    one item of a list.
    """
    return partial(
        _mount,
        st.components.v2.component(
            f"hookviz_{name}",
            html=_text(f"{name}.html"),
            css=_text(f"{name}.css"),
            js=_text(f"{name}.js"),
            isolate_styles=isolate_styles,
        ),
    )


def own_script(name: str) -> Callable[..., Any]:
    """Declare a component that shows nothing, but has a script, ``name.js``."""
    return partial(_mount, st.components.v2.component(f"hookviz_{name}", html="<span></span>", js=_text(f"{name}.js")))


def _mount(component: ComponentRenderer, *, data: Mapping[str, Any], **options: Any) -> Any:
    # Streamlit looks for data frames in what is a mapping, and imports pandas for that.
    return component(data=[data], **options)


def _text(file: str) -> str:
    return _HERE.joinpath(file).read_text("utf-8")
