from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser import expected
from tests.browser.server import Server
from tests.browser.visitor import Visitor

UNTRAINED = "untrained (seeded)"


def turn_to_page(visitor: Visitor, position: int, page: int) -> None:
    visitor.widget(f"page-{position}").get_by_role("button", name=f"Page {page}", exact=True).click()
    visitor.idle()


def test_layers_and_pages_of_one_model_never_reach_another(visitor: Visitor) -> None:
    """C73: a layer of resnet18 on its last page, to vgg11, and back."""
    visitor.open(model="resnet18", weights="untrained", layer="layer4.1.conv2")
    turn_to_page(visitor, 0, 8)
    assert visitor.channel_numbers(0) == list(range(448, 512))
    visitor.select("model", "vgg11").select("weights", UNTRAINED)
    visitor.assert_cards("features.0", "features.11", "features.18")
    assert visitor.sentences() == []
    assert visitor.channel_numbers(0) == list(range(64))
    assert visitor.mosaic(0) == expected.layer_picture(expected.network("vgg11"), expected.hopper(), "features.0")
    visitor.select("model", "resnet18").select("weights", UNTRAINED)
    assert visitor.sentences() == []
    assert all(not name.startswith("features") for name in visitor.titles())
    assert visitor.channel_numbers(0) == list(range(64))


def test_page_of_channels_is_that_of_the_library_and_ends_with_the_layer(visitor: Visitor) -> None:
    """C73: the eighth page of 512 channels, then a layer that has only one page."""
    visitor.open(model="resnet18", weights="untrained", layer="layer4.1.conv2")
    turn_to_page(visitor, 0, 8)
    tensor = expected.output(expected.network("resnet18"), expected.hopper(), "layer4.1.conv2")
    assert visitor.mosaic(0) == expected.picture(tensor, page=7)
    visitor.add_layer("conv1", "conv1").remove_layer("layer4.1.conv2")
    visitor.assert_cards("conv1")
    assert visitor.channel_numbers(0) == list(range(64))
    expect(visitor.widget("page-0")).to_have_count(0)


def test_rapid_changes_end_in_a_whole_page_and_a_clean_log(visitor: Visitor, new_log: Callable[[], str]) -> None:
    """C77: no broken picture after the page has come to rest, no line in the log."""
    visitor.open(model="resnet18", weights="untrained", layer=["conv1", "layer1.0.relu", "layer2.0.conv1"])
    visitor.press("view-1", "Figure")
    for turn in range(15):
        scale = ("Shared", "Symmetric", "Channel")[turn % 3]
        visitor.widget("scale").get_by_role("radio", name=scale, exact=True).click()
        visitor.page.wait_for_timeout(40)
    visitor.idle()
    visitor.assert_no_broken_picture()
    visitor.assert_cards("conv1", "layer1.0.relu", "layer2.0.conv1")
    assert visitor.mosaic(0) == expected.layer_picture(expected.network("resnet18"), expected.hopper(), "conv1")
    assert new_log() == ""


def test_weights_that_cannot_be_had_give_one_sentence_and_a_way_on(visitor: Visitor, server: Server) -> None:
    visitor.open(model="resnet18")
    assert len(visitor.sentences()) == 1
    assert visitor.sentences()[0].startswith("Resnet18") or "resnet18" in visitor.sentences()[0]
    assert "could not be downloaded" in visitor.sentences()[0]
    assert any("download.pytorch.org" in line for line in server.asked_for)
    assert server.weights_files() == []
    visitor.page.get_by_role("button", name="Show resnet18 untrained instead").click()
    visitor.idle()
    assert visitor.sentences() == []
    assert visitor.address["weights"] == ["untrained"]
    assert visitor.mosaic(0) == expected.layer_picture(expected.network("resnet18"), expected.hopper(), "conv1")


def test_layers_survive_a_stop_on_the_way(visitor: Visitor) -> None:
    """The way to a model without its weights leads over a page that shows no layers."""
    visitor.open(model="resnet18", weights="untrained", layer="layer3.0.conv2").select("model", "resnet34")
    visitor.page.get_by_role("button", name="Show resnet34 untrained instead").click()
    visitor.idle().assert_cards("layer3.0.conv2")


def test_quick_choice_and_emptying_the_choice(visitor: Visitor) -> None:
    visitor.open(model="resnet18", weights="untrained", layer="conv1")
    visitor.page.get_by_role("button", name="Last conv", exact=True).click()
    visitor.idle().assert_cards("layer4.1.conv2")
    visitor.remove_layer("layer4.1.conv2")
    assert visitor.titles() == []
    assert visitor.sentences() == ["Choose a layer above to see what it computed."]
