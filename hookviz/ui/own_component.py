"""Components of our own: plain markup, style and script, kept beside the module that shows them."""

from __future__ import annotations

from importlib.resources import files

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

_HERE = files("hookviz.ui")


def own_component(name: str, *, isolate_styles: bool = True) -> ComponentRenderer:
    """Declare the component whose files are ``name.html``, ``name.css`` and ``name.js``.

    ``isolate_styles`` is Streamlit's: False where the page's own style is to reach it.
    """
    return st.components.v2.component(
        f"hookviz_{name}",
        html=_text(f"{name}.html"),
        css=_text(f"{name}.css"),
        js=_text(f"{name}.js"),
        isolate_styles=isolate_styles,
    )


def own_script(name: str) -> ComponentRenderer:
    """Declare a component that shows nothing, but has a script, ``name.js``."""
    return st.components.v2.component(f"hookviz_{name}", html="<span></span>", js=_text(f"{name}.js"))


def _text(file: str) -> str:
    return _HERE.joinpath(file).read_text("utf-8")
