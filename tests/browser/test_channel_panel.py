"""The open channel over the photo, its kernel, and all channels at once, against what numpy and torch alone say."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from itertools import count

import numpy as np
import numpy.typing as npt
import pytest
import torch
from playwright.sync_api import Browser, Locator, expect

from hookviz.layout import channel_maps
from hookviz.position_features import cluster_positions, pca_rgb
from hookviz.types import ChannelMaps
from hookviz.views import (
    channel_over_photo,
    channel_picture,
    cluster_colours,
    cluster_picture,
    kernel_picture,
    pca_picture,
)
from tests.browser import expected
from tests.browser.conftest import NewVisitor
from tests.browser.server import Server
from tests.browser.visitor import Visitor
from tests.nets import clones_at_hook_time

VIEW = {"model": "resnet18", "weights": "untrained"}
CROP = (32.0, 76.0, 480.0, 524.0)
"""512 × 600 made 256 × 300, of which the middle 224 × 224 begin at (16, 38): twice that in the photo's own pixels."""

Pixels = npt.NDArray[np.uint8]


@cache
def values(layer: str) -> npt.NDArray[np.float32]:
    """(C, H, W) as torch's own hooks see it, on a deepcopy."""
    model = expected.network("resnet18")
    with torch.no_grad():
        _, seen = clones_at_hook_time(model.module, model.prepare(expected.hopper()))
    array: npt.NDArray[np.float32] = seen[layer][0][0].numpy()
    return array


def weights(layer: str) -> npt.NDArray[np.float32]:
    array: npt.NDArray[np.float32] = (
        expected.network("resnet18").module.get_parameter(f"{layer}.weight").detach().numpy()
    )
    return array


def field_of_conv1(row: int, column: int) -> tuple[float, float, float, float]:
    """7 × 7 in steps of 2 with 3 of padding, cut off at the borders of 224 pixels: left, upper, right, lower."""
    (left, right), (upper, lower) = ((max(2 * one - 3, 0), min(2 * one + 4, 224)) for one in (column, row))
    return left / 224, upper / 224, right / 224, lower / 224


def panel(visitor: Visitor, card: int = 0) -> Locator:
    return visitor.widget(f"channel-{card}")


def places(visitor: Visitor, where: str = "at", card: int = 0) -> Locator:
    """The picture of positions that can be pointed at."""
    return visitor.widget(f"places-{where}-{card}").locator(".picture")


def words(visitor: Visitor, where: str = "at", card: int = 0) -> Locator:
    return visitor.widget(f"places-{where}-{card}").locator("figcaption span")


def photo_words(visitor: Visitor, card: int = 0) -> Locator:
    return visitor.widget(f"photo-{card}").locator("figcaption")


def point(place: Locator, row: int, column: int, height: int, width: int) -> tuple[float, float]:
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) * box["width"] / width, box["y"] + (row + 0.5) * box["height"] / height


def drawn(picture: Locator) -> Pixels:
    source = picture.get_attribute("src") or ""
    return expected.pixels(base64.b64decode(source.partition(",")[2]))


def over_photo(channel: int, place: tuple[int, int], *, is_chosen: bool) -> Pixels:
    array = values("conv1")[channel]
    row, column = np.unravel_index(array.argmax(), array.shape)
    return channel_over_photo(
        np.asarray(expected.hopper()),
        CROP,
        array,
        field=field_of_conv1(*place),
        position=place if is_chosen else None,
        maximum=(int(row), int(column)),
        longest_side=384,
    )


