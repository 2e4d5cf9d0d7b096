"""Pointing at channels, opening and walking them: by mouse, by keys, by touch, in real Chromium."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from playwright.sync_api import Browser, Locator, expect

from hookviz.samples import load_sample
from hookviz.views import mosaic
from tests.browser import expected
from tests.browser.conftest import NewVisitor
from tests.browser.server import Server, started
from tests.browser.visitor import Visitor
from tests.models.unusual_networks import BY_HAND
from tests.nets import clones_at_hook_time

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")

VIEW = {"model": "resnet18", "weights": "untrained"}
DEEP = "layer4.1.conv2"
UNUSUAL = "tests.models.unusual_networks:unusual"


@cache
def values(layer: str, image: str = "hopper") -> npt.NDArray[np.float32]:
    """(C, H, W) as torch's own hooks see it, on a deepcopy."""
    model = expected.network("resnet18")
    picture = expected.hopper() if image == "hopper" else load_sample(image)
    with torch.no_grad():
        _, seen = clones_at_hook_time(model.module, model.prepare(picture))
    array: npt.NDArray[np.float32] = seen[layer][0][0].numpy()
    return array


def by_mean(layer: str) -> list[int]:
    means = values(layer).astype(np.float64).mean((1, 2))
    return sorted(range(len(means)), key=lambda channel: -means[channel])


def root(visitor: Visitor, card: int = 0) -> Locator:
    return visitor.widget(f"mosaic-{card}").locator("[data-columns]")


def panel(visitor: Visitor, card: int = 0) -> Locator:
    return visitor.widget(f"channel-{card}")


def readout(visitor: Visitor, card: int = 0) -> Locator:
    return visitor.widget(f"readout-{card}").locator(".hv-readout")


def grid(visitor: Visitor, card: int = 0) -> tuple[int, int]:
    place = root(visitor, card)
    return int(place.get_attribute("data-columns") or 0), int(place.get_attribute("data-rows") or 0)


