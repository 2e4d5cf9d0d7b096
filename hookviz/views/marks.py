"""Marks on a photograph: white with a dark edge, so that they show on light and on dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LINE, EDGE = (255, 255, 255), (12, 16, 24)


class PixelBox(NamedTuple):
    """Left, upper, right, lower in whole pixels, the last two exclusive."""

    left: int
    upper: int
    right: int
    lower: int

    @property
    def centre(self) -> tuple[float, float]:
        """Across and down, from the picture's corner."""
        return (self.left + self.right) / 2, (self.upper + self.lower) / 2


def outline(picture: npt.NDArray[np.uint8], box: PixelBox, width: int) -> None:
    """Draw a rectangle whose line lies along the box's edges, half of it inside; within the picture at its border."""
    near, far = width // 2, width - width // 2
    height, across = picture.shape[:2]
    left, right = _room(box.left, box.right, width, across)
    upper, lower = _room(box.upper, box.lower, width, height)
    for colour, grown in ((EDGE, 1), (LINE, 0)):
        ring = np.zeros(picture.shape[:2], bool)
        ring[_span(upper - near - grown, lower + near + grown), _span(left - near - grown, right + near + grown)] = True
        ring[_span(upper + far + grown, lower - far - grown), _span(left + far + grown, right - far - grown)] = False
        picture[ring] = colour


def ring(picture: npt.NDArray[np.uint8], centre: tuple[float, float], radius: float, width: int) -> None:
    """Draw a smooth circle around a point."""
    window, (across, down) = _around(picture, centre, radius + width + 3)
    _stroke(window, np.abs(np.hypot(across, down) - radius), width)


def cross(picture: npt.NDArray[np.uint8], centre: tuple[float, float], reach: float, width: int) -> None:
    """Draw an upright cross on a point."""
    window, offsets = _around(picture, centre, reach + width + 3)
    across, down = np.abs(offsets)
    _stroke(window, np.maximum(np.minimum(across, down), np.maximum(across, down) - reach + width / 2), width)


def _around(
    picture: npt.NDArray[np.uint8], centre: tuple[float, float], reach: float
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64]]:
    """The part of a picture near a point, and how far across and down the middles of its pixels lie from that."""
    (left, right), (upper, lower) = ((int(place - reach), int(place + reach) + 1) for place in centre)
    window = picture[_span(upper, lower), _span(left, right)]
    down, across = np.indices(window.shape[:2])
    return window, np.stack([across + max(left, 0) + 0.5 - centre[0], down + max(upper, 0) + 0.5 - centre[1]])


def _stroke(picture: npt.NDArray[np.uint8], distance: npt.NDArray[np.float64], width: int) -> None:
    """Colour what lies within a line's width of its middle, pixels at its rim in part."""
    for colour, half in ((EDGE, width / 2 + 1.25), (LINE, width / 2)):
        share = np.clip(half + 0.5 - distance, 0.0, 1.0)[..., None]
        picture[...] = np.rint(picture * (1 - share) + np.array(colour) * share)


def _room(low: int, high: int, width: int, extent: int) -> tuple[int, int]:
    """Both edges moved into the picture as far as the line needs, and apart as far as leaves its inside free."""
    margin = width // 2 + 1
    least = 2 * width + 5
    if high - low < least:
        low = (low + high - least) // 2
        high = low + least
    low = min(max(low, margin), max(extent - margin - least, margin))
    return low, max(min(high, extent - margin), low + least)


def _span(low: int, high: int) -> slice:
    return slice(max(low, 0), max(high, 0))
