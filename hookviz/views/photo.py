"""A channel laid over the photograph, where the network's crop really was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from PIL import Image

from hookviz.errors import ViewError
from hookviz.views.marks import PixelBox, cross, outline, ring
from hookviz.views.overlay import overlay

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.views.overlay import Interpolation

Box: TypeAlias = tuple[float, float, float, float]
"""Left, upper, right, lower."""

LONGEST_SIDE = 1024
SHORTEST_LONG_SIDE = 384
"""Pixels. Lines would cover a photograph that is smaller."""

OUTSIDE = 0.35
"""How much of the photograph's light is left where the network did not look."""


def channel_over_photo(  # noqa: PLR0913 - a picture has this many settings, each with a default and a name at the call
    photo: npt.NDArray[np.uint8],
    crop: Box,
    channel_map: npt.NDArray[np.floating] | None,
    *,
    cmap: str = "viridis",
    alpha: float = 0.6,
    vmin: float | None = None,
    vmax: float | None = None,
    interpolation: Interpolation = "nearest",
    field: Box | None = None,
    position: tuple[int, int] | None = None,
    maximum: tuple[int, int] | None = None,
    longest_side: int = LONGEST_SIDE,
) -> npt.NDArray[np.uint8]:
    """The whole photograph, dark where the network saw nothing of it, with a channel over the rest.

    Under the channel the photo is grey, so that every colour is the channel's. Marks are white with a dark edge, which
    shows on light and on dark.

    Args:
        photo: (H, W, 3) uint8 RGB, upright. A larger one is scaled down first, a very small one up by a whole factor.
        crop: Where the network's input lies in the photo, in the photo's pixels, as ``Model.crop_box`` has it; it may
            reach beyond the photo, and what lies there is not shown.
        channel_map: (h, w), spread over the whole crop; None lays nothing over it.
        cmap: A matplotlib colormap.
        alpha: 0 shows only the photo, 1 only the map.
        vmin: The value of the first colour; None is the smallest finite one of the map.
        vmax: The value of the last colour; None is the largest finite one.
        interpolation: How the map is enlarged; the default shows every value as it is.
        field: A box to outline, such as a receptive field, as shares of the crop from 0 to 1
            (``ReceptiveField.shares``).
        position: Row and column of a value of the map, marked by a cross (not inside an outline hardly larger).
        maximum: Row and column of a value of the map, marked by a ring.
        longest_side: The most pixels that the picture has on a side.

    Returns:
        (H', W', 3) uint8 RGB in the photo's proportions.

    Raises:
        ViewError: No RGB photo, a crop outside it, a position that the map does not have, or a setting that does not
            exist.
    """
    if photo.ndim != 3 or photo.shape[2] != 3 or photo.dtype != np.uint8 or not photo.size:
        raise ViewError(f"a photo is an (H, W, 3) uint8 image, got {photo.dtype} of shape {photo.shape}")
    bright = _resized(photo, longest_side)
    frame = _Frame.of(crop, photo.shape[:2], bright.shape[:2])
    shown: npt.NDArray[np.uint8] = np.rint(bright * OUTSIDE).astype(np.uint8)
    shown[frame.seen] = bright[frame.seen]
    if channel_map is not None:
        shown[frame.seen] = _covered(
            bright, frame, channel_map, cmap=cmap, alpha=alpha, vmin=vmin, vmax=vmax, interpolation=interpolation
        )
    width = max(2, round(max(shown.shape) / 400))
    if field is not None:
        outline(shown, frame.place(field), width)
    if maximum is not None:
        ring(shown, frame.place(_shares(maximum, channel_map)).centre, 5.0 * width, width)
    if position is not None:
        _point_at(
            shown, frame.place(_shares(position, channel_map)), None if field is None else frame.place(field), width
        )
    return shown


