"""How the page starts, while torch is imported. ``app.py`` runs this by its path, so nothing may import hookviz."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from pathlib import Path
from runpy import run_path
from threading import Thread

import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.runtime import app_session
from streamlit.web.server.server_util import get_url

_PAGE = "hookviz.ui.main"

# Before the first visitor comes. By its path, as this file itself: importing it would import torch first.
_unsent_elements = run_path(str(Path(__file__).with_name("unsent_elements.py")))
app_session.ForwardMsgQueue = _unsent_elements["UnsentElements"]  # type: ignore[attr-defined]


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Import what the page stands on while the first browser loads, which takes it about as long."""
    Thread(target=_prepare, daemon=True).start()
    asyncio.get_running_loop().call_soon(_show)
    yield


def _prepare() -> None:
    _import_page()
    import_module("hookviz.ui.freed_memory").hold_freed_memory()


def _import_page() -> None:
    """Import without looking for reference cycles, over and over, among half a million objects that stay."""
    gc.disable()
    try:
        import_module(_PAGE)
        import_module("timm")  # the first network on the page is one of its
    finally:
        gc.enable()


def _show() -> None:
    """Open the page in a browser, as Streamlit does for scripts that bring no server of their own."""
    if not st.get_option("server.headless"):
        open_browser(get_url(st.get_option("browser.serverAddress")))


@contextmanager
def while_importing() -> Iterator[None]:
    """Say why there is nothing yet, and let the browser fetch meanwhile what it draws the page with."""
    place = st.empty()
    if _PAGE not in sys.modules:
        with place.container():
            st.caption("Importing PyTorch, once for all visitors")
            with st.container(height=1, border=False):
                _show_each_kind()
    try:
        yield
    finally:
        place.empty()


def _show_each_kind() -> None:
    """One of each kind of element that the page begins with."""
    st.caption("&nbsp;")  # the one pixel to be seen is of this; others show a grey block until their code is there
    st.html("<span></span>")
    st.selectbox("selectbox", ["one"])
    st.file_uploader("file")
    st.segmented_control("control", ["one"])
    st.toggle("toggle")
    st.expander("expander")
    st.button("button")
    st.multiselect("multiselect", ["one"])
    st.pagination(2)
    st.popover("popover")
    st.download_button("download", "")
    st.components.v2.component("hookviz_each_kind", html="<span></span>")(data=None)
