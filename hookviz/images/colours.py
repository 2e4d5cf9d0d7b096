"""Pixels of any mode to RGB, tile by tile so that memory stays small."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageCms

from hookviz.images.levels import DEEP, LevelRule, level_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

Box = tuple[int, int, int, int]

_TILE_PIXELS = 2**20
_BEFORE_RGBA = {"La": "LA", "RGBa": "RGBA"}  # Pillow converts premultiplied modes only to their plain twins


def to_rgb(image: Image.Image, *, reduce: int = 1, sixteen_bit: bool = False) -> tuple[Image.Image, tuple[str, ...]]:
    """The loaded image in RGB with nothing in its ``info``, and a sentence for each thing that was done to its values.

    Args:
        image: of any mode; it is left as it is.
        reduce: whole factor by which both sides shrink, each pixel the mean of ``reduce`` × ``reduce``.
        sixteen_bit: the levels are 16-bit ones although the mode has 32.
    """
    rule = None
    if image.mode in DEEP:
        rule = level_rule(image.mode, (image.crop(box) for box in _boxes(image.size, 1)), sixteen_bit=sixteen_bit)
    result = Image.new("RGB", (-(-image.width // reduce), -(-image.height // reduce)))
    transparent = False
    for box in _boxes(image.size, reduce):
        tile, see_through = _tile_to_rgb(image.crop(box), rule)
        result.paste(tile.reduce(reduce) if reduce > 1 else tile, (box[0] // reduce, box[1] // reduce))
        transparent |= see_through
    notes = (rule.note if rule else "", "Transparent parts are shown over white." if transparent else "")
    return result, tuple(filter(None, notes))


def _boxes(size: tuple[int, int], multiple: int) -> Iterator[Box]:
    """Boxes that cover the size, none much larger than a tile, all starting at multiples of ``multiple``."""
    width, height = size
    columns = min(width, _TILE_PIXELS)
    rows = max(multiple, _TILE_PIXELS // columns // multiple * multiple)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            yield left, top, min(left + columns, width), min(top + rows, height)


def _tile_to_rgb(tile: Image.Image, rule: LevelRule | None) -> tuple[Image.Image, bool]:
    """The tile in RGB, and whether anything in it was transparent."""
    if rule is not None:
        return _deep_to_rgb(tile, rule)
    if tile.mode == "LAB":
        return _lab_to_rgb(tile), False
    if not tile.has_transparency_data:
        return tile.convert("RGB"), False
    return _over_white(tile)


def _over_white(tile: Image.Image) -> tuple[Image.Image, bool]:
    plain = tile.convert(_BEFORE_RGBA[tile.mode]) if tile.mode in _BEFORE_RGBA else tile
    layer = plain.convert("RGBA")
    if layer.getchannel("A").histogram()[255] == layer.width * layer.height:
        return layer.convert("RGB"), False
    return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB"), True


def _deep_to_rgb(tile: Image.Image, rule: LevelRule) -> tuple[Image.Image, bool]:
    stored = np.asarray(tile)
    levels = rule.apply(stored)
    if (key := tile.info.get("transparency")) is None:
        return Image.fromarray(levels).convert("RGB"), False
    see_through = stored == key  # a PNG may name one level that is transparent
    levels[see_through] = 255
    return Image.fromarray(levels).convert("RGB"), bool(see_through.any())


def _lab_to_rgb(tile: Image.Image) -> Image.Image:
    converted: Image.Image = _lab_transform().apply(tile)
    return converted


@cache
def _lab_transform() -> ImageCms.ImageCmsTransform:
    lab, srgb = (ImageCms.ImageCmsProfile(ImageCms.createProfile(space)) for space in ("LAB", "sRGB"))
    return ImageCms.ImageCmsTransform(lab, srgb, "LAB", "RGB")
