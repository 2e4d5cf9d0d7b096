from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookviz.bundled import bundled_file
from hookviz.errors import ImageError
from hookviz.images import load_image

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class Sample:
    """A bundled image: what code calls it, what a page calls it, and one line on what it is good for."""

    name: str
    title: str
    description: str


_FILES = {
    Sample(
        "grace_hopper",
        "Grace Hopper",
        "A portrait photograph: faces, cloth, metal and a flag, as pretrained networks know them.",
    ): "grace_hopper.jpg",
    Sample(
        "gratings",
        "Gratings",
        "Stripes in four orientations, from coarse to fine: shows which direction and width a filter answers to.",
    ): "gratings.png",
    Sample(
        "zone_plate",
        "Zone plate",
        "Rings that grow finer outwards: every orientation at every width, and where a network begins to alias.",
    ): "zone_plate.png",
    Sample(
        "checkerboard",
        "Checkerboard",
        "Sharp corners in four sizes: shows edges, strides and what pooling leaves of them.",
    ): "checkerboard.png",
    Sample(
        "colours",
        "Colours",
        "Pure, dark and pale hues with grey ramps: shows which colours a filter tells apart.",
    ): "colours.png",
    Sample("digit_3", "Digit 3", "A handwritten three, bright on black, for the teaching network."): "digit_3.png",
    Sample("digit_8", "Digit 8", "A handwritten eight, bright on black, for the teaching network."): "digit_8.png",
}


def list_samples() -> tuple[Sample, ...]:
    """All bundled images; the first is the one to begin with."""
    return tuple(_FILES)


def load_sample(name: str) -> Image.Image:
    """A bundled image in RGB, read as any uploaded file is.

    Raises:
        ImageError: no sample has that name.
    """
    return load_image(sample_bytes(name))


def sample_bytes(name: str) -> bytes:
    """The bytes of a bundled image's file.

    Raises:
        ImageError: no sample has that name.
    """
    files = {sample.name: file for sample, file in _FILES.items()}
    if name not in files:
        close = difflib.get_close_matches(str(name), files, cutoff=0.4) or list(files)
        raise ImageError(f"There is no sample {name!r}; did you mean {' or '.join(map(repr, close))}?")
    return bundled_file(files[name]).read_bytes()
