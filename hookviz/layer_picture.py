"""One tensor of one layer, ready to be drawn: the page and the command line draw the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from torch import Tensor

from hookviz.channels import channel_order, channel_statistics
from hookviz.describe import size, title
from hookviz.hooks import Call
from hookviz.layout import arrange, channel_maps
from hookviz.statistics import summarize
from hookviz.types import ChannelMaps, ChannelOrder, ChannelStatistics, LayerInfo, Layout, Scale, Summary
from hookviz.views import Mosaic, channel_grid_figure, mosaic_picture

PER_PAGE = 64

PAPER_DPI = 200
"""Dots per inch of a figure that is taken home as PNG."""


class Display(TypedDict):
    """How values become colours."""

    scale: Scale
    robust: bool
    cmap: str


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor of one call as it is shown; ``order`` is None for channels in the order of their numbers.

    It has all that drawing it needs: downloads draw it later, where there is no session to ask.
    """

    tensor: Tensor
    maps: ChannelMaps
    summary: Summary
    statistics: ChannelStatistics
    order: npt.NDArray[np.int64] | None
    display: Display


def known_layout(info: LayerInfo, call: Call, path: str) -> Layout | None:
    """How to read the tensor at ``path`` of what a call returned; None where nothing is known of it."""
    if call.index >= len(info.layouts):
        return None
    known = [info.layouts[call.index], *info.other_layouts[call.index]]
    return next((layout for one, layout in zip(call.output_info, known, strict=False) if one.path == path), None)


def arranged(tensor: Tensor, layout: Layout | None, by: ChannelOrder, display: Display) -> Shown:
    """Read a tensor's axes, measure its channels and put them in order; without a ``layout`` the shape alone speaks.

    Raises:
        LayoutError: the layout does not fit the tensor.
    """
    name, grid = (layout.name, layout.grid) if layout else ("auto", None)
    statistics = channel_statistics(arrange(tensor, name, grid).values)
    order = None if by == "index" else channel_order(statistics, by)
    return Shown(tensor, channel_maps(tensor, name, grid), summarize(tensor), statistics, order, display)


def draw_mosaic(shown: Shown, page: int = 0, *, per_page: int = PER_PAGE) -> Mosaic:
    """A page of channels, a pixel for each value; pages count from 0."""
    return mosaic_picture(shown.maps, order=shown.order, page=page, per_page=per_page, **shown.display)


def draw_figure(
    info: LayerInfo,
    shown: Shown,
    page: int = 0,
    *,
    per_page: int = PER_PAGE,
    theme: Literal["light", "dark"] = "light",
) -> Figure:
    """The same page as a matplotlib figure with a title, numbered channels and a colour bar."""
    return channel_grid_figure(
        shown.maps,
        order=shown.order,
        page=page,
        per_page=per_page,
        title=f"{title(info.name)}  {info.class_name}  {size(shown.maps.shape)}",
        theme=theme,
        **shown.display,
    )
