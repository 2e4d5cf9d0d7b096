"""Whether images are prepared as the weights want it, judged by the inputs themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from hookviz.models.own_recipe import IMAGENET, Normalization
from hookviz.models.preparation import Preparation
from hookviz.sanity.findings import Finding, counted, percent
from hookviz.sanity.input_mistakes import Way, nearest_way
from hookviz.sanity.normalization import normalized, possible_range, unnormalized

SAME = 0.005
"""Distance up to which an input is the recipe's own: libraries resize a little differently."""

LIKE = 0.12
"""Distance up to which an input looks like one of the known ways."""

_SLACK = 0.05
"""Share of the possible range that interpolation may overshoot."""

Misfit = Callable[[Sequence[Tensor]], "float | None"]
"""How badly inputs fit the statistics that the network stored in training; None where it stored none."""


@dataclass(frozen=True, slots=True)
class Looked:
    """The first images of a check: what was fed, and the pictures it was made of where there were pictures."""

    fed: tuple[Tensor, ...]
    pictures: tuple[Image.Image, ...]


def input_findings(looked: Looked, recipe: Preparation | None, misfit: Misfit) -> Iterator[Finding]:
    """What the inputs look like; nothing where they are as they should be, or nothing speaks against it."""
    if not looked.fed:
        return
    yield from _nonfinite(looked.fed)
    if recipe is not None and len(looked.pictures) == len(looked.fed):
        near = nearest_way(looked.fed, looked.pictures, recipe)
        if near is not None:
            yield from _against_recipe(*near)
            return
    normalization = IMAGENET if recipe is None else recipe.normalization
    yield from _by_values(looked.fed, normalization, misfit, known=recipe is not None)


def _nonfinite(fed: Sequence[Tensor]) -> Iterator[Finding]:
    bad = sum(int((~torch.isfinite(one)).sum()) for one in fed)
    if bad:
        yield Finding(
            "error",
            "input",
            "nonfinite_input",
            f"The input itself holds {counted(bad, 'value')} that {'is' if bad == 1 else 'are'} NaN or infinite.",
            "Every layer passes them on.",
            "Look at how the images are read and normalised; a deviation of 0 divides by zero.",
            amount=bad,
            threshold=0,
        )


def _against_recipe(way: Way, distance: float) -> Iterator[Finding]:
    if way.mistakes and distance <= LIKE:
        apart = "" if distance < SAME else f" but for {percent(distance)}"
        yield _mistake(way, f"it is what this mistake makes of the same image{apart}")
    elif distance > LIKE:
        yield Finding(
            "warning",
            "input",
            "unlike_recipe",
            f"The input is not what the weights' own recipe makes of the image: it is {percent(distance)} off, and "
            "like none of the usual mistakes.",
            "Weights work with inputs like those they were trained with.",
            "Compare your preparation with model.prepare(image), step by step.",
            amount=distance,
            threshold=LIKE,
        )
    elif distance > SAME:
        yield Finding(
            "note",
            "input",
            "nearly_recipe",
            f"The input differs from what the weights' own recipe makes of the image by {100 * distance:.1f} %.",
            "Another library or another way to resize does that; it costs a little accuracy.",
            "Use model.prepare(image) where every bit counts.",
            amount=distance,
            threshold=SAME,
        )


def _mistake(way: Way, evidence: str) -> Finding:
    fits = {"nearest", "bilinear", "bicubic"}
    mild = way.values == "normalised" and way.colours == "RGB" and way.fit in fits
    return Finding(
        "note" if mild else "warning",
        "input",
        "input_" + "_".join(_kind(way)),
        f"The image is {' and '.join(way.mistakes)}: {evidence}.",
        "The network then sees other values than it was trained with, and its answer is worth little."
        if not mild
        else "It costs a little accuracy.",
        "Prepare images with model.prepare(image), or with the transforms that belong to the weights.",
    )


def _kind(way: Way) -> list[str]:
    names = {
        "0..1": "not_normalised",
        "0..255": "in_0_255",
        "twice": "normalised_twice",
        "-1..1": "scaled_to_1",
        "BGR": "bgr",
        "squashed": "squashed",
        "not resized": "not_resized",
    }
    return [names.get(one, one) for one in (way.values, way.colours, way.fit) if one not in {*_RIGHT}]


_RIGHT = ("normalised", "RGB", "as meant")


def _by_values(
    fed: Sequence[Tensor], normalization: Normalization, misfit: Misfit, *, known: bool
) -> Iterator[Finding]:
    """By the range of the values, and by what the network stored of its training data in its first batch norms."""
    if any(one.ndim != 4 or one.shape[1] != len(normalization[0]) for one in fed):
        return
    low = min(float(one.min()) for one in fed)
    high = max(float(one.max()) for one in fed)
    if not np.isfinite([low, high]).all():
        return
    way = _by_range(low, high, normalization) if known or high > 16 else None
    if way is not None:
        yield _mistake(way, f"its values go from {low:.3g} to {high:.3g}")
        return
    plain = misfit(fed)
    if plain is None or plain < _NOTICED:
        return
    better = {way: misfit([undo(one) for one in fed]) or 0.0 for way, undo in _undone(normalization).items()}
    best = min(better, key=lambda way: better[way])
    if better[best] < _CLEARLY * plain:
        yield _mistake(
            best,
            "undoing that brings what comes into the batch norms "
            f"{plain / max(better[best], 1e-9):.1f} times closer to the statistics they stored in training",
        )


_NOTICED = 0.3
"""A misfit below which nothing is suspected."""

_CLEARLY = 0.67
"""Share of the misfit that may be left for a mistake to be named."""


def _by_range(low: float, high: float, normalization: Normalization) -> Way | None:
    least, greatest = possible_range(normalization)
    slack = _SLACK * (greatest - least)
    if high > 16 and high <= 256 and low >= -1:
        return Way(values="0..255")
    if low >= -1e-6 and high <= 1 + _SLACK and least < -0.5:
        return Way(values="0..1")
    if low < least - slack or high > greatest + slack:
        mean, std = normalization
        lowest = min((least - one) / spread for one, spread in zip(mean, std, strict=True))
        highest = max((greatest - one) / spread for one, spread in zip(mean, std, strict=True))
        inside = low >= lowest - slack and high <= highest + slack
        return Way(values="twice") if inside else None
    return None


def _undone(normalization: Normalization) -> dict[Way, Callable[[Tensor], Tensor]]:
    """For each mistake, what makes a right input of a wrong one."""
    return {
        Way(values="0..1"): lambda fed: normalized(fed, normalization),
        Way(values="0..255"): lambda fed: normalized(fed / 255, normalization),
        Way(values="twice"): lambda fed: unnormalized(fed, normalization),
        Way(values="-1..1"): lambda fed: normalized((fed + 1) / 2, normalization),
        Way(colours="BGR"): lambda fed: normalized(unnormalized(fed, normalization).flip(1), normalization),
    }
