"""Moving pictures: animated images through Pillow, short films through PyAV where that is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from PIL import Image, ImageSequence

from hookviz.errors import ImageError
from hookviz.images import load_image
from hookviz.images.formats import identify
from hookviz.images.sources import ImageSource, open_source

MOST_FRAMES = 128
"""What the longest clip of a video network holds."""

MOST_PIXELS = 100_000_000
"""In all frames together, which as RGB are 300 MB."""

_FILM_BRANDS = (b"isom", b"iso2", b"iso5", b"iso6", b"mp41", b"mp42", b"avc1", b"qt  ", b"M4V ", b"dash", b"3gp")


def load_frames(source: ImageSource) -> list[Image.Image]:
    """The frames of an animated GIF, WebP or PNG, or of a short film, in RGB; one frame where nothing moves.

    Of a long one, every second, fourth, ... frame is kept: at most ``MOST_FRAMES``, and ``MOST_PIXELS`` in all.
    Transparent parts are laid over white. Films (MP4, WebM, AVI, MPEG) need PyAV, ``pip install av``.

    Raises:
        ImageError: not a picture, not a film, damaged, or a film without PyAV; one sentence says which.
    """
    with open_source(source) as stream:
        start = stream.read(32)
        stream.seek(0)
        frames = _film_frames(stream) if _is_film(start) else _image_frames(stream)
        return _thinned(frames)


def _is_film(start: bytes) -> bool:
    if start[4:8] == b"ftyp":
        return start[8:12].startswith(_FILM_BRANDS)
    return start.startswith((b"\x1aE\xdf\xa3", b"\x00\x00\x01\xba")) or start[:4] + start[8:12] == b"RIFFAVI "


def _image_frames(stream: BinaryIO) -> Iterator[Image.Image]:
    image = identify(stream)
    if not getattr(image, "is_animated", False) or image.format in {"TIFF", "PSD"}:  # pages and layers do not move
        stream.seek(0)
        yield load_image(stream)
        return
    try:
        for frame in ImageSequence.Iterator(image):
            yield load_image(frame.copy())
    except ImageError:
        raise
    except Exception as error:  # decoders raise nearly anything on damaged pixels
        raise ImageError("A later frame is damaged; save the picture again, or take another.") from error


def _film_frames(stream: BinaryIO) -> Iterator[Image.Image]:
    try:
        import av  # type: ignore[import-not-found,unused-ignore]  # an extra that few need
    except ImportError as error:
        raise ImageError("Films are read by PyAV, which is not installed; pip install av, or use a GIF.") from error
    try:
        with av.open(stream) as film:
            for frame in film.decode(video=0):
                yield frame.to_image()
    except Exception as error:  # FFmpeg's errors are a family of their own, and a file without video has no stream 0
        raise ImageError("The film could not be read; it may be damaged or have no pictures.") from error


def _thinned(frames: Iterable[Image.Image]) -> list[Image.Image]:
    kept: list[Image.Image] = []
    stride = 1
    for number, frame in enumerate(frames):
        if number % stride:
            continue
        kept.append(frame)
        most = max(2, min(MOST_FRAMES, MOST_PIXELS // (frame.width * frame.height)))
        if len(kept) > most:
            kept, stride = kept[::2], stride * 2
    return kept
