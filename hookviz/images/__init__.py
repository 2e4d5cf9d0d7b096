"""Anything a person may hand over as an image, turned into one checked, upright RGB picture."""

from __future__ import annotations

from hookviz.images.reading import ImageReading, load_image, read_image

__all__ = ["ImageReading", "load_image", "read_image"]
