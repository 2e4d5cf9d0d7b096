"""Switching channels off, seeing what that does, and ranking them: by mouse and by keys, in real Chromium."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, expect
from torch import Tensor

from hookviz.samples import load_sample
from hookviz.views import channel_over_photo
from tests.browser import expected
from tests.browser.conftest import NewVisitor
from tests.browser.visitor import Visitor

VIEW: dict[str, str | list[str]] = {"layer": ["conv_head"], "p0": "11", "c0": "684"}
PLAIN = ["academic gown", "mortarboard", "military uniform", "vestment", "Windsor tie"]


@cache
def probabilities(change: Callable[[Tensor], None] | None = None, layer: str = "conv_head") -> Tensor:
    """Lite0's of Grace Hopper, with a forward hook written by hand on a layer."""
    model = expected.network("efficientnet_lite0", "default")

    def hook(_module: object, _args: object, output: Tensor) -> Tensor:
        changed = output.clone()
        if change is not None:
            change(changed)
        return changed

    handle = model.module.get_submodule(layer).register_forward_hook(hook)
    try:
        with torch.no_grad():
            scores: Tensor = model.module(model.prepare(expected.hopper()))
    finally:
        handle.remove()
    return scores.softmax(1)[0]


def off(output: Tensor) -> None:
    output[:, 684] = 0


def off_and_doubled(output: Tensor) -> None:
    output[:, 684] = 0
    output[:, 640] *= 2


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def rows(visitor: Visitor) -> list[str]:
    """Each class with its two probabilities, as the page says them."""
    place = visitor.widget("predictions").locator(".hv-versus")
    names = place.locator(".name").all_inner_texts()
    return [f"{name}: {text}" for name, text in zip(names, place.locator(".numbers").all_inner_texts(), strict=True)]


def rows_by_hand(change: Callable[[Tensor], None]) -> list[str]:
    before, after, names = probabilities(), probabilities(change), expected.network("efficientnet_lite0", "default")
    shown = list(dict.fromkeys([*before.topk(5).indices.tolist(), *after.topk(5).indices.tolist()]))
    return [f"{names.categories[one]}: {percent(float(before[one]))} → {percent(float(after[one]))}" for one in shown]


def plain(visitor: Visitor) -> str:
    """All that the unedited prediction is drawn with."""
    markup: str = visitor.widget("predictions").locator(".hv-bars").evaluate("one => one.outerHTML")
    return markup


def action(visitor: Visitor, title: str) -> Locator:
    return visitor.widget("channel-actions-0").get_by_role("button", name=title, exact=True)


def height(place: Locator) -> float:
    """How far down in the window something is."""
    box = place.bounding_box()
    assert box is not None
    return box["y"]


def test_switching_the_channel_off_changes_the_bars_and_undo_restores_them(new_visitor: NewVisitor) -> None:
    """C03: and a second visitor is unaffected throughout."""
    other, visitor = new_visitor().open(**VIEW), new_visitor().open(**VIEW)
    before, asked = plain(other), other.runs_asked_for
    assert plain(visitor) == before
    mosaic = visitor.mosaic(0)
    action(visitor, "Switch off").scroll_into_view_if_needed()
    where = height(action(visitor, "Switch off"))
    action(visitor, "Switch off").click()
    expect(visitor.widget("edits").get_by_role("button")).to_have_text([re.compile("^conv_head · channel 684 off")])
    visitor.idle()
    assert height(action(visitor, "Switch off")) == pytest.approx(where, abs=1)
    assert rows(visitor) == rows_by_hand(off)
    assert {"academic gown: 24.2 % → 21.6 %", "military uniform: 18.1 % → 12.2 %"} < set(rows(visitor))
    expect(visitor.widget("channel-effect-0")).to_have_text("Military uniform 18.1 → 12.2 %")
    expect(action(visitor, "Switch off")).to_have_css("background-color", "rgb(59, 115, 185)")
    expect(action(visitor, "Scale")).not_to_have_css("background-color", "rgb(59, 115, 185)")
    assert visitor.mosaic(0) == mosaic
    assert visitor.address["edit"] == ["conv_head:684:zero"]
    action(visitor, "Switch off").click()
    visitor.idle()
    assert plain(visitor) == before
    assert "edit" not in visitor.address
    expect(visitor.widget("edits")).to_have_count(0)
    assert plain(other) == before
    assert other.runs_asked_for == asked


