"""Clips and pairs of frames, from the file to the picture of what the network saw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect
from torchvision import models

from tests.browser import expected, pictures
from tests.browser.visitor import Visitor


def walking_square(frames: int) -> list[Image.Image]:
    """A white square that goes right by eight pixels a frame."""
    empty = [Image.new("RGB", (160, 128), (40, 40, 40)) for _ in range(frames)]
    for step, frame in enumerate(empty):
        frame.paste((255, 255, 255), (8 * step, 40, 8 * step + 48, 88))
    return empty


def test_every_frame_of_a_gif_goes_into_a_video_network(visitor: Visitor) -> None:
    frames = walking_square(4)
    film = pictures.encoded(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    visitor.open(model="mc3_18", weights="untrained", layer="stem.0")
    expect(visitor.page.get_by_text("the picture stands still for 16 frames")).to_have_count(1)
    visitor.upload("walk.gif", film)
    expect(visitor.page.get_by_text("The 4 frames are shown longer, so that they make 16")).to_have_count(1)
    model = expected.network("mc3_18")
    preset = models.video.MC3_18_Weights.DEFAULT.transforms()
    clip = torch.stack([torch.from_numpy(np.array(frames[step * 4 // 16])).permute(2, 0, 1) for step in range(16)])
    with torch.no_grad():
        value = model.module.get_submodule("stem.0")(preset(clip)[None])
    assert visitor.mosaic(0) == expected.picture(value[:, :, 0])  # the first of the layer's frames


def test_two_frames_are_compared(visitor: Visitor) -> None:
    first, second = walking_square(2)
    visitor.open(model="raft_small", weights="untrained", layer="feature_encoder.convnormrelu.0")
    visitor.upload("first.png", pictures.encoded(first, "PNG"))
    expect(visitor.page.get_by_text("the picture is compared with itself")).to_have_count(1)
    visitor.upload("second.png", pictures.encoded(second, "PNG"), to="second-frame")
    expect(visitor.page.get_by_text("the picture is compared with itself")).to_have_count(0)
    assert visitor.sentences() == []
    model = expected.network("raft_small")
    pair = (
        torch.stack([torch.from_numpy(np.array(one)).permute(2, 0, 1) for one in (first, second)]).float() / 127.5 - 1
    )
    with torch.no_grad():
        value = model.module.get_submodule("feature_encoder.convnormrelu.0")(pair)
    assert visitor.mosaic(0) == expected.picture(value)
    visitor.upload("small.png", pictures.plain(pictures.RED), to="second-frame")
    assert visitor.sentences() == ["The frames are 160 x 128 and 300 x 300 pixels; both must have one size."]


@pytest.mark.parametrize("model", ["resnet18", "mc3_18"])
def test_film_is_named_where_it_cannot_be_read(visitor: Visitor, model: str) -> None:
    visitor.open(model=model, weights="untrained").upload("film.mp4", b"\0\0\0\x18ftypisom" + bytes(4096))
    (sentence,) = visitor.sentences()
    assert "ideo" in sentence or "film" in sentence.lower()


def test_order_scale_and_colours_outlast_an_empty_choice_of_layers_and_the_other_page(visitor: Visitor) -> None:
    """They stand above the cards, and Streamlit forgets what is not on the page."""
    visitor.open(model="simple_cnn", layer="conv1")
    visitor.press("scale", "Shared")
    visitor.select("cmap", "magma")
    visitor.remove_layer("conv1")
    assert visitor.sentences() == ["Choose a layer above to see what it computed."]
    visitor.page.get_by_role("link", name="Hooks").click()
    visitor.idle()
    assert visitor.sentences() == []
    visitor.page.get_by_role("link", name="Explore").click()
    visitor.idle().add_layer("conv2", "conv2")
    assert (visitor.address["scale"], visitor.address["cmap"]) == (["shared"], ["magma"])
    visitor.assert_no_broken_picture()
