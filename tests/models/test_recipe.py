"""C10, C66: the network's input is what the weights' own transforms make of the image, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
import torchvision
from PIL import Image
from timm.data import create_transform
from torchvision.transforms import functional

from hookviz.errors import ImageError
from hookviz.models import Recipe, load_model
from hookviz.models.torchvision_models import architecture

ENTRIES = [
    (name, entry)
    for name in torchvision.models.list_models(module=torchvision.models)
    for entry in torchvision.models.get_model_weights(name)
]


def settings(entry: Any) -> tuple[object, ...]:
    transform = entry.transforms()
    return (
        transform.resize_size[0],
        transform.crop_size[0],
        transform.interpolation.value,
        *transform.mean,
        *transform.std,
    )


ONE_OF_EACH = list({settings(entry): (name, entry) for name, entry in ENTRIES}.values())


def assert_prepares_as_torchvision(name: str, entry: Any, image: Image.Image) -> None:
    recipe = architecture(name).find(entry.name).recipe
    assert torch.equal(recipe.prepare(image), entry.transforms()(image).unsqueeze(0))


@pytest.mark.parametrize(("name", "entry"), ONE_OF_EACH, ids=str)
def test_each_recipe_of_torchvision_is_exact(name: str, entry: Any, photo: Image.Image) -> None:
    """C10: 115 entries have some thirty different recipes."""
    assert_prepares_as_torchvision(name, entry, photo)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=str)
def test_every_entry_of_torchvision_is_exact(name: str, entry: Any, photo: Image.Image) -> None:
    """C10: all 115."""
    assert_prepares_as_torchvision(name, entry, photo)


def test_bundled_efficientnet_prepares_as_timm_does(photo: Image.Image) -> None:
    """C10: timm's own transform for its own configuration."""
    config = timm.models.get_pretrained_cfg("tf_efficientnet_lite0")
    transform = create_transform(
        input_size=config.input_size,
        interpolation=config.interpolation,
        mean=config.mean,
        std=config.std,
        crop_pct=config.crop_pct,
    )
    prepared = load_model("efficientnet_lite0", None, "cpu").prepare(photo)
    assert torch.equal(prepared, transform(photo).unsqueeze(0))
    assert prepared.shape == (1, 3, 224, 224)


def test_one_pixel_checkerboard_becomes_gray() -> None:
    """C66: resizing without antialiasing leaves a standard deviation of 42 levels."""
    board = np.indices((1024, 1024)).sum(axis=0) % 2 * 255
    image = Image.fromarray(board.astype(np.uint8)).convert("RGB")
    pixels = np.asarray(architecture("resnet18").default.recipe.view(image), dtype=np.float64)
    assert pixels.shape == (224, 224, 3)
    assert pixels.std() < 2


@pytest.mark.parametrize("size", [(640, 427), (427, 640), (224, 224), (31, 900), (900, 31), (1, 1), (257, 256)])
def test_view_is_what_is_normalised_and_crop_box_is_where_it_lies(size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    recipe = architecture("resnet50").default.recipe
    mean, std = recipe.normalization
    levels = np.asarray(recipe.view(image), dtype=np.float32).transpose(2, 0, 1) / np.float32(255)
    channel = [np.asarray(values, dtype=np.float32).reshape(3, 1, 1) for values in (mean, std)]
    expected = (levels - channel[0]) / channel[1]
    np.testing.assert_array_equal(recipe.prepare(image)[0].numpy(), expected)
    assert recipe.normalization == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # By hand: 256 x 512 after resizing, 224 of it kept: 16 and 144 off, twice that in the original.
        ((512, 1024), (32.0, 288.0, 480.0, 736.0)),
        ((1024, 512), (288.0, 32.0, 736.0, 480.0)),
        ((256, 256), (16.0, 16.0, 240.0, 240.0)),
        # 256 x 257: the half pixel of 16.5 is rounded to the even 16.
        ((257, 256), (16.0, 16.0, 240.0, 240.0)),
        # 256 x 259: 17.5 is rounded to the even 18.
        ((256, 259), (16.0, 18.0, 240.0, 242.0)),
    ],
)
def test_crop_box_in_the_pixels_of_the_image(size: tuple[int, int], expected: tuple[float, ...]) -> None:
    recipe = architecture("resnet18").default.recipe
    assert recipe.crop_box(Image.new("RGB", size)) == expected


@pytest.mark.parametrize("size", [(640, 427), (427, 640), (300, 301)])
def test_crop_box_covers_the_view(size: tuple[int, int]) -> None:
    """A picture whose pixels say where they lie: the middle of the view shows the middle of the box."""
    columns, rows = np.meshgrid(np.linspace(0, 255, size[0]), np.linspace(0, 255, size[1]))
    image = Image.fromarray(np.stack([columns, rows, rows], axis=2).astype(np.uint8))
    recipe = architecture("resnet18").default.recipe
    left, upper, right, lower = recipe.crop_box(image)
    view = np.asarray(recipe.view(image), dtype=np.float64)
    for x, y in ((0, 0), (223, 0), (0, 223), (112, 112)):
        at = left + (x + 0.5) * (right - left) / 224, upper + (y + 0.5) * (lower - upper) / 224
        expected = [at[0] * 255 / size[0], at[1] * 255 / size[1]]
        np.testing.assert_allclose(view[y, x, :2], expected, atol=1.5)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK", "1", "LA"])
def test_other_modes_are_read_as_rgb(mode: str, photo: Image.Image) -> None:
    recipe = architecture("resnet18").default.recipe
    image = photo.convert(mode)
    assert torch.equal(recipe.prepare(image), recipe.prepare(image.convert("RGB")))


def test_recipe_from_numbers() -> None:
    recipe = Recipe.of(resize=40, crop=30, mean=(0.1, 0.2, 0.3), std=(1.0, 2.0, 4.0), interpolation="nearest")
    image = Image.new("RGB", (80, 80), (255, 0, 51))
    expected = functional.normalize(
        torch.tensor([1.0, 0.0, 0.2]).view(3, 1, 1).expand(3, 30, 30), [0.1, 0.2, 0.3], [1.0, 2.0, 4.0]
    )
    assert torch.equal(recipe.prepare(image)[0], expected)
    assert recipe.input_size == (30, 30)


def test_an_endless_strip_is_refused_in_one_sentence() -> None:
    recipe = architecture("resnet18").default.recipe
    with pytest.raises(ImageError, match=r"^The image is 1 x 100000 pixels, too long and thin to be resized"):
        recipe.prepare(Image.new("RGB", (1, 100_000)))


def test_something_else_than_an_image_is_refused_in_one_sentence() -> None:
    recipe: Any = architecture("resnet18").default.recipe
    with pytest.raises(ImageError, match=r"^Expected a PIL image, got ndarray; read a file with load_image"):
        recipe.prepare(np.zeros((10, 10, 3)))
