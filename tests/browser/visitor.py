"""A person at the page: what they do, and what they see."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, WebSocket, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

SLOW = 90_000
"""Milliseconds that the first view may take on a busy machine: torch has to be imported."""

# Still for a while, not just at rest: React answers a click, and fetches the code of a new widget, a moment later.
_STILL = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  const still = app && app.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-stale=true], [data-testid=stSkeleton]');
  const now = performance.now();
  if (!still) { window.stillSince = null; return false; }
  window.stillSince ??= now;
  return now - window.stillSince > 350;
}"""
_BROKEN_PICTURES = """() => [...document.images].filter(one => one.offsetParent !== null && !one.naturalWidth)
  .map(one => one.alt + ' ' + one.src.slice(0, 80))"""
_TITLES_FROM_TOP = """all => all.map(one => [one.getBoundingClientRect().top, one.querySelector('.title').textContent])
  .sort(([top], [other]) => top - other).map(([top, title]) => title)"""


class _Conversation:
    """What browser and server said: runs of the script that were asked for, and whether the last has ended."""

    def __init__(self) -> None:
        self.asked = 0
        self.answered = True

    def listen(self, socket: WebSocket) -> None:
        socket.on("framesent", self._sent)
        socket.on("framereceived", self._received)

    def _sent(self, frame: str | bytes) -> None:
        if isinstance(frame, bytes) and BackMsg.FromString(frame).WhichOneof("type") == "rerun_script":
            self.asked += 1
            self.answered = False

    def _received(self, frame: str | bytes) -> None:
        if not isinstance(frame, bytes):
            return
        message = ForwardMsg.FromString(frame)
        if message.WhichOneof("type") == "script_finished":
            self.answered = message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN


