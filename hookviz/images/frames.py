"""How many pictures a file holds besides the one that is shown."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO

from hookviz.images.formats import identify

if TYPE_CHECKING:
    from PIL.ImageFile import ImageFile

# Counting walks the whole file, and a file can be made of millions of empty frames.
_COUNTED_BYTES = 16 * 2**20
_COUNTED_PAGES = 500


def frames_note(stream: BinaryIO) -> str:
    """One sentence that says the picture is the first of several, or ``""`` where it is the only one."""
    image = identify(stream)
    frames = "1"
    try:
        if image.format != "PSD" and getattr(image, "is_animated", False):  # a PSD's frames are layers of one picture
            frames = "several"
            frames = _count_pages(image) if image.format == "TIFF" else _count_frames(image, stream)
    except Exception:  # noqa: BLE001, S110  # later frames may be damaged in any way, and only the first is needed
        pass
    return "" if frames == "1" else f"This is the first of {frames} frames."


def _count_pages(image: ImageFile) -> str:
    for page in range(1, _COUNTED_PAGES):
        try:
            image.seek(page)
        except EOFError:
            return str(page)
    return f"at least {_COUNTED_PAGES}"


def _count_frames(image: ImageFile, stream: BinaryIO) -> str:
    if image.format == "GIF" and stream.seek(0, io.SEEK_END) > _COUNTED_BYTES:
        return "several"
    frames: int = getattr(image, "n_frames", 1)  # formats without frames do not have it
    return str(frames)
