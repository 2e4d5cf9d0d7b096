from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image

from tests.browser import expected, pictures
from tests.browser.conftest import NewVisitor
from tests.browser.server import Server

VIEW = {"model": "resnet18", "weights": "untrained"}
ROUNDS = 6
ALL_STAGES = [f"layer{stage}.{block}.{part}" for stage in (1, 2, 3) for block in (0, 1) for part in ("conv1", "bn2")]


def test_two_visitors_at_once_each_see_their_own_picture(new_visitor: NewVisitor) -> None:
    """C03: black and white, same model and layer, pressed at the same moment, again and again."""
    model = expected.network("resnet18")
    visitors = [new_visitor().open(**VIEW, layer="layer1.0.conv1") for _ in range(2)]
    for turn in range(ROUNDS):
        # A size of its own for each round, so that nothing comes from what is already kept.
        images = [Image.new("RGB", (64 + turn, 64), colour) for colour in (pictures.BLACK, pictures.WHITE)]
        with visitors[0].upload_arrives(), visitors[1].upload_arrives():
            for visitor, image in zip(visitors, images, strict=True):
                visitor.give_file("plain.png", pictures.encoded(image, "PNG"))
        for visitor, image in zip(visitors, images, strict=True):
            visitor.idle()
            assert visitor.mosaic(0) == expected.layer_picture(model, image, "layer1.0.conv1"), turn


def test_reruns_that_interrupt_a_slow_model_leave_no_lock_and_no_hook(new_visitor: NewVisitor, server: Server) -> None:
    """C23: widgets change while a slow model runs; a second browser then answers in its normal time."""
    other = new_visitor().open(**VIEW, layer="conv1")
    started = time.monotonic()
    other.press("sample", "Colours").press("sample", "Digit 3")
    normal = time.monotonic() - started

    hasty = new_visitor().open(model="resnet50", weights="untrained", layer="layer4.2.conv3")
    samples = ("Gratings", "Zone plate", "Checkerboard", "Colours", "Digit 3", "Digit 8", "Grace Hopper")
    for name in samples:
        hasty.widget("sample").get_by_role("radio", name=name, exact=True).click()
        hasty.page.wait_for_timeout(120)
    started = time.monotonic()
    other.press("sample", "Gratings").press("sample", "Zone plate")
    assert time.monotonic() - started < 3 * normal + 5
    hasty.idle()
    assert hasty.sentences() == []
    assert hasty.mosaic(0) == expected.layer_picture(expected.network("resnet50"), expected.hopper(), "layer4.2.conv3")
    again = new_visitor().open(model="resnet50", weights="untrained", layer="layer4.2.conv3")
    assert again.mosaic(0) == hasty.mosaic(0)
    assert server.facts()["hooks"] == 0


@pytest.mark.slow
def test_sessions_that_captured_much_and_closed_leave_a_bounded_rest(new_visitor: NewVisitor, server: Server) -> None:
    """C75: what is kept stays within its bound, whoever came and went, and memory does not grow with visitors."""
    resident = []
    for turn in range(6):
        visitor = new_visitor(fresh=True).open(**VIEW, layer=ALL_STAGES)
        visitor.upload("noise.png", pictures.encoded(pictures.noise(750 + turn), "PNG"))
        assert len(visitor.titles()) == len(ALL_STAGES)
        visitor.context.close()
        facts = server.facts()
        assert facts["bytes_kept"] <= facts["bytes_allowed"]
        resident.append(facts["resident"])
    assert facts["hooks"] == 0
    assert facts["pyplot_figures"] == 0
    # Six visits keep at most 6 × 11 MB of values more; anything beyond was left behind.
    assert resident[-1] - resident[2] < 100 * 2**20


@pytest.mark.slow
def test_walk_through_models_keeps_few_of_them(new_visitor: NewVisitor, server: Server) -> None:
    """C76: a bounded number stays, and a model that somebody looks at still works after others pushed it out."""
    faithful = new_visitor().open(model="simple_cnn", sample="digit_3", layer="conv1")
    before = faithful.mosaic(0)
    walker = new_visitor()
    names = ("resnet18", "squeezenet1_1", "shufflenet_v2_x0_5", "mobilenet_v3_small")
    for name in names * 2:
        walker.open(model=name, weights="untrained")
        assert walker.sentences() == []
        facts = server.facts()
        assert name in facts["models"]
        assert len(facts["models"]) <= facts["models_allowed"] == 3
    assert "simple_cnn" not in facts["models"]
    faithful.select("cmap", "magma").select("cmap", "viridis")
    assert faithful.mosaic(0) == before


@pytest.mark.slow
def test_many_reruns_leave_hooks_figures_and_memory_as_they_were(
    new_visitor: NewVisitor, server: Server, new_log: Callable[[], str]
) -> None:
    """C19, C22: thirty changes of one widget; nothing piles up and nothing slows down."""
    visitor = new_visitor().open(**VIEW, layer=["conv1", "bn1"])
    visitor.press("view-1", "Figure")
    seconds: list[float] = []
    facts: list[dict[str, Any]] = []
    for turn in range(30):
        began = time.monotonic()
        visitor.press("scale", ("Shared", "Symmetric", "Channel")[turn % 3])
        seconds.append(time.monotonic() - began)
        if turn in {9, 29}:
            facts.append(server.facts())
    assert [one["hooks"] for one in facts] == [0, 0]
    assert [one["pyplot_figures"] for one in facts] == [0, 0]
    assert facts[1]["resident"] - facts[0]["resident"] < 50 * 2**20
    assert sorted(seconds[20:])[5] < 2 * sorted(seconds[:10])[5]
    assert new_log() == ""