def test_several_channels_are_edited_and_undone_one_by_one(visitor: Visitor) -> None:
    visitor.open(**VIEW)
    before = plain(visitor)
    action(visitor, "Switch off").click()
    visitor.idle().widget("mosaic-0").locator("[data-columns]").click(position={"x": 20, "y": 20})
    expect(visitor.widget("channel-0").get_by_role("heading")).to_have_text("channel 640")
    visitor.idle()
    action(visitor, "Scale").click()
    visitor.idle()
    assert rows(visitor) == rows_by_hand(off_and_doubled)
    assert visitor.address["edit"] == ["conv_head:684:zero", "conv_head:640:scale:2"]
    chips = visitor.widget("edits").get_by_role("button")
    expect(chips).to_have_count(3)
    factor = visitor.widget("channel-effect-0").get_by_role("spinbutton")
    factor.fill("1")
    factor.press("Enter")
    visitor.idle()
    assert rows(visitor) == rows_by_hand(off)
    assert visitor.address["edit"] == ["conv_head:684:zero", "conv_head:640:scale:1"]
    chips.first.click()
    visitor.idle()
    expect(visitor.page.get_by_text("The scores are the same to the last bit.")).to_be_visible()
    chips.first.click()
    visitor.idle()
    assert plain(visitor) == before


def test_link_restores_the_edits_and_leaves_out_what_there_is_not(new_visitor: NewVisitor) -> None:
    """C73."""
    here = new_visitor().open(layer="conv_head", edit=["conv_head:684:zero", "conv_head:640:scale:2"])
    assert rows(here) == rows_by_hand(off_and_doubled)
    there = new_visitor().go(here.page.url)
    assert there.page.url == here.page.url
    assert rows(there) == rows(here)
    wrong = ["conv_head:1280:zero", "nothing:1:zero", "conv_head:3:explode", "conv_head:684:zero"]
    other = new_visitor().open(layer="conv_head", edit=wrong)
    assert other.sentences() == [
        "The address asks for edit=conv_head:1280:zero, and its channels are 0 to 1279; it is left out.",
        "The address asks for edit=nothing:1:zero, and there is no layer “nothing” that runs; it is left out.",
        "The address asks for edit=conv_head:3:explode, which says no channel and action; it is left out.",
    ]
    assert rows(other) == rows_by_hand(off)
    assert other.address["edit"] == ["conv_head:684:zero"]
    other.select("model", "simple_cnn")
    assert "edit" not in other.address
    expect(other.widget("edits")).to_have_count(0)


def test_layers_that_moved_most_open_their_cards(visitor: Visitor) -> None:
    visitor.open(layer=["conv_head"], edit="conv_head:684:zero")
    moved = visitor.widget("predictions").get_by_role("button", name=re.compile("^Show "))
    assert [one.get_attribute("title") for one in moved.all()] == [
        "global_pool.pool",
        "classifier",
        "bn2.act",
        "bn2.drop",
    ]
    moved.nth(2).click()
    visitor.idle().assert_cards("conv_head", "bn2.act")
    expect(visitor.page.locator(".hv-title .layer", has_text="bn2.act")).to_be_in_viewport()
    assert visitor.address["edit"] == ["conv_head:684:zero"]


def test_keyboard_alone_switches_off_and_undoes(visitor: Visitor) -> None:
    visitor.open(layer=["conv_head"], p0="11")
    before, press = plain(visitor), visitor.page.keyboard.press

    def tab_to(place: Locator, most: int = 60) -> None:
        for _ in range(most):
            press("Tab")
            if place.evaluate("one => one.getRootNode().activeElement === one"):
                return
        raise AssertionError("the keyboard does not get there")

    tab_to(visitor.widget("mosaic-0").locator("[data-columns]"), 90)
    for key in (*["ArrowDown"] * 5, *["ArrowRight"] * 4, "Enter"):
        press(key)
    expect(visitor.widget("channel-0").get_by_role("heading")).to_have_text("channel 684")
    visitor.idle()
    tab_to(action(visitor, "Switch off"))
    press("Enter")
    expect(visitor.widget("edits").get_by_role("button")).to_have_count(1)
    visitor.idle()
    assert rows(visitor) == rows_by_hand(off)
    expect(action(visitor, "Switch off")).to_be_focused()
    press("Enter")
    expect(visitor.widget("edits")).to_have_count(0)
    visitor.idle()
    assert plain(visitor) == before


def test_what_cannot_be_edited_says_so(visitor: Visitor) -> None:
    visitor.open(model="resnet18", weights="untrained", layer="layer1.0.add", c0="3")
    said = "An operation inside a forward cannot be edited; choose a layer before or after it."
    expect(visitor.widget("channel-0").get_by_text(said)).to_be_visible()
    expect(visitor.widget("channel-actions-0")).to_have_count(0)
    expect(visitor.page.get_by_text("Which channels matter")).to_have_count(0)


