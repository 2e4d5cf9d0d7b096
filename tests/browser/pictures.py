"""Files that people upload, made on the spot."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image

RED, BLUE, WHITE, BLACK = (255, 0, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0)


def encoded(image: Image.Image, kind: str, **settings: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **settings)
    return stream.getvalue()


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (300, 300)) -> bytes:
    return encoded(Image.new("RGB", size, colour), "PNG")


def halves(first: tuple[int, int, int], second: tuple[int, int, int], size: tuple[int, int]) -> Image.Image:
    """The left half in one colour, the right half in another."""
    image = Image.new("RGB", size, first)
    image.paste(second, (size[0] // 2, 0, *size))
    return image


def phone_photo() -> bytes:
    """A JPEG as phones write it: lying on its side, left half red, right half blue, EXIF 6 says to stand it up."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(halves(RED, BLUE, (480, 240)), "JPEG", quality=95, exif=exif)


def noise(seed: int, size: tuple[int, int] = (240, 320)) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8))


def bomb() -> bytes:
    """A one-bit PNG of 20,000 × 20,000 pixels in some 50 kB."""
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    squeeze = zlib.compressobj(9)
    row = b"\0" * (1 + 20_000 // 8)
    pixels = b"".join(squeeze.compress(row) for _ in range(20_000)) + squeeze.flush()
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    )


def heic() -> bytes:
    """The head of an iPhone photo: enough to be recognised, nothing to decode."""
    return struct.pack(">I", 24) + b"ftypheic" + b"\0\0\0\0" + b"mif1heic" + b"\0" * 4096


def animated_gif() -> bytes:
    """Red, then blue."""
    first, second = Image.new("RGB", (64, 64), RED), Image.new("RGB", (64, 64), BLUE)
    return encoded(first, "GIF", save_all=True, append_images=[second], duration=200, loop=0)
