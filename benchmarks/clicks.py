"""From a click to the new picture in the browser, against the same click in a bare Streamlit fragment.

Run with ``python -m benchmarks.clicks [model layer]``; it needs Chromium. Both pages are served by this machine and
take turns; the clock is the browser's: from the click's own event to the first frame with the new picture decoded. What
is compared is a click on a tile, and a change of sort, scale, colormap and page, with all values in memory already.
"""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING
from urllib.parse import quote

from playwright.sync_api import Browser, sync_playwright

from benchmarks.timing import Ratio

if TYPE_CHECKING:
    from playwright.sync_api import Page

PAIRS = 20
WARM_UP = 3
MODEL, LAYER = "resnet18", "layer2.0.conv1"
MOSAIC, PANEL = ".st-key-mosaic-0 [data-columns]", ".st-key-channel-0"

# Resolves with the milliseconds from the next press to the first frame with another picture, decoded.
_WATCH = """picture => {
  const src = () => document.querySelector(picture)?.currentSrc
  const before = src()
  window.measured = new Promise(done => addEventListener("pointerup", event => {
    const look = () => {
      const image = document.querySelector(picture)
      const shown = image && src() !== before && image.complete && image.naturalWidth
      if (shown) image.decode().then(() => requestAnimationFrame(() => done(performance.now() - event.timeStamp)))
      else requestAnimationFrame(look)
    }
    look()
  }, { capture: true, once: true }))
}"""


def milliseconds(page: Page, picture: str, press: Callable[[], object]) -> float:
    """From a press to another picture at this selector."""
    page.evaluate(_WATCH, picture)
    press()
    taken: float = page.evaluate("window.measured")
    page.wait_for_timeout(250)
    return taken


def compared(label: str, subject: Callable[[], float], baseline: Callable[[], float]) -> None:
    """Print one line for alternating presses."""
    for _ in range(WARM_UP):
        subject(), baseline()
    pairs = [(subject(), baseline()) for _ in range(PAIRS)]
    ours, floors = (statistics.median(times) / 1000 for times in zip(*pairs, strict=True))
    print(Ratio(ours, floors, ours / floors).line(label), flush=True)


@contextmanager
def served(script: str, *words: str) -> Iterator[str]:
    """A page on a free port; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--server.headless", "true", "--server.port", str(port)]
    process = subprocess.Popen(  # noqa: S603 - our own two scripts
        [sys.executable, "-m", "streamlit", "run", script, *options, "--", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"http://localhost:{port}/_stcore/health")
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(url: str) -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(url, timeout=5).close()  # noqa: S310 - our own server
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise TimeoutError(url)


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium from the path, without a window."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield chromium
        chromium.close()


def opened(chromium: Browser, address: str, ready: str) -> Page:
    """A page of its own, once this is on it."""
    page = chromium.new_context(viewport={"width": 1440, "height": 1600}).new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.wait_for_selector(ready)
    page.wait_for_timeout(4000)
    return page


def main(model: str = MODEL, layer: str = LAYER) -> None:
    """Print one line for each kind of click."""
    address = f"/?model={model}&weights=untrained&layer={quote(layer)}"
    with served("app.py") as ours, browser() as chromium:
        page = opened(chromium, ours + address, f"{MOSAIC} img")
        click_tile(page, 0)
        page.wait_for_selector(f"{PANEL} img")
        with bare(chromium, size(page, PANEL)) as floor:
            places = cycle(range(1, 8))
            compared(
                "click on a tile",
                lambda: milliseconds(page, f"{PANEL} img", lambda: click_tile(page, next(places))),
                floor,
            )
        page.keyboard.press("Escape")
        with bare(chromium, size(page, MOSAIC)) as floor:
            for label, press in changes(page).items():
                compared(label, lambda press=press: milliseconds(page, f"{MOSAIC} img", press), floor)  # type: ignore[misc]


def changes(page: Page) -> dict[str, Callable[[], None]]:
    """What is done to the page: each goes to and fro."""
    scales, pages = cycle(("Shared", "Channel")), cycle(("Page 2", "Page 1"))
    orders, colours = cycle(("Mean, largest first", "Channel number")), cycle(("magma", "viridis"))

    def press(selector: str) -> None:
        page.locator(selector).click()

    return {
        "another scale": lambda: press(f".st-key-scale [role=radio]:has-text('{next(scales)}')"),
        "another sort": lambda: choose(page, "sort", next(orders)),
        "another colormap": lambda: choose(page, "cmap", next(colours)),
        "another page": lambda: press(f".st-key-page-0 button[aria-label='{next(pages)}']"),
    }


def choose(page: Page, key: str, option: str) -> None:
    """Take an option of a select box, whose list the keys opened."""
    page.locator(f".st-key-{key} input").press("ArrowDown")
    page.get_by_role("option", name=option, exact=True).click()


def click_tile(page: Page, place: int) -> None:
    """Click the middle of a tile in the first row."""
    box = page.locator(MOSAIC).bounding_box()
    if box is None:
        raise RuntimeError("the mosaic is not to be seen")
    side = box["width"] / 8
    page.mouse.click(box["x"] + (place + 0.5) * side, box["y"] + side / 2)


def size(page: Page, picture: str) -> tuple[int, int]:
    """Width and height of a picture's own pixels."""
    width, height = page.locator(f"{picture} img").first.evaluate("one => [one.naturalWidth, one.naturalHeight]")
    return width, height


@contextmanager
def bare(chromium: Browser, pixels: tuple[int, int]) -> Iterator[Callable[[], float]]:
    """The same with nothing around it: gives what changes the picture there, and times it."""
    with served("benchmarks/bare_page.py", *map(str, pixels)) as address:
        page = opened(chromium, address, "img")
        yield lambda: milliseconds(page, "img", lambda: page.get_by_role("button", name="change").click())


if __name__ == "__main__":
    main(*sys.argv[1:])
