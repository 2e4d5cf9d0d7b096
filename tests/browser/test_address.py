from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from tests.browser import expected, pictures
from tests.browser.conftest import NewVisitor
from tests.browser.visitor import Visitor


def test_upload_layers_sort_and_model_lead_to_an_address_that_restores_the_view(new_visitor: NewVisitor) -> None:
    """C04, C79: a phone's photo stands upright, and the preview is the prepared tensor within 1/255."""
    photo = pictures.phone_photo()
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(photo))).convert("RGB")
    assert upright.size == (240, 480)
    resnet = expected.network("resnet18")

    here = new_visitor().open(model="resnet18", weights="untrained", layer="conv1").upload("IMG_0001.JPG", photo)
    seen = expected.pixels(here.input_picture())
    assert seen[20, 112].tolist() == [254, 0, 0]
    assert seen[203, 112].tolist() == [0, 0, 254]
    assert np.abs(seen / 255 - expected.seen(resnet, upright)).max() <= 1 / 255

    here.add_layer("layer2.0.conv1", "layer2.0.conv1").add_layer("3.1.bn2", "layer3.1.bn2").remove_layer("conv1")
    here.select("sort", "Spread (sd), largest first").select("cmap", "magma").press("scale", "Symmetric")
    here.assert_cards("layer2.0.conv1", "layer3.1.bn2")
    view = {"by": lambda one: one.astype(np.float64).std(), "cmap": "magma", "scale": "symmetric"}
    for position, layer in enumerate(("layer2.0.conv1", "layer3.1.bn2")):
        assert here.mosaic(position) == expected.layer_picture(resnet, upright, layer, **view)

    here.select("model", "resnet34").select("weights", "untrained (seeded)")
    here.assert_cards("layer2.0.conv1", "layer3.1.bn2")
    assert here.mosaic(0) == expected.layer_picture(expected.network("resnet34"), upright, "layer2.0.conv1", **view)
    assert here.address == {
        "model": ["resnet34"],
        "weights": ["untrained"],
        "layer": ["layer2.0.conv1", "layer3.1.bn2"],
        "sort": ["spread"],
        "scale": ["symmetric"],
        "cmap": ["magma"],
        "upload": ["1"],
    }

    there = new_visitor().go(here.page.url)
    there.assert_cards("layer2.0.conv1", "layer3.1.bn2")
    assert there.sentences() == [
        "An uploaded file cannot be part of an address: choose the file again; meanwhile a sample is shown."
    ]
    there.upload("the same.jpg", photo)
    assert there.sentences() == []
    assert there.address == here.address
    assert [there.mosaic(0), there.mosaic(1)] == [here.mosaic(0), here.mosaic(1)]
    assert there.input_picture() == here.input_picture()


@pytest.mark.slow
def test_address_of_a_sample_restores_the_view_in_a_fresh_browser(new_visitor: NewVisitor) -> None:
    here = new_visitor().open(model="resnet18", weights="untrained", layer=["layer1.0.conv1", "layer4.1.conv2"])
    here.press("sample", "Zone plate").select("sort", "Maximum, largest first").select("cmap", "gray")
    there = new_visitor().go(here.page.url)
    there.assert_cards("layer1.0.conv1", "layer4.1.conv2")
    assert there.page.url == here.page.url
    assert [there.mosaic(0), there.mosaic(1)] == [here.mosaic(0), here.mosaic(1)]
    assert there.channel_numbers(0) == here.channel_numbers(0) != list(range(64))


def test_true_channel_numbers_stay_with_their_channels_when_sorted(visitor: Visitor) -> None:
    visitor.open(model="resnet18", weights="untrained", layer="conv1", sort="mean")
    maps = expected.output(expected.network("resnet18"), expected.hopper(), "conv1")[0].double()
    means = maps.mean((1, 2)).tolist()
    assert visitor.channel_numbers(0) == sorted(range(64), key=lambda channel: -means[channel])


def test_unknown_values_in_an_address_are_left_out_with_one_sentence_each(visitor: Visitor) -> None:
    visitor.open(model="resnet18", weights="untrained", layer=["conv1", "layer9"], cmap="<b>jet</b>", sample="nobody")
    visitor.assert_cards("conv1")
    assert visitor.sentences() == [
        "The address asks for sample “nobody”, which there is not; grace_hopper is shown instead.",
        "The address asks for cmap “<b>jet</b>”, which there is not; viridis is shown instead.",
        "The address asks for layer “layer9”, which resnet18 does not have; it is left out.",
    ]
    assert visitor.address == {"model": ["resnet18"], "weights": ["untrained"], "layer": ["conv1"]}
    visitor.select("cmap", "magma")
    assert visitor.sentences() == []
