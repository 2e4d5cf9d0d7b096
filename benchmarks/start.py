"""From starting the server to the first grid in the browser, against importing what it stands on.

Run with ``python -m benchmarks.start``; it needs Chromium. The two take turns, each in a process of its own.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from playwright.sync_api import Browser, sync_playwright

from benchmarks.timing import ratio

_IMPORTS = "import torch, torchvision, streamlit"


def import_alone() -> None:
    """A Python that imports torch, torchvision and streamlit, and ends."""
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True)  # noqa: S603 - our own command


def start_to_grid(browser: Browser) -> None:
    """Start the page as the README says, and wait for the first mosaic; then end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        "--server.headless",
        "true",
        "--server.port",
        str(port),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - as above
    try:
        _wait_for(port)
        page = browser.new_page()
        page.goto(f"http://localhost:{port}")
        page.wait_for_selector(".hv-mosaic img", timeout=120_000)
        page.close()
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 90
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://localhost:{port}/_stcore/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    raise RuntimeError("the server did not start")


def main() -> None:
    """Print the ratio."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        measured = ratio(lambda: start_to_grid(browser), import_alone, pairs=5, warmup=1)
        print(measured.line("server start to first grid / imports"))
        browser.close()


if __name__ == "__main__":
    main()
