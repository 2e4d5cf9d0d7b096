"""Layers that are not plain (1, C, H, W) floats, as a visitor sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, expect
from torch import Tensor

from hookviz.views import mosaic
from tests.browser import expected
from tests.browser.conftest import NewVisitor
from tests.browser.server import Server, started
from tests.browser.visitor import Visitor
from tests.models.unusual_networks import BY_HAND
from tests.nets import clones_at_hook_time

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")

NETWORK = "tests.models.unusual_networks:unusual"


@pytest.fixture(scope="module")
def unusual(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with started(tmp_path_factory.mktemp("unusual"), "--model", NETWORK) as server:
        yield server


def by_hand(layer: str) -> Tensor:
    return BY_HAND[layer](expected.network(NETWORK, "default").prepare(expected.hopper()))


def returned(model: str, layer: str) -> Tensor:
    """By torch's own hooks that clone at once, on a deepcopy."""
    network = expected.network(model)
    with torch.no_grad():
        _, seen = clones_at_hook_time(network.module, network.prepare(expected.hopper()))
    first: Tensor = seen[layer][0]
    return first


def slide(visitor: Visitor, key: str, steps: int) -> Visitor:
    handle = visitor.widget(key).get_by_role("slider")
    handle.focus()
    for _ in range(steps):
        visitor.page.keyboard.press("ArrowRight")
    return visitor.idle()


def enter(visitor: Visitor, key: str, number: int) -> Visitor:
    field = visitor.widget(key).get_by_role("spinbutton")
    field.fill(str(number))
    field.press("Enter")
    return visitor.idle()


def legend(visitor: Visitor, position: int = 0) -> str:
    return visitor.card(position).locator(".hv-legend").inner_text()


def numbers(visitor: Visitor, position: int = 0) -> dict[str, str]:
    pairs: dict[str, str] = (
        visitor.card(position)
        .locator(".hv-numbers > span")
        .evaluate_all(
            "all => Object.fromEntries(all.map(one => [one.firstChild.textContent, one.lastChild.textContent]))"
        )
    )
    return pairs


def test_film_is_looked_at_frame_by_frame(visitor: Visitor, tmp_path: Path) -> None:
    """C28: slice d of channel c is out[0, c, d], in the picture and in what is taken home."""
    out = returned("r3d_18", "layer2")
    frames = out.shape[2]
    assert frames == 8
    visitor.open(model="r3d_18", weights="untrained", layer="layer2")
    assert visitor.mosaic(0) == mosaic(out[0, :, 0].numpy())
    slide(visitor, "slice-0", 4)
    assert visitor.mosaic(0) == mosaic(out[0, :, 4].numpy()) != mosaic(out[0, :, 3].numpy())
    card = visitor.card(0)
    expect(card.get_by_text("Frame", exact=True)).to_be_visible()
    expect(card.get_by_text("of 8", exact=True)).to_be_visible()
    expect(card.get_by_text("Axes read as NCDHW")).to_be_visible()
    assert numbers(visitor)["taken over"] == "all 8 frames"
    assert numbers(visitor)["values"] == f"{out.numel():,}"
    svg = visitor.download(0, "SVG", tmp_path)
    assert svg.name == "layer2.frame-5.svg"
    with np.load(visitor.download(0, "NPZ", tmp_path)) as arrays:
        assert np.array_equal(arrays["values"], out.numpy())


def test_slice_starts_anew_with_another_layer(visitor: Visitor) -> None:
    """C73: slice 8 of a layer that had 8, then a layer that has 2."""
    visitor.open(model="r3d_18", weights="untrained", layer="layer2")
    slide(visitor, "slice-0", 7)
    visitor.add_layer("layer4", "layer4").remove_layer("layer2")
    assert visitor.mosaic(0) == mosaic(returned("r3d_18", "layer4")[0, :, 0].numpy())
    assert visitor.sentences() == []


