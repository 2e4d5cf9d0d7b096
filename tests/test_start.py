"""How the server starts: what it imports before anybody visits, and the browser that it opens."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.browser.server import free_port

ROOT = Path(__file__).parents[1]

_STARTED = """
import asyncio, gc, sys, time
import app

async def begin_and_end():
    async with app.starting["lifespan"](app.app):
        assert "hookviz.ui.main" not in sys.modules, "the server waits for it"

asyncio.run(begin_and_end())
until = time.monotonic() + 100
while "hookviz.ui.freed_memory" not in sys.modules and time.monotonic() < until:
    time.sleep(0.1)
print("hookviz.ui.main" in sys.modules, "timm" in sys.modules, gc.isenabled())

from streamlit.runtime import app_session
print(app_session.ForwardMsgQueue.__name__)
"""


def test_the_server_imports_the_page_while_it_starts() -> None:
    environment = {**os.environ, "STREAMLIT_SERVER_HEADLESS": "true"}
    started = subprocess.run(
        [sys.executable, "-c", _STARTED],
        check=False,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert started.stdout.split() == ["True", "True", "True", "UnsentElements"], started.stderr


def test_the_page_opens_in_the_reader_s_browser(tmp_path: Path) -> None:
    opened, browser = tmp_path / "opened", tmp_path / "xdg-open"
    browser.write_text(f"#!/bin/sh\necho \"$1\" > '{opened}'\n")
    browser.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    port = free_port()
    options = ["--server.headless", "false", "--server.port", str(port)]
    server = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while not (opened.exists() and opened.read_text()) and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        server.terminate()
        server.wait(20)
    assert opened.read_text() == f"http://localhost:{port}\n"
