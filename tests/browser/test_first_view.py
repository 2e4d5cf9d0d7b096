from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from tests.browser import expected
from tests.browser.conftest import WINDOW, NewServer, NewVisitor
from tests.browser.server import Server
from tests.browser.visitor import Visitor

IMPORTING = "Importing PyTorch, once for all visitors"
KEYS = ("model", "weights", "upload", "sample", "layers", "sort", "scale", "cmap", "predictions", "device")


@pytest.fixture(scope="module")
def log_before(server: Server) -> int:
    """How much other tests have made the server say, and forget whom they made it ask."""
    server.asked_for.clear()
    return len(server.log())


@pytest.fixture(scope="module")
def visitor(chromium: Browser, server: Server, log_before: int) -> Iterator[Visitor]:
    """One look at the page by somebody who only looks: the tests here share it."""
    context = chromium.new_context(viewport=WINDOW)
    yield Visitor(context.new_page(), server.url).open()
    context.close()


def test_first_view_is_grace_hopper_with_layers_and_predictions(visitor: Visitor) -> None:
    assert visitor.predictions() == expected.top_labels(
        expected.network("efficientnet_lite0", "default"), expected.hopper()
    )
    assert "military uniform" in visitor.predictions()
    visitor.assert_cards("conv_stem", "blocks.4.0.conv_pw", "conv_head")
    assert visitor.sentences() == []


def test_first_view_asks_no_network_for_anything(visitor: Visitor, server: Server) -> None:
    hosts = {urlsplit(url).hostname for url in visitor.requests if not url.startswith(("data:", "blob:"))}
    assert hosts == {"localhost"}
    assert server.asked_for == []


def test_mosaic_shown_is_the_library_s_own_to_the_byte(visitor: Visitor) -> None:
    model = expected.network("efficientnet_lite0", "default")
    for position, layer in enumerate(("conv_stem", "blocks.4.0.conv_pw", "conv_head")):
        assert visitor.mosaic(position) == expected.layer_picture(model, expected.hopper(), layer)


def test_input_shown_is_the_prepared_tensor_within_one_level(visitor: Visitor) -> None:
    """C79: explicit scaling; the preview's pixels within 1/255 of the prepared input, in 0..1."""
    shown = expected.pixels(visitor.input_picture()) / 255
    prepared = expected.seen(expected.network("efficientnet_lite0", "default"), expected.hopper())
    assert shown.shape == prepared.shape == (224, 224, 3)
    assert np.abs(shown - prepared).max() <= 1 / 255


def test_pictures_have_words_for_those_who_do_not_see_them(visitor: Visitor) -> None:
    assert visitor.console_errors == []
    words = visitor.page.locator(".stMain img, [data-testid=stMain] img").evaluate_all("all => all.map(one => one.alt)")
    assert len(words) == 1 + 3 * 2
    assert words[:2] == ["Grace Hopper, as the network saw it", "32 channels of conv_stem, 8 in a row"]
    assert all(words)


def test_log_has_no_traceback_of_torch_classes(visitor: Visitor, server: Server, log_before: int) -> None:
    """C78: the file watcher asks torch.classes for its __path__, and torch answers with a traceback."""
    assert "torch.classes" not in server.log()
    assert "Traceback" not in server.log()[log_before:]


def test_every_widget_has_the_key_it_is_known_by(visitor: Visitor) -> None:
    for key in (*KEYS, "card-0", "card-1", "card-2", "page-1"):
        expect(visitor.widget(key)).to_have_count(1)
    expect(visitor.widget("camera")).to_have_count(0)
    visitor.toggle("use-camera")
    expect(visitor.widget("camera")).to_have_count(1)


def test_who_comes_while_torch_is_imported_is_told_so(new_server: NewServer, new_visitor: NewVisitor) -> None:
    """Nothing else is to be seen then, whatever the browser fetches; in the dark, where widgets have another ground."""
    server = new_server()
    visitor = new_visitor(server, fresh=True)
    visitor.page.emulate_media(color_scheme="dark")
    visitor.page.goto(server.url)
    sentence = visitor.page.get_by_text(IMPORTING)
    expect(sentence).to_be_visible()
    box = sentence.bounding_box()
    assert box is not None
    for _ in range(6):  # while the browser fetches one kind of element after the other
        below = expected.pixels(visitor.page.screenshot())[round(box["y"] + box["height"]) :]
        assert (below == below[-1, -1]).all()
    assert visitor.page.get_by_test_id("stSelectbox").count() == 1, "it fetches nothing: the test shows nothing"
    visitor.page.wait_for_selector(".st-key-predictions")
    expect(sentence).to_have_count(0)
    visitor.idle().assert_cards("conv_stem", "blocks.4.0.conv_pw", "conv_head")