def test_the_channel_lies_where_the_crop_was_with_the_field_of_its_maximum_and_then_of_what_is_clicked(
    new_visitor: NewVisitor,
) -> None:
    visitor = new_visitor().open(**VIEW, layer="conv1", c0="17")
    row, column = (int(one) for one in np.unravel_index(values("conv1")[17].argmax(), (112, 112)))
    left, upper, right, lower = (round(224 * one) for one in field_of_conv1(row, column))
    size = f"receptive field {right - left} × {lower - upper} px of the network’s input"
    expect(photo_words(visitor)).to_have_text(size)
    expect(words(visitor)).to_have_text([f"row {row}, column {column}", re.compile(r"^[−\d.e]+ · maximum$")])
    visitor.idle()
    picture = visitor.widget("photo-0").locator("img")
    assert np.array_equal(drawn(picture), over_photo(17, (row, column), is_chosen=False))
    assert "at0" not in visitor.address

    visitor.page.mouse.click(*point(places(visitor), 60, 33, 112, 112))
    expect(words(visitor).first).to_have_text("row 60, column 33")
    expect(photo_words(visitor)).to_have_text("receptive field 7 × 7 px of the network’s input")
    visitor.idle()
    assert np.array_equal(drawn(picture), over_photo(17, (60, 33), is_chosen=True))
    said = words(visitor).last.inner_text().replace("−", "-")
    assert np.float32(said) == values("conv1")[17, 60, 33]
    assert visitor.address["at0"] == ["60,33"]

    there = new_visitor().go(visitor.page.url)
    expect(photo_words(there)).to_have_text("receptive field 7 × 7 px of the network’s input")
    assert np.array_equal(drawn(there.idle().widget("photo-0").locator("img")), drawn(picture))
    assert there.page.url == visitor.page.url


