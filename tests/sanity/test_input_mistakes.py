from __future__ import annotations

import pytest
import torch
from PIL import Image
from torchvision.transforms import functional as transforms

from hookviz import load_model, load_sample
from hookviz.sanity.input_mistakes import RIGHT, Way, every_way, nearest_way, prepared

IMAGE = load_sample("grace_hopper")


@pytest.fixture(scope="module")
def recipe() -> object:
    return load_model("resnet18", None, "cpu").recipe


def test_each_way_is_what_torchvision_makes_of_it(recipe: object) -> None:
    from torchvision.models import ResNet18_Weights

    right = ResNet18_Weights.DEFAULT.transforms()
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    cropped = transforms.center_crop(transforms.resize(IMAGE, [256]), [224])
    unit = transforms.to_tensor(cropped)
    squashed = transforms.to_tensor(IMAGE.resize((224, 224), Image.Resampling.BILINEAR))
    middle = transforms.to_tensor(transforms.center_crop(IMAGE, [224]))
    expected = {
        RIGHT: right(IMAGE),
        Way(values="0..1"): unit,
        Way(values="0..255"): unit * 255,
        Way(values="-1..1"): unit * 2 - 1,
        Way(values="twice"): transforms.normalize(transforms.normalize(unit, mean, std), mean, std),
        Way(colours="BGR"): transforms.normalize(unit[[2, 1, 0]], mean, std),
        Way(fit="squashed"): transforms.normalize(squashed, mean, std),
        Way(fit="not resized"): transforms.normalize(middle, mean, std),
    }
    made = prepared(IMAGE, recipe, every_way())  # type: ignore[arg-type]
    for way, tensor in expected.items():
        torch.testing.assert_close(made[way][0], tensor, rtol=1e-5, atol=1e-4, msg=way.title)


def test_every_combination_is_recognised(recipe: object) -> None:
    made = prepared(IMAGE, recipe, every_way())  # type: ignore[arg-type]
    assert len(made) == 50  # six fits, of which bilinear is the recipe's own, two orders of colours, five ranges
    for way, batch in made.items():
        found = nearest_way([batch], [IMAGE], recipe)  # type: ignore[arg-type]
        assert found is not None
        assert found[0] == way
        assert found[1] == pytest.approx(0.0, abs=1e-6)


def test_a_grey_image_is_not_called_bgr(recipe: object) -> None:
    grey = IMAGE.convert("L").convert("RGB")
    batch = prepared(grey, recipe, [RIGHT])[RIGHT]  # type: ignore[arg-type]
    found = nearest_way([batch], [grey], recipe)  # type: ignore[arg-type]
    assert found is not None
    assert found[0] == RIGHT


def test_an_input_like_none_of_them_is_far_from_all(recipe: object) -> None:
    noise = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    found = nearest_way([noise], [IMAGE], recipe)  # type: ignore[arg-type]
    assert found is not None
    assert found[1] > 0.3


def test_another_shape_cannot_be_compared(recipe: object) -> None:
    assert nearest_way([torch.zeros(1, 3, 200, 200)], [IMAGE], recipe) is None  # type: ignore[arg-type]


def test_small_images_cannot_be_cropped_without_resizing(recipe: object) -> None:
    small = IMAGE.resize((100, 120))
    assert Way(fit="not resized") not in prepared(small, recipe, every_way())  # type: ignore[arg-type]
