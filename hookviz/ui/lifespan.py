"""What happens once, as the server starts. ``app.py`` runs this file by its path: nothing here may import hookviz."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from threading import Thread

import streamlit as st
from streamlit.cli_util import open_browser
from streamlit.web.server.server_util import get_url


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Import what the page stands on while the first browser loads, which takes it about as long."""
    Thread(target=_import_page, daemon=True).start()
    asyncio.get_running_loop().call_soon(_show)
    yield


def _import_page() -> None:
    """Import without looking for reference cycles, over and over, among half a million objects that stay."""
    gc.disable()
    try:
        import_module("hookviz.ui.main")
        import_module("timm")  # the first network on the page is one of its
    finally:
        gc.enable()


def _show() -> None:
    """Open the page in a browser, as Streamlit does for scripts that bring no server of their own."""
    if not st.get_option("server.headless"):
        open_browser(get_url(st.get_option("browser.serverAddress")))
