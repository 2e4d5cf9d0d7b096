"""The ways in which images are commonly prepared wrongly, and how to tell which of them an input looks like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms import functional as transforms

from hookviz.errors import HookvizError
from hookviz.models.own_recipe import Normalization
from hookviz.models.preparation import Preparation, as_rgb
from hookviz.sanity.normalization import normalized

Fit: TypeAlias = Literal["as meant", "squashed", "not resized", "nearest", "bilinear", "bicubic"]
Colours: TypeAlias = Literal["RGB", "BGR"]
Values: TypeAlias = Literal["normalised", "0..1", "0..255", "twice", "-1..1"]

FITS: tuple[Fit, ...] = ("as meant", "squashed", "not resized", "nearest", "bilinear", "bicubic")
COLOURS: tuple[Colours, ...] = ("RGB", "BGR")
VALUES: tuple[Values, ...] = ("normalised", "0..1", "0..255", "twice", "-1..1")

_RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way to prepare an image: how it is fitted into the input, in which order its colours, and in which range."""

    fit: Fit = "as meant"
    colours: Colours = "RGB"
    values: Values = "normalised"

    @property
    def is_right(self) -> bool:
        """Whether this is what the recipe says."""
        return self == RIGHT

    @property
    def mistakes(self) -> list[str]:
        """What is wrong with it, each as it completes "the image is ..."."""
        said = {
            "squashed": "squashed into the input's shape instead of cropped",
            "not resized": "cropped without being resized",
            "nearest": "resized by nearest neighbour",
            "bilinear": "resized with bilinear interpolation in place of the recipe's",
            "bicubic": "resized with bicubic interpolation in place of the recipe's",
            "BGR": "fed with its colours in the order BGR",
            "0..1": "not normalised (values from 0 to 1)",
            "0..255": "not scaled and not normalised (values from 0 to 255)",
            "twice": "normalised twice",
            "-1..1": "scaled to -1..1 instead of normalised with the weights' own mean and deviation",
        }
        return [said[one] for one in (self.values, self.colours, self.fit) if one in said]

    @property
    def title(self) -> str:
        """A few words for a table."""
        short = {
            "not resized": "cropped, not resized",
            "0..1": "no normalisation",
            "twice": "normalised twice",
            "nearest": "nearest neighbour",
            "bilinear": "bilinear interpolation",
            "bicubic": "bicubic interpolation",
            "0..255": "values 0..255",
            "-1..1": "scaled to −1..1",
        }
        parts = [one for one in (self.values, self.colours, self.fit) if one not in {"normalised", "RGB", "as meant"}]
        return ", ".join(short.get(one, one) for one in parts) or "as the weights want it"


RIGHT = Way()

SINGLE_MISTAKES: tuple[Way, ...] = (
    *(Way(values=values) for values in VALUES[1:]),
    Way(colours="BGR"),
    *(Way(fit=fit) for fit in FITS[1:]),
)
"""One thing wrong at a time."""


def prepared(image: Image.Image, recipe: Preparation, ways: Iterable[Way]) -> dict[Way, Tensor]:
    """The input (1, 3, H, W) that each way makes of an image; without ways that come to the same for this recipe.

    The right one is the recipe's own. Ways that cannot be for this image, such as a crop out of a smaller one, are left
    out.

    Raises:
        ImageError: not a PIL image, or one far too long and thin.
    """
    right = recipe.prepare(image)
    if right.ndim != 4 or right.shape[:2] != (1, 3):
        return {RIGHT: right}
    found = {RIGHT: right}
    fitted = {fit: _unit(pixels) for fit in FITS if (pixels := _fit(image, recipe, fit)) is not None}
    if not torch.allclose(_valued(fitted["as meant"], Way(), recipe.normalization), right, atol=0.02):
        return found  # a recipe of another kind
    for way in ways:
        if not way.is_right and way.fit in fitted:
            made = _valued(fitted[way.fit], way, recipe.normalization)
            if not any(torch.equal(made, other) for other in found.values()):
                found[way] = made
    return found


def every_way() -> list[Way]:
    """All combinations."""
    return [Way(*parts) for parts in product(FITS, COLOURS, VALUES)]


def nearest_way(fed: Sequence[Tensor], images: Sequence[Image.Image], recipe: Preparation) -> tuple[Way, float] | None:
    """The way that makes inputs most like those fed, and how far off it is (0 is the same); None where none compares.

    The distance is the root mean square of the differences over that of the inputs, both over all images together. Of
    ways equally near the first is taken, so that a grey image is not called BGR.
    """
    apart: dict[Way, float] = {}
    power = 0.0
    for batch, image in zip(fed, images, strict=True):
        wide = batch.detach().cpu().double()
        ways = prepared(image, recipe, every_way())
        if wide.shape != ways[RIGHT].shape:
            return None
        power += float(wide.square().sum())
        near = {way: float((made.double() - wide).square().sum()) for way, made in ways.items()}
        # A way that was left out came to the same as an earlier one: its distance is that one's.
        apart = {way: apart.get(way, 0.0) + near.get(way, _same_as_earlier(near, way)) for way in every_way()}
    if not power:
        return None
    best = min(apart, key=lambda way: (round(apart[way] / power, 12), every_way().index(way)))
    return best, float((apart[best] / power) ** 0.5)


def _same_as_earlier(near: dict[Way, float], way: Way) -> float:
    simpler = [Way(way.fit, "RGB", way.values), Way("as meant", way.colours, way.values), Way(values=way.values)]
    return next((near[one] for one in simpler if one in near), max(near.values()))


def _fit(image: Image.Image, recipe: Preparation, fit: Fit) -> Image.Image | None:
    picture, view = as_rgb(image), recipe.view(image)
    if fit == "as meant":
        return view
    if fit == "squashed":
        return picture.resize(view.size, Image.Resampling.BILINEAR)
    if fit == "not resized":
        left, upper = (picture.width - view.width) // 2, (picture.height - view.height) // 2
        inside = left >= 0 and upper >= 0
        return picture.crop((left, upper, left + view.width, upper + view.height)) if inside else None
    box = recipe.crop_box(image)
    if box[0] < 0 or box[1] < 0 or box[2] > picture.width or box[3] > picture.height:
        return None
    return picture.resize(view.size, _RESAMPLING[fit], box=box)


def _unit(pixels: Image.Image) -> Tensor:
    unit: Tensor = transforms.to_tensor(pixels)
    return unit.unsqueeze(0)


def _valued(unit: Tensor, way: Way, normalization: Normalization) -> Tensor:
    coloured = unit if way.colours == "RGB" else unit.flip(1)
    made = {
        "normalised": lambda: normalized(coloured, normalization),
        "0..1": lambda: coloured,
        "0..255": lambda: coloured * 255,
        "twice": lambda: normalized(normalized(coloured, normalization), normalization),
        "-1..1": lambda: coloured * 2 - 1,
    }
    if way.values not in made:
        raise HookvizError(f"There is no way to give values called {way.values!r}; choose one of {', '.join(VALUES)}.")
    return made[way.values]()
