"""Draw the probe images in ``assets/``: pictures made so that one sees what a filter answers to.

Everything is computed, nothing is random: the same pixels come out every time. The two digits are from scikit-learn's
handwritten digits (8x8, levels 0..16), of the part that the teaching network is not trained on, enlarged with hard
edges.

Run it from the top of the repository: ``python -m scripts.draw_samples``.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from PIL import Image
from sklearn.datasets import load_digits

if TYPE_CHECKING:
    from collections.abc import Callable

ASSETS = Path(__file__).parent.parent / "assets"
SIDE = 512
GREY = 128

Levels = npt.NDArray[np.float64]

ORIENTATIONS = (0, 45, 90, 135)
PERIODS = (32, 16, 8, 4)
CELLS = (64, 32, 16, 8)
HUES = ((255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255), (0, 0, 255), (255, 0, 255))
DIGIT_ROWS = {"digit_3": 175, "digit_8": 370}


def coordinates(side: int) -> tuple[Levels, Levels]:
    """Right and down, in pixels from the middle of a square, each (side, side)."""
    down, right = np.mgrid[:side, :side] - (side - 1) / 2
    return right, down


def disc(side: int, edge: float) -> Levels:
    """1 inside the largest circle of a square, 0 outside, smooth over ``edge`` pixels."""
    distance = np.hypot(*coordinates(side))
    fade: Levels = np.clip((side / 2 - 4 - distance) / edge, 0, 1)
    return fade


def grey_picture(wave: Levels) -> Image.Image:
    """Levels -1..1 as black to white around mid grey."""
    return Image.fromarray(np.rint(127.5 + 127.5 * wave).astype(np.uint8))


def grating(side: int, orientation: float, period: float) -> Levels:
    """A sinusoidal grating -1..1 in a disc; its stripes run at ``orientation`` degrees, 0 level, 90 upright."""
    right, down = coordinates(side)
    angle = np.deg2rad(orientation)
    across = right * np.sin(angle) + down * np.cos(angle)
    wave: Levels = np.cos(2 * np.pi * across / period) * disc(side, 12)
    return wave


def gratings() -> Image.Image:
    """Four orientations from left to right, four periods from top (coarse) to bottom (fine)."""
    side = SIDE // 4
    return grey_picture(np.block([[grating(side, angle, period) for angle in ORIENTATIONS] for period in PERIODS]))


def zone_plate() -> Image.Image:
    """Rings that grow finer outwards, up to two pixels a ring: every orientation at every frequency."""
    right, down = coordinates(SIDE)
    return grey_picture(np.cos(np.pi * (right**2 + down**2) / SIDE) * disc(SIDE, 24))


def board(side: int, cell: int) -> Levels:
    """A checkerboard of -1 and 1, white at the top left."""
    row, column = np.mgrid[:side, :side] // cell
    levels: Levels = 1.0 - 2.0 * ((row + column) % 2)
    return levels


def checkerboard() -> Image.Image:
    """A board in each quarter, of cells 64, 32, 16 and 8 pixels wide."""
    coarse, medium, fine, finest = (board(SIDE // 2, cell) for cell in CELLS)
    return grey_picture(np.block([[coarse, medium], [fine, finest]]))


def colours() -> Image.Image:
    """Six pure hues, each also dark and pale; a sweep of hues; a grey ramp in steps and a smooth one."""
    picture = Image.new("RGB", (SIDE, SIDE), (GREY, GREY, GREY))
    for column, (red, green, blue) in enumerate(HUES):
        left, right = 8 + 84 * column, 84 + 84 * column
        picture.paste((red, green, blue), (left, 8, right, 160))
        picture.paste((red // 2, green // 2, blue // 2), (left, 168, right, 232))
        picture.paste(((red + 255) // 2, (green + 255) // 2, (blue + 255) // 2), (left, 240, right, 304))
    width = 84 * 6 - 8
    picture.paste(hue_sweep(width, 56), (8, 312))
    picture.paste(grey_ramp(width, 56, steps=8), (8, 376))
    picture.paste(grey_ramp(width, 64, steps=width), (8, 440))
    return picture


def hue_sweep(width: int, height: int) -> Image.Image:
    """All hues at full strength, from red by way of green and blue to red."""
    position = np.linspace(0, 6, width)
    distance = np.abs((position - np.array([[0], [2], [4]]) + 3) % 6 - 3)  # from where red, green and blue are full
    rgb = np.clip(2 - distance, 0, 1)
    row = np.rint(255 * rgb).astype(np.uint8).T
    return Image.fromarray(np.broadcast_to(row, (height, width, 3)).copy())


def grey_ramp(width: int, height: int, *, steps: int) -> Image.Image:
    """Black to white in equal steps."""
    levels = np.rint(np.arange(width) * steps // width * 255 / (steps - 1)).astype(np.uint8)
    return Image.fromarray(np.broadcast_to(levels, (height, width)).copy())


def digit(row: int) -> Image.Image:
    """One handwritten digit, bright on black, 256x256 in blocks of 32 pixels."""
    levels, _ = load_digits(return_X_y=True)
    pixels = np.rint(levels[row].reshape(8, 8) * 255 / 16).astype(np.uint8)
    return Image.fromarray(pixels).resize((256, 256), Image.Resampling.NEAREST)


DRAWINGS: dict[str, Callable[[], Image.Image]] = {
    "gratings": gratings,
    "zone_plate": zone_plate,
    "checkerboard": checkerboard,
    "colours": colours,
    **{name: partial(digit, row) for name, row in DIGIT_ROWS.items()},
}
"""A function for every drawn sample, by its name."""


def main() -> None:
    """Write every drawing to ``assets/``."""
    for name, draw in DRAWINGS.items():
        path = ASSETS / f"{name}.png"
        draw().save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
