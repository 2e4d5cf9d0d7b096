"""Pixels with more than 256 levels, brought to 0..255."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PIL import Image

Levels: TypeAlias = npt.NDArray[np.floating | np.integer]

SIXTEEN_BIT = ("I;16", "I;16L", "I;16B", "I;16N")
DEEP = (*SIXTEEN_BIT, "I", "F")


@dataclass(frozen=True, slots=True)
class LevelRule:
    """A straight line from stored levels to 0..255: ``low`` becomes 0 and ``high`` becomes 255.

    ``nonfinite`` is True where the pixels hold NaN (drawn as 0) or infinities (drawn as 0 and 255).
    """

    low: float
    high: float
    nonfinite: bool = False

    @property
    def note(self) -> str:
        """One sentence for the reader."""
        if (self.low, self.high) == (0, 255):
            sentence = "Levels 0 to 255 are kept, rounded"
        else:
            sentence = f"Levels {self.low:g} to {self.high:g} are mapped to 0 to 255"
        return sentence + ("; NaN is shown as 0, infinities as 0 and 255." if self.nonfinite else ".")

    def apply(self, levels: Levels) -> npt.NDArray[np.uint8]:
        """The levels as bytes, rounded."""
        if levels.dtype.itemsize == 2:  # a table of all levels is ten times faster
            table = self._scaled(np.arange(2**16, dtype=np.uint16))
            return table[levels.astype(np.uint16)]
        return self._scaled(levels)

    def _scaled(self, levels: Levels) -> npt.NDArray[np.uint8]:
        values = np.nan_to_num(levels.astype(np.float64), nan=self.low, posinf=self.high, neginf=self.low)
        scaled = np.rint((values - self.low) * 255 / (self.high - self.low or 1)).astype(np.uint8)
        if self.nonfinite:
            scaled[np.isnan(levels)] = 0
            scaled[np.isposinf(levels)] = 255
        return scaled


def level_rule(mode: str, tiles: Iterable[Image.Image], *, sixteen_bit: bool = False) -> LevelRule:
    """The rule for an image of a mode in :data:`DEEP`, given as tiles.

    16-bit levels are divided by 257, so that 65535 becomes 255 in every image. 32-bit integers and floats have no
    fixed range: levels within 0..1 are multiplied by 255, levels within 0..255 are kept, and others are stretched from
    their minimum to their maximum, infinities and NaN aside.
    """
    if mode in SIXTEEN_BIT or sixteen_bit:
        return LevelRule(0, 65535)
    low, high, nonfinite = _finite_range(tiles)
    for top in (1, 255):
        if low >= 0 and high <= top:
            return LevelRule(0, top, nonfinite)
    return LevelRule(low, high, nonfinite)


def _finite_range(tiles: Iterable[Image.Image]) -> tuple[float, float, bool]:
    low, high, nonfinite = np.inf, -np.inf, False
    for tile in tiles:
        levels = np.asarray(tile)
        finite = levels[np.isfinite(levels)]
        nonfinite |= finite.size < levels.size
        if finite.size:
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    return (low, high, nonfinite) if low <= high else (0, 0, nonfinite)