def test_swin_keeps_its_channels_last(visitor: Visitor) -> None:
    """C12: channel k is out[0, :, :, k], 56×56 and 28×28; not 56 channels of 56×96."""
    visitor.open(model="swin_t", weights="untrained", layer=["features.1.0", "features.3.0"])
    for position, (layer, side, channels) in enumerate((("features.1.0", 56, 96), ("features.3.0", 28, 192))):
        out = returned("swin_t", layer)
        assert out.shape == (1, side, side, channels)
        assert visitor.mosaic(position) == mosaic(
            np.stack([out[0, :, :, channel].numpy() for channel in range(channels)])
        )
        expect(visitor.card(position).get_by_text("Axes read as NHWC")).to_be_visible()


def test_vector_is_a_chart_first_and_a_mosaic_on_request(visitor: Visitor) -> None:
    """C28: the classifier's 1,000 values."""
    out = returned("resnet18", "fc")
    visitor.open(model="resnet18", weights="untrained", layer="fc")
    card = visitor.card(0)
    expect(card.get_by_alt_text("Values of fc as bars, the largest with their numbers")).to_be_visible()
    expect(card.get_by_text("Axes read as NC")).to_be_visible()
    expect(visitor.widget("page-0")).to_have_count(0)
    visitor.press("view-0-bars", "Mosaic")
    assert visitor.mosaic(0) == mosaic(out[0].reshape(-1, 1, 1).numpy())


def test_complex_numbers_are_shown_by_a_face_that_is_named(unusual: Server, new_visitor: NewVisitor) -> None:
    """C30: the magnitude first; no part is dropped in silence."""
    out = by_hand("complex").to(torch.complex128)
    faces = [
        ("Magnitude", "magnitude", out.abs()),
        ("Phase", "phase", out.angle()),
        ("Real", "real part", out.real),
        ("Imaginary", "imaginary part", out.imag),
    ]
    visitor = new_visitor(unusual).open(layer="complex")
    expect(visitor.card(0).locator(".hv-title")).to_contain_text("complex64")
    assert visitor.mosaic(0) == mosaic(out.abs().float()[0].numpy())
    for word, shows, values in faces:
        visitor.press("shows-0-magnitude", word)
        assert visitor.mosaic(0) == mosaic(values.float()[0].numpy())
        assert legend(visitor).startswith(shows)
        assert numbers(visitor)["of the"] == shows
        assert float(numbers(visitor)["max"].replace("−", "-")) == pytest.approx(float(values.max()), rel=1e-3)


@pytest.mark.parametrize(
    ("layer", "note"),
    [
        ("quantized", "Quantized with scale 0.05 and zero point 20."),
        ("per_channel", "Quantized per channel along axis 1: scales 0.01 to 0.03, zero points 0 to 9."),
    ],
)
def test_quantized_numbers_and_the_integers_behind_them(
    layer: str, note: str, unusual: Server, new_visitor: NewVisitor
) -> None:
    """C30."""
    out = by_hand(layer)
    visitor = new_visitor(unusual).open(layer=layer)
    assert visitor.mosaic(0) == mosaic(out.dequantize()[0].numpy())
    expect(visitor.card(0).get_by_text(note)).to_be_visible()
    visitor.press("shows-0-dequantized", "Stored integer")
    assert visitor.mosaic(0) == mosaic(out.int_repr()[0].numpy())
    assert legend(visitor).startswith("stored integer")
    assert numbers(visitor)["max"] == str(int(out.int_repr().max()))
    expect(visitor.card(0).locator(".hv-title")).to_contain_text("quint8")


def test_masks_classes_and_brain_floats_are_what_they_are(unusual: Server, new_visitor: NewVisitor) -> None:
    """C29, C31: false and true by name, integers with every digit, the real dtype in the title."""
    visitor = new_visitor(unusual).open(layer=["mask", "classes", "brain_float"])
    mask, classes, brain = (by_hand(layer) for layer in ("mask", "classes", "brain_float"))
    assert visitor.mosaic(0) == mosaic(mask[0].numpy())
    true = int(mask.sum())
    assert legend(visitor).split("\n") == [f"false {mask.numel() - true}", f"true {true}"]
    assert visitor.mosaic(1) == mosaic(classes.numpy())
    assert numbers(visitor, 1)["max"] == "2,000" == f"{int(classes.max()):,}"
    visitor.press("scale", "Shared")
    assert re.match(r"0\s*2,000$", legend(visitor, 1))
    assert visitor.mosaic(2) == mosaic(brain[0].float().numpy(), scale="shared")
    for position, dtype in enumerate(("bool", "int64", "bfloat16")):
        expect(visitor.card(position).locator(".hv-title")).to_contain_text(dtype)


