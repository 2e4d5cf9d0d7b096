from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits

from hookviz.bundled import bundled_file
from hookviz.models import load_model
from hookviz.models.simple_cnn import SimpleCNN
from scripts import train_simple_cnn

RIGHT_ENLARGED, RIGHT_AS_THEY_ARE, HELD_OUT = 355, 353, 360


def pictures(size: int) -> list[Image.Image]:
    """Every fifth digit of the data set, bright on black, each of its pixels enlarged to a square."""
    enlarge = np.ones((size // 8, size // 8))
    digits = load_digits().images[::5]
    return [
        Image.fromarray(np.kron(np.rint(one * 255 / 16), enlarge).astype(np.uint8)).convert("RGB") for one in digits
    ]


@pytest.mark.parametrize(("size", "right"), [(256, RIGHT_ENLARGED), (8, RIGHT_AS_THEY_ARE)])
def test_stored_weights_have_the_stated_accuracy_on_pictures_held_out(size: int, right: int) -> None:
    model = load_model("simple_cnn", device="cpu")
    expected = torch.from_numpy(load_digits().target[::5])
    with torch.no_grad():
        found = model.module(torch.cat([model.prepare(picture) for picture in pictures(size)])).argmax(dim=1)
    assert len(found) == HELD_OUT
    assert int((found == expected).sum()) == right


@pytest.mark.parametrize("digit", ["3", "8"])
def test_sample_digits_are_read_rightly(digit: str) -> None:
    with Image.open(bundled_file(f"digit_{digit}.png")) as picture:
        (prediction,) = load_model("simple_cnn", device="cpu").predict(picture, k=1)
    assert prediction.label == digit


@pytest.mark.slow
def test_training_again_gives_the_stated_accuracy() -> None:
    shown, digits = train_simple_cnn.digit_pictures()
    smooth = train_simple_cnn.prepared(shown)
    blocky = train_simple_cnn.prepared([train_simple_cnn.enlarged(one) for one in shown])
    unseen = train_simple_cnn.held_out(len(digits))
    network = train_simple_cnn.train(torch.cat([smooth[~unseen], blocky[~unseen]]), digits[~unseen].repeat(2))
    assert train_simple_cnn.correct(network, blocky[unseen], digits[unseen]) == RIGHT_ENLARGED
    assert train_simple_cnn.correct(network, smooth[unseen], digits[unseen]) == RIGHT_AS_THEY_ARE
    stored = load_model("simple_cnn", device="cpu").module.state_dict()
    for name, value in network.state_dict().items():
        torch.testing.assert_close(value, stored[name], rtol=1e-4, atol=1e-6)


def test_training_pictures_are_the_held_out_ones_left_out() -> None:
    unseen = train_simple_cnn.held_out(12)
    assert unseen.nonzero().flatten().tolist() == [0, 5, 10]


def test_every_layer_has_the_documented_shape() -> None:
    shapes = {name: tuple(value.shape) for name, value in SimpleCNN().state_dict().items() if name.endswith("weight")}
    assert shapes == {
        "conv1.weight": (16, 3, 3, 3),
        "conv2.weight": (32, 16, 3, 3),
        "fc1.weight": (128, 2048),
        "fc2.weight": (10, 128),
    }


@pytest.mark.parametrize("size", [(640, 427), (32, 32), (1, 1), (100, 3000)])
def test_any_picture_can_be_prepared(size: tuple[int, int]) -> None:
    assert load_model("simple_cnn", device="cpu").prepare(Image.new("RGB", size)).shape == (1, 3, 32, 32)


def test_it_says_what_it_is() -> None:
    model = load_model("simple_cnn", device="cpu")
    assert (model.name, model.weights, model.trained, model.categories) == (
        "simple_cnn",
        "bundled",
        True,
        ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
    )
    assert model.normalization == ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
