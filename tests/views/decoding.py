"""Pillow's reading of a picture, the independent side of every comparison."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.views import Mosaic


def rgb(png: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def alpha(png: bytes) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))[..., 3]


def entries(png: bytes) -> npt.NDArray[np.uint8]:
    image = Image.open(io.BytesIO(png))
    assert image.mode == "P"
    return np.asarray(image)


def tile_entries(picture: Mosaic, position: int) -> npt.NDArray[np.uint8]:
    left, top = picture.geometry.corner(position)
    height, width = picture.geometry.tile_height, picture.geometry.tile_width
    return entries(picture.png)[top : top + height, left : left + width]
