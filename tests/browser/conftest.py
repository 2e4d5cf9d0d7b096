from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.server import Server, started
from tests.browser.visitor import Visitor

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

WINDOW: ViewportSize = {"width": 1440, "height": 1000}

NewVisitor = Callable[..., Visitor]
NewServer = Callable[..., Server]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.browser)
            if item.get_closest_marker("slow") is None:
                # A browser on a busy machine may miss a deadline; what fails three times is wrong. What slow tests
                # measure over minutes has to hold the first time.
                item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on the path; continuous integration has to have one")
        pytest.skip("no Chromium on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        expect.set_options(timeout=30_000)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Asks for ``chromium`` so that nothing is started where there is none."""
    with started(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture
def new_server(chromium: Browser, tmp_path: Path) -> Iterator[NewServer]:
    """Starts servers with words of their own behind ``--``."""
    with ExitStack() as servers:
        yield lambda *words: servers.enter_context(started(tmp_path, *words))


@pytest.fixture(scope="session")
def tab(chromium: Browser) -> Page:
    """A tab for one visitor after the other: what draws the page stays compiled, which halves the time of a view."""
    return chromium.new_context(viewport=WINDOW).new_page()


@pytest.fixture
def new_visitor(chromium: Browser, server: Server, tab: Page) -> Iterator[NewVisitor]:
    """Makes visitors: the first in the tab, others in browsers of their own. None may meet an error in the page."""
    visitors: list[Visitor] = []

    def make(other: Server | None = None, *, fresh: bool = False) -> Visitor:
        page = chromium.new_context(viewport=WINDOW).new_page() if fresh or visitors else tab
        visitors.append(Visitor(page, (other or server).url))
        return visitors[-1]

    tab.set_viewport_size(WINDOW)
    yield make
    for one in visitors:
        if one.page is tab:
            one.leave()
        else:
            one.context.close()
    assert [error for one in visitors for error in one.console_errors] == []


@pytest.fixture
def visitor(new_visitor: NewVisitor) -> Visitor:
    """Somebody at the page, the first one."""
    return new_visitor()


@pytest.fixture
def new_log(server: Server) -> Callable[[], str]:
    """What the server logged since the test began."""
    before = len(server.log())
    return lambda: server.log()[before:]
