"""Which colour each palette entry has: 250 levels of a colormap, then the five classes that are no level."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps

from hookviz.errors import ViewError

if TYPE_CHECKING:
    import numpy.typing as npt

COLORMAPS = ("viridis", "magma", "inferno", "plasma", "cividis", "gray", "turbo", "coolwarm", "RdBu_r")
"""The colormaps offered to a reader; every other name matplotlib knows is drawn too."""

LEVELS = 250
NAN, POSINF, NEGINF, CONSTANT, GAP = range(LEVELS, LEVELS + 5)
CLASS_NAMES = {NAN: "NaN", POSINF: "+Inf", NEGINF: "-Inf", CONSTANT: "constant", GAP: "gap"}

# In order of preference: the first that stands apart from the colormap and from the classes before it is taken.
_CANDIDATES = {
    NAN: [(255, 0, 255), (0, 255, 0), (255, 165, 255)],
    POSINF: [(255, 0, 0), (0, 255, 0), (0, 255, 255), (120, 72, 40)],
    NEGINF: [(0, 0, 255), (0, 255, 255), (30, 75, 0), (255, 165, 0)],
    CONSTANT: [(150, 150, 150), (110, 140, 190), (85, 95, 20), (200, 180, 255)],
    GAP: [(255, 255, 255), (200, 180, 255), (255, 190, 220), (0, 0, 0)],
}
_APART = 20.0


@lru_cache(maxsize=64)
def palette(cmap: str) -> npt.NDArray[np.uint8]:
    """The (255, 3) uint8 RGB palette of a colormap.

    Entries 0 to 249 sample it evenly from 0.0 to 1.0, both ends included, in matplotlib's own 8-bit colours; ``NAN``,
    ``POSINF``, ``NEGINF``, ``CONSTANT`` and ``GAP`` follow. The same class has the same colour under every colormap
    that does not contain that colour itself.

    Raises:
        ViewError: ``cmap`` is not a name matplotlib knows.
    """
    if cmap not in colormaps:
        raise ViewError(f"no colormap {cmap!r}; choose one of {', '.join(COLORMAPS)} or another of matplotlib's names")
    colours = np.asarray(colormaps[cmap](np.linspace(0.0, 1.0, LEVELS), bytes=True))[:, :3].astype(np.uint8)
    for candidates in _CANDIDATES.values():
        colours = np.vstack([colours, _standing_apart(np.array(candidates, np.uint8), colours)])
    colours.setflags(write=False)
    return colours


def css(cmap: str, entry: int) -> str:
    """A palette entry as ``#rrggbb``."""
    return f"#{palette(cmap)[entry].tobytes().hex()}"


def colour_distances(colours: npt.NDArray[np.uint8], others: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """CIE 1976 colour differences of (n, 3) from (m, 3) sRGB colours, (n, m); about 2 is just noticeable."""
    return np.asarray(np.linalg.norm(_lab(colours)[:, None] - _lab(others)[None], axis=-1), np.float64)


def _standing_apart(candidates: npt.NDArray[np.uint8], colours: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    nearest = colour_distances(candidates, colours).min(axis=1)
    apart = np.flatnonzero(nearest >= _APART)
    chosen: npt.NDArray[np.uint8] = candidates[apart[0] if len(apart) else nearest.argmax()]
    return chosen


def _lab(colours: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    # CIELAB under D65, https://www.w3.org/TR/css-color-4/#color-conversion-code
    srgb = colours / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.41239, 0.35758, 0.18048], [0.21264, 0.71517, 0.07219], [0.01933, 0.11919, 0.95053]])
    relative = linear @ to_xyz.T / to_xyz.sum(axis=1)
    bent = np.where(relative > 216 / 24389, np.cbrt(relative), (24389 / 27 * relative + 16) / 116)
    x, y, z = bent[..., 0], bent[..., 1], bent[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
