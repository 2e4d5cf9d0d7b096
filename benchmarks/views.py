"""The mosaic against 64 subplots, and how its time grows with pixels: ``python -m benchmarks.views``."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image

from benchmarks.timing import ratio
from hookviz.views import channel_grid_figure, figure_bytes, mosaic

if TYPE_CHECKING:
    from collections.abc import Callable

Maps = npt.NDArray[np.float32]


def filtered_photograph(side: int, channels: int = 64) -> Maps:
    """What a first convolution makes of a photograph: (channels, side, side)."""
    path = mpl.get_data_path() + "/sample_data/grace_hopper.jpg"
    grey = np.asarray(Image.open(path).convert("L").resize((side + 6, side + 6)), np.float32)
    kernels = np.random.default_rng(0).normal(size=(channels, 7, 7)).astype(np.float32)
    kernels -= kernels.mean(axis=(1, 2), keepdims=True)
    maps: Maps = np.einsum("hwij,cij->chw", sliding_window_view(grey, (7, 7)), kernels, optimize=True)
    return maps


def pyplot_subplots(maps: Maps, *, axes_off: bool) -> bytes:
    """64 axes the way tutorials draw them."""
    figure, grid = plt.subplots(8, 8, figsize=(8, 8))
    fill(list(grid.flat), maps, axes_off=axes_off)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    plt.close(figure)
    return stream.getvalue()


def figure_subplots(maps: Maps, *, axes_off: bool) -> bytes:
    """The same without pyplot."""
    figure = Figure(figsize=(8, 8))
    fill(list(figure.subplots(8, 8).flat), maps, axes_off=axes_off)
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    return stream.getvalue()


def fill(axes: list[Axes], maps: Maps, *, axes_off: bool) -> None:
    """One channel in each of the axes."""
    for ax, channel in zip(axes, maps, strict=True):
        ax.imshow(channel)
        if axes_off:
            ax.axis("off")


def main() -> None:
    """Print every ratio, subject against baseline."""
    mpl.use("Agg")
    maps = np.ascontiguousarray(filtered_photograph(56))
    fast = partial(mosaic, maps)
    for axes_off in (False, True):
        suffix = ", axes off" if axes_off else ""
        pyplot = ratio(fast, partial(pyplot_subplots, maps, axes_off=axes_off), pairs=7, warmup=1)
        print(pyplot.line(f"mosaic 64×56×56 / 64 pyplot subplots{suffix}"))
        plain = ratio(fast, partial(figure_subplots, maps, axes_off=axes_off), pairs=7, warmup=1)
        print(plain.line(f"mosaic 64×56×56 / 64 Figure.subplots{suffix}"))
    tutorial = partial(pyplot_subplots, maps, axes_off=False)
    grid = ratio(lambda: figure_bytes(channel_grid_figure(maps)), tutorial, pairs=5, warmup=1)
    print(grid.line("channel grid figure / 64 pyplot subplots"))
    print("\ngrowth: time ratio against pixel ratio")
    large = np.ascontiguousarray(filtered_photograph(224))
    many = np.random.default_rng(0).normal(size=(2048, 7, 7)).astype(np.float32)
    growth(partial(mosaic, large), fast, "64×224×224 / 64×56×56", pixels=16)
    first = partial(mosaic, many)
    growth(partial(mosaic, many, per_page=2048), first, "2048×7×7: all on one page / first page of 64", pixels=32)
    growth(first, partial(mosaic, many[:64]), "first page of 64 of 2048×7×7 / 64×7×7", pixels=1)
    shared = partial(mosaic, many, scale="shared")
    growth(shared, first, "2048×7×7, first page: shared / own range", pixels=1)


def growth(subject: Callable[[], bytes], baseline: Callable[[], bytes], label: str, *, pixels: float) -> None:
    """Print by how much the time grows, and by how much the drawn pixels do."""
    print(f"{ratio(subject, baseline).line(label)}   pixels {pixels:g}")


if __name__ == "__main__":
    main()
