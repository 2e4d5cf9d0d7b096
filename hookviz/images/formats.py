"""Which kind of file this is, decided by its content, and how large a picture of that kind may be."""

from __future__ import annotations

import importlib
import struct
from typing import TYPE_CHECKING, BinaryIO

from PIL import Image, ImageFile

from hookviz.errors import ImageError
from hookviz.images.refusals import is_heic, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_PIXELS = 2**26
"""Pictures up to this size (67 million pixels, 8192 × 8192) keep every pixel; larger ones are halved."""

# What 1 GB of memory allows. Read row by row, as PNG is, a picture costs 4 bytes a pixel; a JPEG may hold all its
# coefficients, 6 bytes; Pillow's WebP decoder needs 16 and its JPEG 2000 decoder 25. QOI is decoded in Python: there
# the limit is time.
_MAX_PIXELS = {
    "": 150_000_000,  # a PIL image that was never a file
    "PNG": 150_000_000,
    "BMP": 150_000_000,
    "PPM": 150_000_000,
    "JPEG": 120_000_000,
    "MPO": 120_000_000,
    "GIF": KEPT_PIXELS,
    "TIFF": KEPT_PIXELS,
    "JPEG2000": 36_000_000,
    "QOI": 16_000_000,
}
_MAX_PIXELS_OTHERWISE = 51_000_000

# Drawings, data and video that Pillow has names but no decoder for, or runs another program for (EPS, WMF); and old
# formats that it recognises by trial, so that any file might pass for one.
_NOT_PICTURES = frozenset(
    ("EPS", "WMF", "BUFR", "GRIB", "HDF5", "MPEG", "IM", "IMT", "IPTC", "MCIDAS", "PCD", "SPIDER", "XVTHUMB")
)
_NOT_THIS_FORMAT = (SyntaxError, IndexError, TypeError, struct.error)  # as in Image.open


def identify(stream: BinaryIO) -> ImageFile.ImageFile:
    """The picture in the stream, its header read and its pixels not, of a size that can be loaded.

    ``Image.open`` would do, but it warns on the console about sizes that are fine here, and warnings cannot be
    silenced for one thread alone.

    Raises:
        ImageError: it is no picture that can be read, or too large.
    """
    Image.init()
    stream.seek(0)
    prefix = stream.read(4096)
    _check_gif_screen(prefix)
    image, claimed = _first_match(stream, prefix)
    if image is None and is_heic(prefix) and _register_heif_plugin():
        image, claimed = _first_match(stream, prefix)
    if image is None:
        raise ImageError(damaged(claimed) if claimed and not is_heic(prefix) else refusal(prefix))
    check_size(image.size, image.format or "", image.mode)
    return image


def check_size(size: tuple[int, int], picture_format: str, mode: str) -> None:
    """Raise ImageError where a picture has no pixels, or more than can be loaded."""
    (width, height), pixels = size, size[0] * size[1]
    kind = picture_format or "PIL"
    limit = _MAX_PIXELS.get(picture_format, _MAX_PIXELS_OTHERWISE)
    if mode == "CMYK":
        limit = min(limit, KEPT_PIXELS)
    if pixels > limit:
        raise ImageError(
            f"This {kind} image has {width} × {height} = {pixels:,} pixels, and the limit is {limit:,}; "
            "save a smaller copy of it."
        )
    if pixels == 0:
        raise ImageError(f"This image has {width} × {height} pixels, so there is nothing to see; choose another.")


def _check_gif_screen(prefix: bytes) -> None:
    # Pillow fills a GIF's whole screen when it opens the file.
    if prefix.startswith((b"GIF87a", b"GIF89a")) and len(prefix) >= 10:
        check_size((prefix[6] | prefix[7] << 8, prefix[8] | prefix[9] << 8), "GIF", "P")


def _first_match(stream: BinaryIO, prefix: bytes) -> tuple[ImageFile.ImageFile | None, str]:
    """The picture; or None, with the name of the format that the file claimed to be and was not."""
    claimed = ""
    for name in tuple(Image.ID):
        factory, accept = Image.OPEN[name]
        if name in _NOT_PICTURES or not _accepts(accept, prefix):
            continue
        try:
            stream.seek(0)
            return factory(stream, ""), name
        except _NOT_THIS_FORMAT:
            claimed = name if accept else claimed
        except Exception as error:  # decoders raise nearly anything on damaged headers
            raise ImageError(broken(error, name)) from error
    return None, claimed


def _accepts(accept: Callable[[bytes], bool | str] | None, prefix: bytes) -> bool:
    try:
        return accept is None or accept(prefix[:16]) is True  # a str says why not
    except _NOT_THIS_FORMAT:  # some want more bytes than a tiny file has
        return False


def _register_heif_plugin() -> bool:
    try:
        importlib.import_module("pillow_heif").register_heif_opener()
    except ImportError:
        return False
    return True


def broken(error: Exception, picture_format: str) -> str:
    """The sentence for what a decoder raised about a file of this format."""
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return f"This {picture_format} image has too many pixels to be loaded; save a smaller copy of it."
    if isinstance(error, MemoryError):
        return f"This {picture_format} image needs more memory than there is; save a smaller copy of it."
    if "MAX_TEXT" in str(error):
        return f"This {picture_format} file carries more text than can be read; save it again without its metadata."
    return damaged(picture_format)


def damaged(picture_format: str) -> str:
    """The sentence about a file whose header is right and whose pixels are not."""
    kind = picture_format or "image"
    return f"This {kind} file is cut short or damaged, so its pixels cannot be read; get a fresh copy of it."
