"""Take the pictures of the page in ``docs/``: light, dark and on a phone.

It starts the app, and looks at it with the Chromium of the system. Run it from the top of the repository:
``python -m scripts.take_screenshots``.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
SECONDS_TO_START = 120
MILLISECONDS_TO_COMPUTE = 120_000
FLAGS = (
    "--no-sandbox",  # it runs as root in a container, and visits one page of our own
    "--disable-gpu",
    # Everything below keeps it from speaking to the internet by itself.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its file, and the window it is taken in, in CSS pixels."""

    file: str
    width: int
    height: int
    theme: Literal["light", "dark"] = "light"
    phone: bool = False
    check: bool = False
    """Of the page Check, once it has a report; otherwise of Explore, once the first layer's channels are there."""


SHOTS = (
    Shot("page.png", 1440, 1000),
    Shot("page-dark.png", 1440, 1000, theme="dark"),
    Shot("page-phone.png", 390, 844, phone=True),
    Shot("check.png", 1440, 1000, check=True),
)


def main() -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("There is no chromium here; install it with your system's packages, on Debian: apt install chromium.")
    with served_page() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for shot in SHOTS:
            take(shot, browser, address)
            print(f"docs/{shot.file}: {shot.width} x {shot.height}, {shot.theme}")
        browser.close()


@contextmanager
def served_page() -> Iterator[str]:
    """The app on a free port for the length of a ``with`` block; gives its address."""
    port = free_port()
    options = ["--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true"]
    server = subprocess.Popen([sys.executable, "-m", "streamlit", "run", "app.py", *options], cwd=ROOT)  # noqa: S603  # our own app
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(f"{address}/_stcore/health")
        yield address
    finally:
        server.terminate()
        server.wait()


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for(address: str) -> None:
    """Wait until something answers there.

    Raises:
        OSError: nothing did in time.
    """
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            urllib.request.urlopen(address, timeout=5).close()  # noqa: S310  # our own server
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def take(shot: Shot, browser: Browser, address: str) -> None:
    """Open the page afresh and store a picture of its first screen."""
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height},
        color_scheme=shot.theme,
        device_scale_factor=2 if shot.phone else 1,
        is_mobile=shot.phone,
        has_touch=shot.phone,
    )
    if shot.check:
        page.goto(f"{address}/check")
        page.get_by_role("button", name="Check", exact=True).click(timeout=MILLISECONDS_TO_COMPUTE)
        page.locator(".st-key-report").wait_for(timeout=MILLISECONDS_TO_COMPUTE)
    else:
        page.goto(address)
        page.locator(".st-key-card-0 img").first.wait_for(timeout=MILLISECONDS_TO_COMPUTE)
    # Nothing is drawn any more: the page says that it is not running, and every picture has its size.
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=MILLISECONDS_TO_COMPUTE)
    page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth > 0)")
    page.screenshot(path=DOCS / shot.file, animations="disabled")
    page.close()


if __name__ == "__main__":
    main()
