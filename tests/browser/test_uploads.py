from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser import expected, pictures
from tests.browser.visitor import Visitor

VIEW = {"model": "resnet18", "weights": "untrained", "layer": "conv1"}

BAD_FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "truncated": ("half.jpg", lambda: pictures.phone_photo()[:2000]),
    "empty": ("empty.png", lambda: b""),
    "text": ("text.png", lambda: b"not a picture at all\n" * 20),
    "bomb": ("bomb.png", pictures.bomb),
    "heic": ("IMG_0002.HEIC", pictures.heic),
}


@pytest.fixture
def looking(visitor: Visitor) -> Visitor:
    return visitor.open(**VIEW)


def test_bad_files_get_one_sentence_and_clear_the_previous_result(looking: Visitor, new_log: Callable[[], str]) -> None:
    """C67, C68, C70: half a JPEG, nothing, text, 400 million pixels, HEIC; afterwards a good file works."""
    said: dict[str, str] = {}
    for kind, (name, make) in BAD_FILES.items():
        looking.upload(name, make())
        (said[kind],) = looking.sentences()
        assert looking.titles() == []
        assert looking.predictions() == []
        expect(looking.page.locator(".hv-saw")).to_have_count(0)
    assert all(one.endswith((".", "?")) and "\n" not in one and "Traceback" not in one for one in said.values())
    assert len(set(said.values())) == len(BAD_FILES)
    assert "20000 × 20000" in said["bomb"]
    assert "150,000,000" in said["bomb"]
    assert "HEIC" in said["heic"]
    assert new_log().count("Traceback") >= 1  # the page has the sentence, the log the details
    looking.upload("good.png", pictures.encoded(pictures.noise(1), "PNG"))
    assert looking.sentences() == []
    assert looking.mosaic(0) == expected.layer_picture(expected.network("resnet18"), pictures.noise(1), "conv1")


def test_animated_gif_shows_its_first_frame_and_says_so(looking: Visitor) -> None:
    """C69: red, then blue; a still of the first, and a sentence."""
    looking.upload("moving.gif", pictures.animated_gif())
    assert set(map(tuple, expected.pixels(looking.input_picture()).reshape(-1, 3).tolist())) == {pictures.RED}
    expect(looking.page.get_by_text("2 frames")).to_have_count(1)


@pytest.mark.parametrize("name", ["IMG_0001.JPG", "photo.jpeg.png", "noextension"])
def test_files_are_told_by_content_and_never_by_name(looking: Visitor, name: str) -> None:
    """C72: upper case, a lying extension, none at all; each holds a JPEG."""
    image = Image.new("RGB", (64, 64), pictures.BLUE)
    looking.upload(name, pictures.encoded(image, "JPEG", quality=95))
    assert looking.sentences() == []
    assert expected.pixels(looking.input_picture())[112, 112].tolist() == [0, 0, 254]


def test_upload_is_read_again_on_every_rerun(looking: Visitor) -> None:
    """C71: five changes of layers after an upload, the same picture each time."""
    image = pictures.noise(71)
    looking.upload("noise.png", pictures.encoded(image, "PNG"))
    before = looking.input_picture()
    for layer in ("bn1", "layer1.0.conv1", "layer2.0.conv2", "avgpool", "layer4.1.conv2"):
        looking.add_layer(layer, layer)
        assert looking.input_picture() == before
    model = expected.network("resnet18")
    assert looking.mosaic(5) == expected.layer_picture(model, image, "layer4.1.conv2")


def test_red_stays_red(looking: Visitor) -> None:
    """C80: the left half pure red; channel 0 is the large one there, and the preview is red."""
    looking.upload("red.png", pictures.encoded(pictures.halves(pictures.RED, pictures.BLACK, (256, 256)), "PNG"))
    seen = expected.pixels(looking.input_picture())
    assert np.unique(seen[:, :100].reshape(-1, 3), axis=0).tolist() == [[255, 0, 0]]
    assert np.unique(seen[:, -100:].reshape(-1, 3), axis=0).tolist() == [[0, 0, 0]]


def test_sample_pressed_after_an_upload_replaces_it(looking: Visitor) -> None:
    sample = looking.input_picture()
    looking.upload("white.png", pictures.plain(pictures.WHITE)).press("sample", "Gratings")
    assert "upload" not in looking.address
    looking.press("sample", "Grace Hopper")
    assert looking.input_picture() == sample


def test_taking_the_file_away_shows_the_sample_again(looking: Visitor) -> None:
    sample = looking.input_picture()
    looking.upload("white.png", pictures.plain(pictures.WHITE))
    assert looking.input_picture() != sample
    looking.widget("upload").get_by_role("button", name="Remove").click()
    looking.idle()
    assert looking.input_picture() == sample
    assert "upload" not in looking.address


def test_file_larger_than_the_limit_is_refused_before_it_is_sent(looking: Visitor, tmp_path: Path) -> None:
    sample = looking.input_picture()
    huge = tmp_path / "huge.png"
    huge.write_bytes(bytes(50 * 2**20 + 1))
    looking.widget("upload").locator("input[type=file]").set_input_files(huge)
    looking.idle()
    expect(looking.widget("upload").get_by_text("must be 50.0MB or smaller")).to_have_count(1)
    assert looking.input_picture() == sample
