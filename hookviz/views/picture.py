"""Photographs: the pixels a network saw, as an image again."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from hookviz.errors import ViewError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def rgb_pixels(
    prepared: npt.NDArray[np.floating], mean: Sequence[float], std: Sequence[float]
) -> npt.NDArray[np.uint8]:
    """The pixels the network saw: its normalised input turned back into an image.

    Args:
        prepared: (3, H, W), or (1, H, W) for a network that takes grey images, as it went into the network.
        mean: What the preprocessing subtracted, per channel, for values of 0 to 1.
        std: What it divided by.

    Returns:
        (H, W, 3) uint8 RGB: clipped to 0..1, rounded, black where the input is NaN.

    Raises:
        ViewError: Not one or three channels, or a mean or std of another length.
    """
    channels = prepared.shape[0] if prepared.ndim == 3 else 0
    if channels not in {1, 3} or len(mean) != channels or len(std) != channels:
        shapes = f"an input of shape {prepared.shape} with {len(mean)} means and {len(std)} deviations"
        raise ViewError(f"{shapes} is no RGB or grey image; show its channels instead")
    scale, shift = (np.asarray(values, np.float64)[:, None, None] for values in (std, mean))
    unit = np.nan_to_num(prepared.astype(np.float64) * scale + shift, nan=0.0, posinf=1.0, neginf=0.0)
    pixels = np.rint(np.clip(unit, 0.0, 1.0) * 255).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0))


def png_bytes(image: npt.NDArray[np.uint8]) -> bytes:
    """An (H, W, 3) uint8 RGB image as PNG."""
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, format="PNG", compress_level=1)
    return stream.getvalue()