def test_ranking_is_what_zeroing_by_hand_gives_and_opens_channels(visitor: Visitor) -> None:
    model = expected.network("simple_cnn", "default")
    visitor.open(model="simple_cnn", sample="digit_3", layer="conv2")
    visitor.page.get_by_text("Which channels matter").click()
    start = visitor.page.get_by_role("button", name="Start", exact=True)
    first = visitor.widget("ranking-0").get_by_role("button", name=re.compile("^Open channel"))
    expect(start.or_(first.first)).to_be_visible()
    if start.is_visible():  # whoever asked before has it made for all
        start.click()
    expect(first).to_have_count(10)
    visitor.idle()

    batch, chosen, drops = model.prepare(load_sample("digit_3")), [-1], []

    def hook(_module: object, _args: object, output: Tensor) -> Tensor:
        changed = output.clone()
        if chosen[0] >= 0:
            changed[:, chosen[0]] = 0
        return changed

    handle = model.module.get_submodule("conv2").register_forward_hook(hook)
    with torch.no_grad():
        untouched = model.module(batch)[0]
        target = int(untouched.argmax())
        for channel in range(32):
            chosen[0] = channel
            drops.append(float(untouched[target] - model.module(batch)[0, target]))
    handle.remove()
    order = sorted(range(32), key=lambda channel: -drops[channel])[:10]
    assert [one.get_attribute("title") for one in first.all()] == [str(channel) for channel in order]
    said = [float(one.locator(".text").first.inner_text().replace("−", "-")) for one in first.all()]
    assert said == pytest.approx([drops[channel] for channel in order], rel=6e-3)
    first.nth(1).click()
    expect(visitor.widget("channel-0").get_by_role("heading")).to_have_text(f"channel {order[1]}")
    expect(visitor.widget("channel-0").get_by_role("heading")).to_be_in_viewport()


def test_a_long_ranking_leaves_the_page_usable_and_can_be_cancelled(visitor: Visitor) -> None:
    """C23."""
    visitor.open(layer="conv_head", p0="11")
    visitor.page.get_by_text("Which channels matter").click()
    visitor.page.get_by_role("button", name="Start", exact=True).click()
    runs = visitor.widget("ranking-runs-0")
    expect(runs).to_contain_text(re.compile(r"[1-9]\d* of 1,280 channels · about \d+ s left"))
    visitor.widget("mosaic-0").locator("[data-columns]").click(position={"x": 20, "y": 20})
    expect(visitor.widget("channel-0").get_by_role("heading")).to_have_text("channel 640")
    expect(runs).to_be_visible()
    runs.get_by_role("button", name="Cancel").click()
    expect(visitor.page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    expect(runs).to_have_count(0)
    visitor.idle()


def test_grad_cam_is_drawn_over_the_photo(visitor: Visitor) -> None:
    visitor.open(layer="conv_head")
    visitor.page.get_by_text("Which channels matter").click()
    visitor.idle().page.get_by_role("radio", name="Grad-CAM", exact=True).click()
    picture = visitor.widget("ranking-0").get_by_alt_text("Grad-CAM of conv_head over the image")
    expect(picture).to_be_visible()
    heat = grad_cam_by_hand()
    said = visitor.widget("ranking-0").get_by_text("7 × 7 positions, from ")
    expect(said).to_have_text(f"7 × 7 positions, from 0 (dark) to {heat.max():.3g} (bright), smoothed.")
    photo = np.asarray(expected.hopper().convert("RGB"))
    crop = expected.network("efficientnet_lite0", "default").crop_box(expected.hopper())
    drawn = channel_over_photo(photo, crop, heat.numpy(), cmap="inferno", interpolation="bilinear", longest_side=384)
    content = base64.b64decode((picture.get_attribute("src") or "").partition(",")[2])
    assert np.abs(expected.pixels(content).astype(int) - drawn.astype(int)).max() <= 1


def grad_cam_by_hand() -> Tensor:
    """https://arxiv.org/abs/1610.02391, equations 1 and 2, of conv_head and the most probable class."""
    model = expected.network("efficientnet_lite0", "default")
    kept: list[Tensor] = []

    def hook(_module: object, _args: object, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0].clone()  # an operation in place follows

    handle = model.module.get_submodule("conv_head").register_forward_hook(hook)
    with torch.enable_grad():
        scores = model.module(model.prepare(expected.hopper()))
        (gradient,) = torch.autograd.grad(scores[0].max(), kept[0])
    handle.remove()
    weights = gradient[0].mean((1, 2), keepdim=True)
    return (weights * kept[0].detach()[0]).sum(0).relu()
