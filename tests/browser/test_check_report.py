"""The report of a check in a browser that has no network: on the screen, on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import nn

from hookviz import check, load_model
from hookviz.bundled import bundled_file
from hookviz.sanity_report import report_card

pytestmark = pytest.mark.browser

A4_WIDE = 695
"""Pixels between the margins of the sheet: 184 mm at 96 to the inch."""


@dataclass
class Opened:
    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A deep network on a photograph, and one with errors on digits with names that try to be markup."""
    folder = tmp_path_factory.mktemp("reports")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    images = folder / "images"
    images.mkdir()
    for number in range(9):
        name = f"<script>document.title='run'<&script> & a rather long name of a file {number}.png"
        (images / name).write_bytes(bundled_file("digit_3.png").read_bytes())
    (images / "<img src=x onerror=document.title='run'>.png").write_bytes(b"")
    faulty = load_model("simple_cnn", device="cpu")
    layer = faulty.module.get_submodule("fc1")
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight[2, 5] = float("nan")
    deep = check(load_model("efficientnet_lite0", device="cpu"), str(bundled_file("grace_hopper.jpg")))
    made = {
        "deep": deep.to_html(),
        "faulty": check(faulty, images).to_html(),
        "labelled": check(load_model("simple_cnn", device="cpu"), images, labels=[8] * 10).to_html(),
        "notebook": f'<!DOCTYPE html><p id="outside">outside</p><table><tr><td>1</td></table>{report_card(deep)}',
    }
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    torch.set_num_threads(threads)
    return {name: folder / f"{name}.html" for name in made}


@contextmanager
def opened(
    chromium: Browser, file: Path, width: int = 1440, scheme: Literal["light", "dark"] = "light"
) -> Iterator[Opened]:
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_offline(True)
    one = Opened(context.new_page())
    one.page.on("request", lambda request: one.requests.append(request.url))
    one.page.on("console", lambda message: one.errors.append(message.text))
    one.page.on("pageerror", lambda error: one.errors.append(str(error)))
    one.page.goto(file.as_uri())
    yield one
    context.close()


def sticking_out(page: Page) -> Any:
    """What reaches beyond the window, other than inside a box that scrolls by itself."""
    return page.evaluate(
        """() => [...document.querySelectorAll("body *")].filter(one => !one.closest("svg, .scroll > *")
             && one.getBoundingClientRect().right > innerWidth + 0.5).map(one => one.outerHTML.slice(0, 80))"""
    )


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["deep", "faulty", "labelled"])
def test_a_report_asks_for_nothing_and_fits_the_window(
    chromium: Browser, reports: dict[str, Path], name: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, reports[name], width, scheme) as one:
        assert one.requests == [reports[name].as_uri()]
        assert one.errors == []
        assert one.page.title().endswith(": hookviz check")
        assert one.page.evaluate("document.documentElement.scrollWidth") == width
        assert sticking_out(one.page) == []
        sizes = one.page.evaluate("[...document.images].map(one => one.naturalWidth)")
        assert all(size > 0 for size in sizes)
        assert (len(sizes) > 0) == (name != "faulty")  # without an answer no input is tried


@pytest.mark.parametrize(
    ("scheme", "paper", "ink"), [("light", 255, "rgb(30, 41, 59)"), ("dark", 20, "rgb(241, 245, 249)")]
)
def test_figures_have_the_colours_of_the_page(
    chromium: Browser, reports: dict[str, Path], scheme: Literal["light", "dark"], paper: int, ink: str
) -> None:
    with opened(chromium, reports["deep"], scheme=scheme) as one:
        page, plate = one.page.evaluate(
            """() => [document.body, document.querySelector("svg path")].map(
                 (one, at) => getComputedStyle(one)[at ? "fill" : "backgroundColor"])"""
        )
        assert page == plate
        assert max(int(part) for part in page.strip("rgb()").split(", ")) in range(paper - 5, paper + 5)
        assert one.page.evaluate("getComputedStyle(document.body).color") == ink
        inks = one.page.evaluate("[...document.querySelectorAll('svg g')].map(one => getComputedStyle(one).fill)")
        assert ink in inks


def test_a_finding_leads_to_the_row_of_its_layer(chromium: Browser, reports: dict[str, Path]) -> None:
    with opened(chromium, reports["faulty"]) as one:
        one.page.locator("#findings a", has_text="fc1").first.click()
        row = one.page.locator("tr:target")
        expect(row.locator("td").nth(1)).to_have_text("● fc1")
        expect(row).to_be_in_viewport()


def test_numbers_stand_on_the_right_of_their_column(chromium: Browser, reports: dict[str, Path]) -> None:
    with opened(chromium, reports["deep"]) as one:
        ends = one.page.evaluate(
            """() => [...document.querySelectorAll(".layers tbody tr")].map(row => {
                 const words = document.createRange(); words.selectNodeContents(row.children[5]);
                 return Math.round(words.getBoundingClientRect().right); })"""
        )
        assert len(ends) > 100
        assert max(ends) - min(ends) <= 1
        assert "tabular-nums" in one.page.evaluate(
            "getComputedStyle(document.querySelector('.layers')).fontVariantNumeric"
        )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["deep", "faulty", "labelled"])
def test_on_paper_nothing_is_cut_off(
    chromium: Browser, reports: dict[str, Path], name: str, scheme: Literal["light", "dark"]
) -> None:
    with opened(chromium, reports[name], A4_WIDE, scheme) as one:
        one.page.emulate_media(media="print")
        rights = one.page.evaluate(
            "[...document.querySelectorAll('td, th, img, svg, p, dd')].map(one => one.getBoundingClientRect().right)"
        )
        assert max(rights) <= A4_WIDE + 0.5
        heights = one.page.evaluate("[...document.querySelectorAll('svg, .trial')].map(one => one.clientHeight)")
        assert max(heights) < 1016  # 269 mm between the margins
        assert one.page.evaluate("getComputedStyle(document.body).color") == "rgb(30, 41, 59)"
        assert one.page.locator("nav").is_hidden()
        printed = one.page.pdf(prefer_css_page_size=True)
        assert printed.startswith(b"%PDF")
        assert b"/MediaBox [0 0 594.95" in printed
        assert one.requests == [reports[name].as_uri()]


def test_a_card_changes_nothing_of_the_notebook_around_it(chromium: Browser, reports: dict[str, Path]) -> None:
    looks = (
        "[...document.querySelectorAll('#outside, body > table td')].map(one => JSON.stringify(getComputedStyle(one)))"
    )
    with opened(chromium, reports["notebook"]) as one:
        with_card = one.page.evaluate(looks)
        one.page.evaluate("document.querySelector('.hookviz-report').remove()")
        assert one.page.evaluate(looks) == with_card
        assert len(with_card) == 2