def point(visitor: Visitor, place: int, card: int = 0, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
    """Where a tile lies in the window, worked out from the root's box and its columns and rows alone."""
    root(visitor, card).evaluate(
        "(one, [place, down]) => { const box = one.getBoundingClientRect(), y = box.top + box.height * down;"
        "if (document.body.style.zoom) {"
        " one.querySelectorAll('[role=gridcell]')[place].scrollIntoView({ block: 'center' }); return }"
        "const main = document.querySelector('[data-testid=stMain]'), bottom = main.getBoundingClientRect().bottom;"
        "if (y < 80 || y > bottom - 10) main.scrollBy(0, y - bottom / 2) }",
        [place, (place // grid(visitor, card)[0] + down) / grid(visitor, card)[1]],
    )
    columns, rows = grid(visitor, card)
    box = root(visitor, card).bounding_box()
    assert box is not None
    row, column = divmod(place, columns)
    return box["x"] + (column + across) * box["width"] / columns, box["y"] + (row + down) * box["height"] / rows


def click(visitor: Visitor, place: int, card: int = 0) -> None:
    visitor.page.mouse.click(*point(visitor, place, card))


def expect_open(visitor: Visitor, channel: int, card: int = 0) -> None:
    heading = panel(visitor, card).get_by_role("heading")
    expect(heading).to_have_text(f"channel {channel}")
    expect(root(visitor, card).locator("[aria-selected=true] .number")).to_have_text(str(channel))


def expect_map(visitor: Visitor, layer: str, channel: int, card: int = 0) -> None:
    """The panel's picture is the library's own of this channel alone, drawn by the server."""
    visitor.idle()
    source = panel(visitor, card).locator(".hv-places img").get_attribute("src")
    assert source == expected_url(mosaic(values(layer)[channel : channel + 1]))


def expected_url(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


@pytest.fixture
def narrow(chromium: Browser, server: Server) -> Iterator[Visitor]:
    """A phone: 390 pixels wide, touched."""
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    yield Visitor(context.new_page(), server.url)
    context.close()


@pytest.fixture(scope="module")
def unusual(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(tmp_path_factory.mktemp("unusual"), "--model", UNUSUAL) as server:
        yield server


@pytest.mark.parametrize(
    "places", [(0, 7, 21, 37, 42, 56, 63), pytest.param(range(64), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_click_opens_the_right_channel_in_all_64_places_of_the_third_page_sorted_by_mean(
    new_visitor: NewVisitor, places: Iterable[int]
) -> None:
    """C16: and a second visitor sees nothing of it."""
    other = new_visitor().open(**VIEW, layer=DEEP, c0="5")
    expect_open(other, 5)
    visitor = new_visitor().open(**VIEW, layer=DEEP, sort="mean", p0="3")
    order = by_mean(DEEP)[128:192]
    asked = other.runs_asked_for
    assert grid(visitor) == (8, 8)
    assert visitor.channel_numbers(0) == order
    expect(panel(visitor)).to_have_count(0)
    for place in places:
        channel = order[place]
        click(visitor, place)
        expect_open(visitor, channel)
        if place % 16 == 5:
            expect_map(visitor, DEEP, channel)
    assert visitor.idle().address["c0"] == [str(order[63])]
    expect_open(other, 5)
    assert other.runs_asked_for == asked


def test_quick_clicks_end_with_the_last(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1")
    for place in (3, 17, 40, 8, 21):
        click(visitor, place)
    expect_open(visitor, 21)
    expect_map(visitor, "conv1", 21)
    assert visitor.address["c0"] == ["21"]


@pytest.mark.parametrize("zoom", [0.75, 1.5])
def test_click_opens_the_right_channel_on_a_zoomed_page(visitor: Visitor, zoom: float) -> None:
    visitor.open(**VIEW, layer=DEEP)
    visitor.page.evaluate(f"document.body.style.zoom = {zoom}")
    for place in (0, 7, 20, 63):
        click(visitor, place)
        expect_open(visitor, place)


def test_click_opens_the_right_channel_where_the_browser_zooms(chromium: Browser, server: Server) -> None:
    """150 %: fewer CSS pixels for the page, more device pixels for each."""
    context = chromium.new_context(viewport={"width": 960, "height": 640}, device_scale_factor=1.5)
    visitor = Visitor(context.new_page(), server.url).open(**VIEW, layer=DEEP)
    for place in (0, 7, 35, 56, 63):
        click(visitor, place)
        expect_open(visitor, place)
    context.close()


def test_tap_opens_the_channel_and_brings_it_into_view_on_a_phone(narrow: Visitor) -> None:
    narrow.open(**VIEW, layer=DEEP, sort="mean", p0="3")
    order = by_mean(DEEP)[128:192]
    for place in (0, 31, 63):
        narrow.page.touchscreen.tap(*point(narrow, place))
        expect_open(narrow, order[place])
        narrow.idle()
        expect(panel(narrow).get_by_role("heading")).to_be_in_viewport()
        expect(panel(narrow).locator(".hv-places img")).to_be_in_viewport(ratio=0.5)
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("layer", ["conv1", DEEP])
def test_the_line_says_the_exact_value_under_the_pointer(visitor: Visitor, layer: str) -> None:
    """The float32 of the tensor itself, whichever the scale: no colour has so many digits."""
    visitor.open(**VIEW, layer=layer, scale="shared")
    maps = values(layer)
    side = maps.shape[1]
    for place, row, column in ((17, 0, 0), (17, 3, 5), (0, side - 1, 2), (63, side // 2, side - 1)):
        tile = side + 1
        inside = (8 * tile - 1) / 8  # a tile's share of the picture, the gap after the last one left out
        visitor.page.mouse.move(
            *point(
                visitor,
                0,
                across=((place % 8) * tile + column + 0.5) / inside,
                down=((place // 8) * tile + row + 0.5) / inside,
            )
        )
        expect(readout(visitor)).to_have_text(
            re.compile(rf"^channel {place} · row {row}, column {column} · [−\d.e]+ · range .+ to .+$")
        )
        said = readout(visitor).inner_text().split(" · ")[2].replace("−", "-")
        assert np.float32(said) == maps[place, row, column]
    visitor.page.mouse.move(5, 5)
    expect(readout(visitor)).to_have_text("Click a channel to look closer")


def test_values_of_other_kinds_are_said_exactly(unusual: Server, new_visitor: NewVisitor) -> None:
    """C29, C31: true and false, whole numbers, brain floats."""
    visitor = new_visitor(unusual).open(layer=["mask", "classes", "brain_float"])
    for card, layer in enumerate(("mask", "classes", "brain_float")):
        out = BY_HAND[layer](expected.network(UNUSUAL, "default").prepare(expected.hopper()))
        maps = out[0] if out.ndim == 4 else out
        maps = maps[:, None, None] if maps.ndim == 1 else maps
        visitor.page.mouse.move(*point(visitor, 0, card, 0.01, 0.01))
        expect(readout(visitor, card)).to_have_text(re.compile(r"row 0, column 0 · [^…]+ · "))
        said = readout(visitor, card).inner_text().split(" · ")[2]
        value = maps[0, 0, 0].item()
        assert said == (str(value).lower() if layer == "mask" else said)
        if layer != "mask":
            assert np.float32(said.replace("−", "-").replace(",", "")) == np.float32(value)


def test_the_same_channel_again_the_button_and_escape_close(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1")
    ways: list[Callable[[], None]] = [
        lambda: click(visitor, 9),
        lambda: panel(visitor).get_by_role("button", name="Close").click(),
        lambda: visitor.page.keyboard.press("Escape"),
    ]
    for close in ways:
        click(visitor, 9)
        expect_open(visitor, 9)
        close()
        expect(panel(visitor)).to_have_count(0)
        expect(root(visitor).locator("[aria-selected=true]")).to_have_count(0)
        visitor.idle()
        assert "c0" not in visitor.address


def test_opening_moves_neither_mosaic_nor_line(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1")
    click(visitor, 17)
    before = (root(visitor).bounding_box(), readout(visitor).bounding_box())
    expect_open(visitor, 17)
    visitor.idle()
    assert (root(visitor).bounding_box(), readout(visitor).bounding_box()) == before


def test_keyboard_alone_reaches_everything(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer=["conv1", DEEP])
    press = visitor.page.keyboard.press
    for _ in range(80):
        press("Tab")
        if root(visitor).evaluate("one => one === document.activeElement"):
            break
    expect(root(visitor)).to_be_focused()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        press(key)
    low, high = values("conv1")[9].min(), values("conv1")[9].max()
    expect(readout(visitor)).to_have_text(re.compile("^channel 9 · range "))
    ends = readout(visitor).inner_text().replace("−", "-").split("range ")[1].split(" to ")
    assert [float(end) for end in ends] == pytest.approx([low, high], rel=6e-3)
    expect(panel(visitor)).to_have_count(0)
    press("Enter")
    expect_open(visitor, 9)
    press("ArrowDown")
    expect_open(visitor, 17)
    press("PageDown")
    expect_open(visitor, 17, card=1)
    expect(root(visitor, 1)).to_be_focused()
    visitor.idle()
    press("End")
    expect_open(visitor, 511, card=1)
    assert visitor.idle().channel_numbers(1) == list(range(448, 512))
    press("Home")
    expect_open(visitor, 0, card=1)
    visitor.idle()
    press("PageUp")
    expect_open(visitor, 0)
    press("Escape")
    expect(panel(visitor)).to_have_count(0)
    expect(root(visitor)).to_be_focused()
    press("Enter")
    expect_open(visitor, 0)
    press("Tab")
    for _ in range(40):
        if panel(visitor).get_by_role("button", name="Close").evaluate("one => one === document.activeElement"):
            break
        press("Tab")
    press("Enter")
    expect(panel(visitor)).to_have_count(0)
    expect(root(visitor)).to_be_focused()


def test_arrows_cross_pages_at_their_ends(visitor: Visitor) -> None:
    """C16: in the order shown, to and fro."""
    visitor.open(**VIEW, layer=DEEP, sort="mean")
    order = by_mean(DEEP)
    click(visitor, 63)
    expect_open(visitor, order[63])
    visitor.idle()
    visitor.page.keyboard.press("ArrowRight")
    expect_open(visitor, order[64])
    assert visitor.idle().channel_numbers(0) == order[64:128]
    assert visitor.address["p0"] == ["2"]
    visitor.page.keyboard.press("ArrowUp")
    expect_open(visitor, order[56])
    assert visitor.idle().channel_numbers(0) == order[:64]
    visitor.page.keyboard.press("ArrowDown")
    expect_open(visitor, order[64])


def test_few_channels_have_few_places(visitor: Visitor) -> None:
    """C17: 4 maps are 4 places, and there is nothing beyond the last."""
    visitor.open(model="simple_cnn", sample="digit_3", layer="conv1")
    columns, rows = grid(visitor)
    count = len(visitor.channel_numbers(0))
    assert columns * rows >= count
    click(visitor, count - 1)
    expect_open(visitor, count - 1)
    visitor.page.keyboard.press("ArrowRight")
    visitor.idle()
    expect_open(visitor, count - 1)


def test_address_restores_channel_page_view_and_call(new_visitor: NewVisitor) -> None:
    here = new_visitor().open(**VIEW, layer=[DEEP, "layer1.0.relu", "conv1"])
    here.widget("page-0").get_by_role("button", name="Page 3", exact=True).click()
    here.idle()
    click(here, 9)
    expect_open(here, 137)
    here.press("call-1", "call 2")
    click(here, 5, card=1)
    expect_open(here, 5, card=1)
    here.idle().press("view-2", "Figure")
    there = new_visitor().go(here.page.url)
    assert there.page.url == here.page.url
    assert there.channel_numbers(0) == list(range(128, 192))
    expect_open(there, 137)
    expect_map(there, DEEP, 137)
    assert there.mosaic(1) == here.mosaic(1)
    expect_open(there, 5, card=1)
    expect(there.card(2).get_by_alt_text("Channels of conv1 with numbers, ranges and a colour bar")).to_be_visible()
    assert there.sentences() == []


def test_channels_and_pages_that_there_are_not_are_left_out_with_a_sentence_each(visitor: Visitor) -> None:
    """C73."""
    visitor.open(**VIEW, layer="conv1", c0="64", p0="2", view0="cinema")
    assert visitor.sentences() == [
        "The address asks for view0 “cinema”, which there is not; Mosaic is shown instead.",
        "The address asks for p0=2, and there are 1 to 1; it is left out.",
        "The address asks for c0=64, and there are 0 to 63; it is left out.",
    ]
    assert not {"c0", "p0", "view0"} & set(visitor.address)
    expect(panel(visitor)).to_have_count(0)


def test_open_channel_stays_with_its_layer_and_closes_with_another(visitor: Visitor) -> None:
    """C43, C73: another image has other values; another layer has other channels."""
    visitor.open(**VIEW, layer="conv1")
    click(visitor, 17)
    expect_open(visitor, 17)
    visitor.idle().press("sample", "Colours")
    expect_open(visitor, 17)
    source = panel(visitor).locator(".hv-places img").get_attribute("src")
    assert source == expected_url(mosaic(values("conv1", "colours")[17:18]))
    visitor.add_layer("bn1", "bn1").remove_layer("conv1")
    visitor.assert_cards("bn1")
    expect(panel(visitor)).to_have_count(0)
    assert "c0" not in visitor.address


def test_panel_keeps_the_scale_of_the_layer_and_the_colours_of_the_tile(visitor: Visitor) -> None:
    """C15: in one range for all, a channel alone is no brighter than among the others."""
    visitor.open(**VIEW, layer="conv1", scale="shared", cmap="magma", c0="6")
    whole = expected.pixels(mosaic(values("conv1"), scale="shared", cmap="magma"))
    source = panel(visitor).locator(".hv-places img").get_attribute("src") or ""
    alone = expected.pixels(base64.b64decode(source.partition(",")[2]))
    assert np.array_equal(alone, whole[:112, 6 * 113 : 6 * 113 + 112])


def test_values_are_asked_for_only_by_who_stays_on_one(visitor: Visitor) -> None:
    """A click by itself sends pictures of a channel, not the page's values, which are ten times as much."""
    received: list[bytes] = []

    def keep(frame: str | bytes) -> None:
        received.append(frame.encode() if isinstance(frame, str) else frame)

    visitor.page.on("websocket", lambda socket: socket.on("framereceived", keep))
    visitor.open(**VIEW, layer="conv1")
    root(visitor).press("Enter")
    expect_open(visitor, 0)
    root(visitor).press("ArrowRight")
    expect_open(visitor, 1)
    visitor.idle()
    assert sum(map(len, received)) > 5_000
    assert [len(frame) for frame in received if b'"values": "' in frame] == []
    root(visitor).hover()
    visitor.idle()
    assert len([frame for frame in received if b'"values": "' in frame]) == 1


def test_no_log_line_comes_from_all_this(visitor: Visitor, server: Server, tmp_path: Path) -> None:
    """C77."""
    before = len(server.log())
    visitor.open(**VIEW, layer=DEEP)
    for place in (1, 2, 3):
        click(visitor, place)
        expect_open(visitor, place)
    visitor.idle().assert_no_broken_picture()
    assert server.log()[before:] == ""
