"""The page Check: from files to findings, to the layer that one speaks of, and back."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

from PIL.PngImagePlugin import PngInfo
from playwright.sync_api import expect

from hookviz.models import load_model
from hookviz.samples import load_sample, sample_bytes
from hookviz.sanity import check
from tests.browser.conftest import NewServer, NewVisitor
from tests.browser.pictures import encoded
from tests.browser.server import Server
from tests.browser.visitor import Visitor


def open_check(visitor: Visitor, server: Server, view: str = "") -> Visitor:
    visitor.page.goto(f"{server.url}/check{view}")
    visitor.widget("check-controls").wait_for()
    return visitor.idle()


def press(visitor: Visitor, title: str) -> None:
    visitor.widget("check-controls").get_by_role("button", name=title, exact=True).click()


def digit_of_this_moment() -> bytes:
    """The same pixels in another file each time: what was checked before is not checked again."""
    moment = PngInfo()
    moment.add_text("moment", str(time.monotonic_ns()))
    return encoded(load_sample("digit_3"), "PNG", pnginfo=moment)


def check_unless_done(visitor: Visitor) -> None:
    button = visitor.widget("check-controls").get_by_role("button", name=re.compile(r"^Check(ed)?$"))
    if button.is_enabled():
        button.click()


def download(visitor: Visitor, title: str, folder: Path) -> Path:
    with visitor.page.expect_download() as waiting:
        visitor.widget("report").get_by_role("button", name=title, exact=True).click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def test_from_files_to_a_layer_in_explore_and_back(visitor: Visitor, server: Server, tmp_path: Path) -> None:
    """The findings are those that the library gives for the same picture."""
    server.asked_for.clear()
    open_check(visitor, server, "?model=simple_cnn&weights=untrained&sample=digit_8")
    visitor.press("check-images", "Your files")
    visitor.upload("good.png", digit_of_this_moment(), to="check-files")
    visitor.upload("broken.png", b"no picture at all", to="check-files")
    press(visitor, "Check")
    report = visitor.widget("report")
    expect(report.locator(".hv-verdict .words")).to_be_visible()
    visitor.idle()
    said = check(load_model("simple_cnn", None), load_sample("digit_3"))
    assert report.locator(".hv-verdict .words").inner_text() == said.verdict
    whats = [one.what.replace("`", "") for one in said.findings]
    assert [one.inner_text() for one in report.locator(".hv-finding .what").all()] == whats
    expect(visitor.widget("unreadable")).to_contain_text("1 image could not be used")
    expect(visitor.widget("unreadable")).to_contain_text("broken.png")

    expect(visitor.widget("check-side-by-side").locator("figure img")).to_have_count(2)

    read = json.loads(download(visitor, "JSON", tmp_path).read_text("utf-8"))
    assert [one["what"] for one in read["findings"]] == [one.what for one in said.findings]

    page = download(visitor, "Report", tmp_path)
    assert page.name == "check-simple_cnn.html"
    own = visitor.context.new_page()
    own.goto(page.as_uri())
    for what in whats:
        expect(own.get_by_text(what).first).to_be_visible()
    own.close()

    (layer,) = [one.layers[0] for one in said.findings if one.layers]
    report.get_by_role("link", name="Open in Explore", exact=True).click()
    visitor.page.wait_for_selector(".st-key-predictions")
    visitor.idle()
    visitor.assert_cards(layer)
    assert visitor.address == {
        "model": ["simple_cnn"],
        "weights": ["untrained"],
        "sample": ["digit_8"],
        "layer": [layer],
    }
    visitor.page.get_by_role("link", name="Check", exact=True).click()
    expect(report.locator(".hv-verdict .words")).to_have_text(said.verdict)
    expect(visitor.widget("check-controls")).to_contain_text("Still chosen: good.png, broken.png")
    visitor.idle().assert_no_broken_picture()
    assert not [url for url in visitor.requests if not url.startswith(("data:", "blob:", server.url))]
    assert server.asked_for == []
    assert server.facts()["hooks"] == 0


def test_layers_chosen_in_explore_before_give_way(visitor: Visitor, server: Server) -> None:
    visitor.open(model="simple_cnn", weights="untrained", sample="digit_3", layer=["conv1", "fc1"])
    visitor.page.get_by_role("link", name="Check", exact=True).click()
    visitor.widget("check-controls").wait_for()
    check_unless_done(visitor.idle())
    visitor.widget("report").get_by_role("link", name="Open in Explore", exact=True).click()
    visitor.page.wait_for_selector(".st-key-predictions")
    visitor.idle()
    (layer,) = visitor.address["layer"]
    visitor.assert_cards(layer)
    assert layer not in {"conv1", "fc1"}


def test_the_address_shows_a_report_that_is_there_in_a_fresh_browser(server: Server, new_visitor: NewVisitor) -> None:
    here = open_check(new_visitor(), server, "?model=simple_cnn&sample=digit_8&against=nothing")
    check_unless_done(here)
    verdict = here.widget("report").locator(".hv-verdict .words")
    expect(verdict).to_be_visible()
    there = open_check(new_visitor(), server, here.page.url.partition("/check")[2])
    assert there.page.url == here.page.url
    expect(there.widget("report").locator(".hv-verdict .words")).to_have_text(verdict.inner_text())
    open_check(there, server, "?model=simple_cnn&sample=gratings")
    expect(there.widget("report")).to_have_count(0)


def test_a_folder_is_checked_cancelled_and_taken_up_again(
    new_server: NewServer, new_visitor: NewVisitor, tmp_path: Path
) -> None:
    """C23: the page can be used meanwhile."""
    folder = tmp_path / "digits"
    for number in range(120):
        (folder / f"{3 + 5 * (number % 2)}").mkdir(parents=True, exist_ok=True)
        name = "digit_8" if number % 2 else "digit_3"
        (folder / f"{3 + 5 * (number % 2)}" / f"{number:03}.png").write_bytes(sample_bytes(name))
    server = new_server("--folder", str(folder))
    visitor = open_check(new_visitor(server), server, "?model=simple_cnn&images=folder")
    box = visitor.widget("check-controls")
    expect(box.get_by_role("combobox", name="Folder", exact=True)).to_have_value("digits · 120 pictures")
    most = box.get_by_label("How many", exact=True)
    most.fill("120")
    most.press("Enter")
    visitor.idle()
    press(visitor, "Check")
    expect(visitor.widget("check-status")).to_contain_text(re.compile(r"[1-9]\d* of 120 images · about \d+ s left"))
    press(visitor, "Cancel")
    expect(box.get_by_role("button", name="Go on", exact=True)).to_be_visible()
    about = visitor.widget("report").locator(".hv-verdict .about")
    expect(about).to_contain_text(re.compile(r"^stopped after [1-9]\d* of 120 images · "))
    press(visitor, "Go on")
    expect(box.get_by_role("button", name="Checked", exact=True)).to_be_visible()
    expect(about).not_to_contain_text("stopped")
    expect(visitor.widget("report").locator(".hv-verdict .words")).to_contain_text("simple_cnn on 120 images: ")
    assert visitor.address["folder"] == ["digits"]
    assert str(folder) not in visitor.page.content()