def test_keys_walk_positions_the_field_is_cut_off_at_the_border_and_home_goes_back(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1", c0="17", at0="0,0")
    expect(photo_words(visitor)).to_have_text("receptive field 4 × 4 px of the network’s input")
    places(visitor).focus()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.page.keyboard.press("ArrowRight")
    expect(words(visitor).first).to_have_text("row 0, column 1")
    expect(photo_words(visitor)).to_have_text("receptive field 6 × 4 px of the network’s input")
    visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("ArrowDown")
    expect(photo_words(visitor)).to_have_text("receptive field 6 × 7 px of the network’s input")
    assert visitor.idle().address["at0"] == ["2,1"]
    assert np.float32(words(visitor).last.inner_text().replace("−", "-")) == values("conv1")[17, 2, 1]
    visitor.page.keyboard.press("Home")
    expect(words(visitor).last).to_have_text(re.compile(" · maximum$"))
    assert "at0" not in visitor.idle().address
    expect(places(visitor)).to_be_focused()


def test_kernels_are_the_weights_in_colours_of_the_strongest_inputs_or_in_numbers(visitor: Visitor) -> None:
    layers = ["conv1", "layer2.0.conv1", "fc", "relu"]
    visitor.open(**VIEW, layer=layers, c0="5", c1="7", c2="3", view2="Mosaic", c3="0")
    kernels = [visitor.widget(f"kernel-{card}") for card in range(4)]
    assert np.array_equal(
        drawn(kernels[0].locator("img")), expected.pixels(kernel_picture(weights("conv1")[5], is_rgb=True).png)
    )

    own = weights("layer2.0.conv1")[7]
    strongest = np.argsort(-np.linalg.norm(own.reshape(64, -1).astype(np.float64), axis=1), kind="stable")[:9].tolist()
    expect(kernels[1].locator(".numbers span")).to_have_text([str(one) for one in strongest])
    tiles = kernel_picture(own, order=strongest, columns=9)
    assert np.array_equal(drawn(kernels[1].locator("img")), expected.pixels(tiles.png))
    expect(kernels[1]).to_contain_text(f"red {np.abs(own).max():.4g}")

    row = weights("fc")[3]
    largest = np.argsort(-np.abs(row), kind="stable")[:9]
    expect(kernels[2].locator(".what")).to_have_text([str(one) for one in largest])
    assert [float(one.replace("−", "-")) for one in kernels[2].locator(".weight").all_inner_texts()] == pytest.approx(
        row[largest].tolist(), rel=1e-3
    )
    expect(panel(visitor, 2)).to_contain_text("One value for the whole image has no place on it.")
    expect(visitor.widget("photo-2")).to_have_count(0)
    expect(panel(visitor, 3).get_by_alt_text("Histogram of channel 0 over that of its layer")).to_be_visible()
    expect(kernels[3]).to_have_count(0)


def test_all_channels_are_one_picture_three_ways_and_the_address_has_the_choices(new_visitor: NewVisitor) -> None:
    layer = "layer3.0.conv1"
    maps = values(layer)
    visitor = new_visitor().open(**VIEW, layer=layer)
    visitor.press("view-0", "Overview")
    vectors = maps.reshape(256, 196).T.astype(np.float64)
    variances = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
    shares = [f"{100 * one:.1f} %" for one in variances[:3] / variances.sum()]
    overview = visitor.widget("overview-0")
    expect(overview).to_contain_text(f"red {shares[0]}, green {shares[1]}, blue {shares[2]}")
    shown = overview.get_by_alt_text("The three principal components as red, green and blue")
    arranged = expected_maps(layer)
    assert np.array_equal(drawn(shown), expected.pixels(pca_picture(pca_rgb(arranged).rgb)))

    slider = visitor.widget("groups-0").get_by_role("slider")
    slider.focus()
    visitor.page.keyboard.press("ArrowLeft")
    visitor.idle()
    labels = cluster_positions(arranged, 4)
    groups = overview.get_by_alt_text("Positions in 4 groups")
    assert np.array_equal(drawn(groups), expected.pixels(cluster_picture(labels)))
    legend = overview.locator(".hv-legend").filter(has_text="%")
    sizes = [float(one) for one in re.findall(r"([\d.]+) %", legend.inner_text())]
    assert sizes == [round(100 * float((labels == label).mean()), 1) for label in range(len(cluster_colours(4)))]

    visitor.page.mouse.click(*point(places(visitor, "like"), 2, 9, 14, 14))
    expect(words(visitor, "like")).to_have_text("like row 2, column 9")
    lengths = np.linalg.norm(vectors, axis=1)
    cosine = (vectors @ vectors[2 * 14 + 9] / lengths / lengths[2 * 14 + 9]).reshape(1, 14, 14)
    alike = channel_picture(cosine, 0, scale="symmetric", cmap="coolwarm")
    visitor.idle()
    far = np.abs(drawn(places(visitor, "like").locator("img")).astype(int) - expected.pixels(alike)).max()
    assert far <= 6  # a step of the colormap, where the last digits differ
    assert {name: visitor.address[name] for name in ("view0", "k0", "like0")} == {
        "view0": ["Overview"],
        "k0": ["4"],
        "like0": ["2,9"],
    }
    there = new_visitor().go(visitor.page.url)
    expect(words(there, "like")).to_have_text("like row 2, column 9")
    assert np.array_equal(drawn(there.widget("overview-0").get_by_alt_text("Positions in 4 groups")), drawn(groups))
    assert there.page.url == visitor.page.url


def expected_maps(layer: str) -> ChannelMaps:
    return channel_maps(torch.from_numpy(values(layer))[None])


def test_a_vector_has_no_overview(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="fc")
    assert visitor.widget("view-0-bars").get_by_role("radio").all_inner_texts() == ["Mosaic", "Figure"]


@pytest.fixture
def narrow(chromium: Browser, server: Server) -> Iterator[Visitor]:
    """A phone: 390 pixels wide, touched."""
    context = chromium.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    yield Visitor(context.new_page(), server.url)
    context.close()


def test_on_a_phone_pictures_stand_one_below_the_other_and_a_tap_chooses(narrow: Visitor) -> None:
    narrow.open(**VIEW, layer=["conv1", "layer3.0.conv1"], c0="17", view1="Overview")
    narrow.page.touchscreen.tap(*point(places(narrow), 60, 33, 112, 112))
    expect(words(narrow).first).to_have_text("row 60, column 33")
    expect(photo_words(narrow)).to_have_text("receptive field 7 × 7 px of the network’s input")
    narrow.idle()
    pictures = [narrow.widget("places-at-0").locator("img"), narrow.widget("photo-0").locator("img")]
    overview = narrow.widget("overview-1").locator("img").all()
    for first, second in ((pictures[0], pictures[1]), (overview[0], overview[1]), (overview[1], overview[2])):
        above, below = first.bounding_box(), second.bounding_box()
        assert above is not None
        assert below is not None
        assert above["y"] + above["height"] < below["y"]
        assert above["x"] == below["x"]
        assert above["width"] >= 240
        assert above["x"] + above["width"] <= 390
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 390


_attempts = count()


def test_the_field_of_a_large_network_is_found_on_demand(visitor: Visitor) -> None:
    row = 60 + next(_attempts)  # what was found once stays found
    visitor.open(model="resnet101", weights="untrained", layer="conv1", c0="17", at0=f"{row},33")
    expect(photo_words(visitor)).to_have_text("Find the receptive field")
    photo_words(visitor).get_by_role("button").click()
    expect(photo_words(visitor)).to_have_text("receptive field 7 × 7 px of the network’s input")