def _point_at(picture: npt.NDArray[np.uint8], cell: PixelBox, field: PixelBox | None, width: int) -> None:
    """Mark a value by a cross, unless the outline of its field is so small that it does so itself."""
    reach = 5.0 * width
    if field is None or min(field.right - field.left, field.lower - field.upper) > 3 * reach:
        cross(picture, cell.centre, reach, width)


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where the crop lies in the picture, in whole pixels; it may reach beyond the picture's height and width."""

    crop: PixelBox
    height: int
    width: int

    @classmethod
    def of(cls, crop: Box, photo: tuple[int, ...], picture: tuple[int, ...]) -> _Frame:
        down, across = picture[0] / photo[0], picture[1] / photo[1]
        left, upper, right, lower = crop
        if not (left < right and upper < lower):
            raise ViewError(f"a crop is left, upper, right, lower, got {crop}")
        if left >= photo[1] or upper >= photo[0] or right <= 0 or lower <= 0:
            raise ViewError(f"the crop {crop} lies outside a photo of {photo[1]} × {photo[0]} pixels")
        first, top = round(left * across), round(upper * down)
        box = PixelBox(first, top, max(round(right * across), first + 1), max(round(lower * down), top + 1))
        return cls(box, picture[0], picture[1])

    @property
    def seen(self) -> tuple[slice, slice]:
        """The part of the picture inside the crop."""
        rows = slice(max(self.crop.upper, 0), min(self.crop.lower, self.height))
        return rows, slice(max(self.crop.left, 0), min(self.crop.right, self.width))

    def place(self, shares: Box) -> PixelBox:
        """A box given in shares of the crop."""
        across, down = self.crop.right - self.crop.left, self.crop.lower - self.crop.upper
        left, upper, right, lower = shares
        return PixelBox(
            self.crop.left + round(left * across),
            self.crop.upper + round(upper * down),
            self.crop.left + round(right * across),
            self.crop.upper + round(lower * down),
        )


def _resized(photo: npt.NDArray[np.uint8], longest_side: int) -> npt.NDArray[np.uint8]:
    height, width = photo.shape[:2]
    longest = max(height, width)
    if longest > longest_side:
        size = (max(1, round(width * longest_side / longest)), max(1, round(height * longest_side / longest)))
        return np.asarray(Image.fromarray(photo).resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0))
    factor = max(1, -(-min(SHORTEST_LONG_SIDE, longest_side) // longest))
    factor = factor if factor * longest <= longest_side else max(1, longest_side // longest)
    return np.asarray(photo.repeat(factor, axis=0).repeat(factor, axis=1))


def _covered(  # noqa: PLR0913 - as channel_over_photo
    bright: npt.NDArray[np.uint8],
    frame: _Frame,
    channel_map: npt.NDArray[np.floating],
    *,
    cmap: str,
    alpha: float,
    vmin: float | None,
    vmax: float | None,
    interpolation: Interpolation,
) -> npt.NDArray[np.uint8]:
    """The part inside the crop with the map over it, which is spread over the whole crop."""
    crop, (rows, columns) = frame.crop, frame.seen
    whole = np.zeros((crop.lower - crop.upper, crop.right - crop.left, 3), np.uint8)
    inside = (
        slice(rows.start - crop.upper, rows.stop - crop.upper),
        slice(columns.start - crop.left, columns.stop - crop.left),
    )
    whole[inside] = _grey(bright[frame.seen])
    covered: npt.NDArray[np.uint8] = overlay(
        whole, channel_map, cmap=cmap, alpha=alpha, vmin=vmin, vmax=vmax, interpolation=interpolation
    )
    return covered[inside]


def _grey(picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Its light alone: under a colour of its own a map's colours would not be those of the legend."""
    return np.asarray(Image.fromarray(np.ascontiguousarray(picture)).convert("L"))[..., None]


def _shares(cell: tuple[int, int], channel_map: npt.NDArray[np.floating] | None) -> Box:
    """The place of one value of a map, as shares of the crop."""
    if channel_map is None:
        raise ViewError("a position is marked in a map; give the channel's map, with alpha=0 to leave it out")
    (row, column), (height, width) = cell, channel_map.shape
    if not (0 <= row < height and 0 <= column < width):
        raise ViewError(f"no position {cell} in a map of {height}×{width}; rows and columns count from 0")
    return column / width, row / height, (column + 1) / width, (row + 1) / height
