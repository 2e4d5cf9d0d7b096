from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

from PIL import Image, ImageFile

from hookviz.errors import ImageError
from hookviz.images.colours import to_rgb
from hookviz.images.formats import KEPT_PIXELS, broken, check_size, identify
from hookviz.images.frames import frames_note
from hookviz.images.sources import ImageSource, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

_ORIENTATION_TAG = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_TURNED = "It is turned upright as its EXIF orientation says."
_STEP_OF_LEVELS = {"L;2": 85, "L;4": 17}


@dataclass(frozen=True, slots=True, eq=False)
class ImageReading:
    """An image as it will be used, and what was done to get there.

    ``image`` is RGB and upright. ``format`` is Pillow's name of the file format (``"PNG"``), ``""`` for an image that
    was never a file. ``original_size`` is (width, height) upright, before any reduction. ``original_mode`` is Pillow's
    mode before the conversion to RGB. ``notes`` has one sentence for each thing a reader should know: other frames, a
    turn, levels, transparency, a reduction.
    """

    image: Image.Image
    format: str
    original_size: tuple[int, int]
    original_mode: str
    notes: tuple[str, ...] = ()


def load_image(source: ImageSource | Image.Image) -> Image.Image:
    """The picture in a file, upright and in RGB; see :func:`read_image`, which also says what was done to it."""
    return read_image(source).image


def read_image(source: ImageSource | Image.Image) -> ImageReading:
    """Read one picture: from a path, the bytes of a file, a binary file (left open, its position kept) or a PIL image.

    What it is, is decided by its content alone. Of several frames the first is taken. The picture is turned as its EXIF
    orientation says. Transparent parts are laid over white. 16-bit levels are divided by 257; 32-bit integers and
    floats within 0..1 are multiplied by 255, within 0..255 kept, and otherwise stretched from minimum to maximum.
    Embedded colour profiles are ignored, as torchvision and timm ignore them. Up to 67 million pixels nothing is
    resized; larger pictures are halved, each pixel the mean of four, or refused where they would need more than 1 GB
    of memory.

    Raises:
        ImageError: one sentence that says why there is no picture and what to do.
    """
    if isinstance(source, Image.Image):
        return _from_picture(source)
    with open_source(source) as stream:
        return _from_stream(stream)


def _from_picture(source: Image.Image) -> ImageReading:
    check_size(source.size, source.format or "", source.mode)
    with _one_sentence(source.format or ""):
        return _turned(*_decode(source))


def _from_stream(stream: BinaryIO) -> ImageReading:
    frames = frames_note(stream)
    image = identify(stream)
    with _one_sentence(image.format or ""):
        _fix_transparent_level(image)
        original_size = image.size
        if image.width * image.height > KEPT_PIXELS:
            image.draft(image.mode, (image.width // 2, image.height // 2))  # JPEG alone can; others ignore it
        reading, orientation = _decode(image, original_size)
        del image  # a decoder may hold as much again as its pixels
        reading = _turned(reading, orientation)
    return replace(reading, notes=(*filter(None, [frames]), *reading.notes))


@contextmanager
def _one_sentence(picture_format: str) -> Iterator[None]:
    try:
        yield
    except ImageError:
        raise
    except Exception as error:  # decoders raise nearly anything on damaged pixels
        raise ImageError(broken(error, picture_format)) from error


def _decode(image: Image.Image, original_size: tuple[int, int] | None = None) -> tuple[ImageReading, int]:
    """The picture in RGB, not yet upright, and its EXIF orientation; what PIL held for it is not kept."""
    original_mode, size = image.mode, original_size or image.size
    turned_by_pillow = image.format == "TIFF" and _orientation(image) != 1
    image.load()
    factor = 2 if image.width * image.height > KEPT_PIXELS else 1
    sixteen_bit = image.format == "PPM" and image.mode == "I"
    rgb, notes = to_rgb(image, reduce=factor, sixteen_bit=sixteen_bit)
    if turned_by_pillow:
        notes = (_TURNED, *notes)
    return ImageReading(rgb, image.format or "", size, original_mode, notes), _orientation(image)


def _orientation(image: Image.Image) -> int:
    try:
        orientation = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # noqa: BLE001  # damaged EXIF raises nearly anything, and the picture is fine without it
        return 1
    return orientation if orientation in tuple(_UPRIGHT) else 1


def _turned(reading: ImageReading, orientation: int) -> ImageReading:
    """The reading upright, with the sentences about its shape added."""
    image, size, notes = reading.image, reading.original_size, reading.notes
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
        size = size[::-1] if orientation >= 5 else size
        notes = (_TURNED, *notes)
    if image.size != size:
        notes = (*notes, f"It is reduced from {size[0]} × {size[1]} to {image.width} × {image.height} pixels.")
    return replace(reading, image=image, original_size=size, notes=notes)


def _fix_transparent_level(image: ImageFile.ImageFile) -> None:
    """Scale the level that a PNG names as transparent as Pillow scales its pixels: to 8 bits."""
    key = image.info.get("transparency")
    if image.format != "PNG" or not image.tile:
        return
    rawmode = image.tile[0].args
    if rawmode in _STEP_OF_LEVELS and isinstance(key, int):
        image.info["transparency"] = key * _STEP_OF_LEVELS[rawmode]
    elif rawmode == "RGB;16B" and isinstance(key, tuple):
        image.info["transparency"] = tuple(level >> 8 for level in key)
