"""Many renders at once, and many in a row."""

from __future__ import annotations

import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

from hookviz.views import channel_grid_figure, figure_bytes, histogram_figure, mosaic
from hookviz.views.palette import palette
from tests.views.decoding import rgb
from tests.views.summaries import summary_of

THREADS, RENDERS = 8, 200


def own_constant(number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Filled with the thread's own number, except for two corners that fix the shared range."""
    maps = np.full((1, 8, 8), number, np.float32)
    maps[0, 0, 0], maps[0, 7, 7] = 0, THREADS - 1
    return maps


def own_colour(number: int) -> list[int]:
    colour: list[int] = palette("viridis")[round(number / (THREADS - 1) * 249)].tolist()
    return colour


def test_eight_threads_each_get_their_own_mosaic() -> None:
    """C18: 8 threads render 200 times each."""

    def centres(number: int) -> set[tuple[int, ...]]:
        maps = own_constant(number)
        return {tuple(rgb(mosaic(maps))[4, 4].tolist()) for _ in range(RENDERS)}

    with ThreadPoolExecutor(THREADS) as pool:
        seen = list(pool.map(centres, range(THREADS)))
    assert seen == [{tuple(own_colour(number))} for number in range(THREADS)]
    assert plt.get_fignums() == []


def test_eight_threads_each_get_their_own_figure() -> None:
    """C18: figures, drawn by several threads at once, equal those drawn alone."""
    alone = [figure_bytes(channel_grid_figure(own_constant(number), title=str(number))) for number in range(THREADS)]

    def drawn(number: int) -> set[bytes]:
        maps = own_constant(number)
        return {figure_bytes(channel_grid_figure(maps, title=str(number))) for _ in range(4)}

    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(drawn, range(THREADS)))
    assert together == [{picture} for picture in alone]
    assert plt.get_fignums() == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident size from /proc")
def test_a_hundred_renders_leave_memory_flat() -> None:
    """C19: within 50 MB between the 10th and the 100th; no figure is registered anywhere."""
    values = np.random.default_rng(0).normal(size=(4, 28, 28)).astype(np.float32)

    def render(turn: int) -> None:
        mosaic(values)
        if turn % 2:
            figure_bytes(channel_grid_figure(values))
        else:
            figure_bytes(histogram_figure(summary_of(values), summary_of(values[0])))

    for turn in range(10):
        render(turn)
    before = resident()
    for turn in range(10, 100):
        render(turn)
    assert resident() - before < 50e6
    assert plt.get_fignums() == []


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