class Visitor:
    """Somebody with a page of the app in a tab of their browser."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.requests: list[str] = []
        self.console_errors: list[str] = []
        self._url = url
        self._folder = TemporaryDirectory()
        self._conversation = _Conversation()
        self._heard: dict[str, Callable[..., None]] = {
            "websocket": self._conversation.listen,
            "request": lambda request: self.requests.append(request.url),
            "pageerror": lambda error: self.console_errors.append(str(error)),
        }
        for event, listener in self._heard.items():
            page.on(event, listener)  # type: ignore[call-overload]
        self.page.set_default_timeout(SLOW)

    @property
    def context(self) -> BrowserContext:
        return self.page.context

    def leave(self) -> None:
        """Hear no more of the page, and leave its tab as a new one would be."""
        for event, listener in self._heard.items():
            self.page.remove_listener(event, listener)
        if self.page.url.startswith("http"):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.goto("about:blank")
        self.page.mouse.move(0, 0)
        self.context.clear_cookies()

    def open(self, **view: str | list[str]) -> Visitor:
        """Go to the address of a view, such as ``open(model="resnet18", layer=["bn1"])``."""
        return self.go(f"{self._url}/?{urlencode(view, doseq=True, quote_via=quote)}")

    def go(self, address: str) -> Visitor:
        self.page.goto(address)
        self.page.wait_for_selector("[data-testid=stApp]", timeout=SLOW)
        self.page.wait_for_selector(".st-key-predictions, [data-testid=stAlert]", timeout=SLOW)
        return self.idle()

    def idle(self) -> Visitor:
        """Wait until the server has answered all that was asked, and the page shows it."""
        while True:
            asked = self._conversation.asked
            self._wait_until_still()
            if self._conversation.answered and self._conversation.asked == asked:
                return self
            self._wait_for(lambda: self._conversation.answered)

    def _wait_until_still(self) -> None:
        self.page.evaluate("window.stillSince = null")
        self.page.wait_for_function(_STILL, timeout=SLOW, polling=50)

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SLOW / 1000
        while not condition():
            assert time.monotonic() < deadline, "the server did not answer"
            self.page.wait_for_timeout(50)

    @property
    def address(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.page.url).query, keep_blank_values=True)

    def widget(self, key: str) -> Locator:
        return self.page.locator(f".st-key-{key}")

    def card(self, position: int) -> Locator:
        return self.widget(f"card-{position}")

    def select(self, key: str, option: str) -> Visitor:
        """Type into a select box and take the option with exactly this text."""
        box = self.widget(key).get_by_role("combobox")
        box.click()
        box.fill(option)
        self.page.get_by_role("option", name=option, exact=True).first.click()
        return self.idle()

    def add_layer(self, typed: str, option: str) -> Visitor:
        """Type into the layer picker and take the option that begins with this layer's name."""
        box = self.widget("layers").get_by_role("combobox")
        box.click()
        box.fill(typed)
        self.page.get_by_role("option", name=re.compile(rf"^{re.escape(option)} ·")).click()
        self.page.keyboard.press("Escape")
        return self.idle()

    def remove_layer(self, name: str) -> Visitor:
        self.widget("layers").get_by_role("button", name=re.compile(rf"^Remove {re.escape(name)} ·")).click()
        return self.idle()

    def open_tree(self) -> Visitor:
        """Open the tree of all layers below the picker."""
        self.page.get_by_text(re.compile(r"^All \d+ layers")).click()
        self.page.get_by_role("tree").wait_for()
        return self.idle()

    def tree_row(self, name: str) -> Locator:
        """The row of a layer in the tree, by its full name, or of repeated blocks by what it says."""
        return self.page.get_by_role("treeitem").and_(self.page.get_by_title(name, exact=True))

    def tree_rows(self) -> list[str]:
        """The titles of the rows that have been drawn, from top to bottom."""
        titles: list[str] = self.page.get_by_role("treeitem").evaluate_all(_TITLES_FROM_TOP)
        return titles

    def mark(self, name: str) -> Visitor:
        """Choose a layer in the tree, or take it away."""
        self.tree_row(name).locator(".box").click()
        return self

    @property
    def runs_asked_for(self) -> int:
        """How often the script was asked to run."""
        return self._conversation.asked

    def press(self, key: str, text: str) -> Visitor:
        """Press one of the pills or segments of a widget."""
        self.widget(key).get_by_role("radio", name=text, exact=True).click()
        return self.idle()

    def toggle(self, key: str) -> Visitor:
        self.widget(key).locator("label").first.click()
        return self.idle()

    def upload(self, name: str, content: bytes, *, to: str = "upload") -> Visitor:
        """Give a file to the uploader with this key."""
        asked = self._conversation.asked
        with self.upload_arrives():
            self.give_file(name, content, to=to)
        # The browser tells the script a moment after the server has the file.
        self._wait_for(lambda: self._conversation.asked > asked)
        return self.idle()

    def upload_arrives(self) -> AbstractContextManager[object]:
        """Ends when the server has the file that is given inside the block."""
        return self.page.expect_response(lambda one: "upload_file" in one.url and one.request.method == "PUT")

    def give_file(self, name: str, content: bytes, *, to: str = "upload") -> None:
        # From the disk: bytes would reach the browser as text, which takes a minute for a checkpoint. Each in a folder
        # of its own: a browser takes the same path again for the same file.
        path = Path(mkdtemp(dir=self._folder.name), name)
        path.write_bytes(content)
        self.widget(to).locator("input[type=file]").set_input_files(path)

    def mosaic(self, position: int) -> bytes:
        """The very bytes of the picture of channels on a card."""
        return _content(self.card(position).locator(".hv-mosaic img"))

    def channel_numbers(self, position: int) -> list[int]:
        return [int(text) for text in self.card(position).locator(".hv-mosaic .number").all_inner_texts()]

    def input_picture(self) -> bytes:
        """The very bytes of the picture of what the network saw."""
        return _content(self.page.locator(".hv-saw img"))

    def predictions(self) -> list[str]:
        return self.widget("predictions").locator(".hv-bars .name").all_inner_texts()

    def titles(self) -> list[str]:
        """The layers' names on the cards, from top to bottom."""
        return self.page.locator(".hv-title .layer").all_inner_texts()

    def badges(self, position: int) -> list[str]:
        return self.card(position).locator(".hv-badge").all_inner_texts()

    def sentences(self) -> list[str]:
        """Errors, warnings and notes on the page."""
        return [
            text.strip()
            for text in self.page.locator("[data-testid=stAlert] [data-testid=stMarkdownContainer]").all_inner_texts()
        ]

    def download(self, position: int, title: str, folder: Path) -> Path:
        with self.page.expect_download() as waiting:
            self.card(position).get_by_role("button", name=title, exact=True).click()
        path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path

    def assert_no_broken_picture(self) -> None:
        assert self.page.evaluate(_BROKEN_PICTURES) == []

    def assert_cards(self, *names: str) -> None:
        expect(self.page.locator(".hv-title .layer")).to_have_text(list(names))


def _content(picture: Locator) -> bytes:
    source = picture.get_attribute("src") or ""
    head, _, body = source.partition(",")
    assert head == "data:image/png;base64", head
    return base64.b64decode(body)
