"""What stands above each channel of a figure, and how its values became colours or heights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hookviz.views.labels import fitting_range, value_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from hookviz.views.canvas import Canvas
    from hookviz.views.drawing import Drawing
    from hookviz.views.tiling import TileGeometry

_CHARACTER = 5.8
_LINE = 12

_SCALE_WORDS = {
    "channel": "each channel over its own range",
    "shared": "one range for all channels",
    "symmetric": "one range around zero for all channels",
}


@dataclass(frozen=True, slots=True)
class TileLabels:
    """A channel's number, and its range beside or below it."""

    ranges: list[str]
    lines: int

    @classmethod
    def of(cls, drawing: Drawing, channels: npt.NDArray[np.intp], tile_width: int) -> TileLabels:
        """Number and range on one line where every range fits beside its number, else on two."""
        number_width = 7 * len(str(channels.max())) + 8
        beside, below = (int(room / _CHARACTER) for room in (tile_width - number_width, tile_width))
        ranges = [_range_words(drawing, position, below) for position in range(len(channels))]
        return cls(ranges, lines=1 if max(map(len, ranges)) <= beside else 2)

    @property
    def height(self) -> int:
        """In pixels."""
        return 8 + _LINE * self.lines

    def add_to(self, canvas: Canvas, geometry: TileGeometry, *, left: float, top: float) -> None:
        """Write them at the upper edge of the tiles, which begin at a place in pixels."""
        bold = {"fontsize": 7.5, "fontweight": "bold", "color": canvas.theme.ink, "va": "baseline"}
        for position, (channel, words) in enumerate(zip(geometry.channels, self.ranges, strict=True)):
            corner = geometry.corner(position)
            x, y = left + corner[0], top + corner[1] + 15
            canvas.text(x, y, str(channel), **bold)
            if self.lines == 1:
                canvas.text(x + geometry.tile_width, y, words, va="baseline", ha="right", fontsize=6.5)
            else:
                canvas.text(x, y + _LINE, words, va="baseline", fontsize=6.5)


def scale_remarks(drawing: Drawing, *, robust: bool) -> list[str]:
    """What the values are of, the range they are drawn over, and what lies beyond it."""
    if drawing.numbers == "boolean":
        return ["false and true"]
    remarks = [] if drawing.shows == "value" else [drawing.shows]
    remarks.append(_SCALE_WORDS[drawing.scale])
    if robust:
        remarks.append(f"1st to 99th percentile, {drawing.clipped:,} values clipped")
    return remarks


def _range_words(drawing: Drawing, position: int, room: int) -> str:
    low, high = float(drawing.extremes.vmin[position]), float(drawing.extremes.vmax[position])
    single = drawing.entries[position].size == 1 and low == high
    return value_text(low, drawing.numbers) if single else fitting_range(low, high, room, drawing.numbers)