def test_item_of_a_batch_can_be_chosen(unusual: Server, new_visitor: NewVisitor, tmp_path: Path) -> None:
    """C28: a batch of 2; the numbers are of both, and it says so."""
    out = by_hand("two")
    visitor = new_visitor(unusual).open(layer="two")
    assert visitor.mosaic(0) == mosaic(out[0].numpy())
    enter(visitor, "item-0", 2)
    assert visitor.mosaic(0) == mosaic(out[1].numpy()) != mosaic(out[0].numpy())
    assert numbers(visitor)["taken over"] == "all 2 items"
    assert numbers(visitor)["values"] == str(out.numel())
    assert visitor.download(0, "CSV", tmp_path).name == "two.item-2.csv"


def test_sequences_are_lines_and_one_value_is_a_number(unusual: Server, new_visitor: NewVisitor) -> None:
    """C28."""
    visitor = new_visitor(unusual).open(layer=["conv1d", "scalar", "features"])
    expect(visitor.card(0).get_by_alt_text("Channels of conv1d as lines with numbers and ranges")).to_be_visible()
    visitor.press("view-0-lines", "Mosaic")
    weights = expected.network(NETWORK, "default").module.state_dict()
    batch = expected.network(NETWORK, "default").prepare(expected.hopper())
    out = torch.conv1d(batch.flatten(2), weights["conv1d.weight"], weights["conv1d.bias"])
    assert visitor.mosaic(0) == mosaic(out[0, :, None].numpy())
    shown = visitor.card(1).locator(".hv-value").inner_text()
    assert float(shown) == pytest.approx(float(by_hand("scalar")), rel=1e-6)
    for position, layout in enumerate(("NCL", "scalar", "C")):
        expect(visitor.card(position).get_by_text(f"Axes read as {layout}", exact=True)).to_be_visible()


def test_reader_s_word_on_the_axes_counts(unusual: Server, new_visitor: NewVisitor) -> None:
    """C28: nothing says what three axes are; the reader may."""
    out = by_hand("sequence")
    visitor = new_visitor(unusual).open(layer="sequence")
    expect(visitor.card(0).get_by_text("assumed: nothing in the network says so")).to_be_visible()
    assert visitor.mosaic(0) == mosaic(out.numpy())
    visitor.card(0).get_by_text("Axes read as NLC").click()
    visitor.page.get_by_role("radio", name=re.compile("^NCL")).locator("xpath=ancestor::label").click()
    visitor.idle()
    visitor.page.keyboard.press("Escape")
    expect(visitor.card(0).get_by_alt_text("Channels of sequence as lines with numbers and ranges")).to_be_visible()


def test_tokens_lie_on_the_grid_that_the_reader_gives(unusual: Server, new_visitor: NewVisitor) -> None:
    """C12: 12 tokens of 50 features on 3 × 4 are 50 maps of 3 × 4."""
    out = by_hand("sequence")
    visitor = new_visitor(unusual).open(layer="sequence")
    visitor.card(0).get_by_text("Axes read as NLC").click()
    visitor.page.get_by_role("radio", name=re.compile("^NLC")).locator("xpath=ancestor::label").click()
    visitor.idle()
    for label, number in (("Rows of the grid (0: one table)", 3), ("Columns of the grid", 4)):
        field = visitor.page.get_by_role("spinbutton", name=label)
        field.fill(str(number))
        field.press("Enter")
        visitor.idle()
    assert visitor.mosaic(0) == mosaic(out[0].reshape(3, 4, 50).permute(2, 0, 1).numpy())
