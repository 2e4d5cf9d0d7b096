"""One tensor of one layer, ready to be drawn: the page and the command line draw the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt
from torch import Tensor

from hookviz.channels import channel_order, channel_statistics
from hookviz.describe import size, title
from hookviz.layout import arrange, axis_lengths, channel_maps
from hookviz.types import ChannelMaps, ChannelOrder, ChannelStatistics, LayerInfo, Layout, Scale, Summary
from hookviz.value_kinds import summarize_kind, value_kinds
from hookviz.views import (
    Mosaic,
    channel_grid_figure,
    mosaic_picture,
    sequence_figure,
    value_figure,
    vector_figure,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_PAGE = 64

PAPER_DPI = 200
"""Dots per inch of a figure that is taken home as PNG."""


Picture: TypeAlias = Literal["maps", "lines", "bars", "number"]


class Display(TypedDict):
    """How values become colours."""

    scale: Scale
    robust: bool
    cmap: str


@dataclass(frozen=True, slots=True)
class Selection:
    """Which part of a tensor is shown, and as which kind of numbers; items and slices count from 0, None is all."""

    item: int = 0
    depth: int | None = None
    shows: str = "auto"


WHOLE_FIRST_ITEM = Selection()


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor of one call as it is shown; ``order`` is None for channels in the order of their numbers.

    ``summary`` is of the whole tensor, ``maps`` and ``statistics`` are of the selection, which ``part`` has in words:
    ``"window 3 of 49"``, and ``""`` where it is all there is. Channels are sorted by all slices, so that they stay in
    their places from slice to slice. It has all that drawing it needs: downloads draw it later, where there is no
    session to ask.
    """

    tensor: Tensor
    maps: ChannelMaps
    summary: Summary
    statistics: ChannelStatistics
    order: npt.NDArray[np.int64] | None
    display: Display
    part: str = ""

    @property
    def picture(self) -> Picture:
        """What its figure is: maps, or where those would be single values or rows, something to be read at once."""
        channels, height, width = self.maps.maps.shape
        if not self.maps.maps.size or height > 1:
            return "maps"
        if width > 1:
            return "lines"
        return "bars" if channels > 1 else "number"


def arranged(
    tensor: Tensor,
    layout: Layout | None,
    by: ChannelOrder,
    display: Display,
    selection: Selection = WHOLE_FIRST_ITEM,
) -> Shown:
    """Read a tensor's axes, measure its channels and put them in order; without a ``layout`` the shape alone speaks.

    Raises:
        LayoutError: the layout does not fit the tensor, or the selection is not there.
    """
    name, grid = (layout.name, layout.grid) if layout else ("auto", None)
    item, depth, shows = selection.item, selection.depth, selection.shows
    part = channel_statistics(arrange(tensor, name, grid, item, depth=depth, shows=shows).values)
    whole = part
    if by != "index" and depth is not None:
        whole = channel_statistics(arrange(tensor, name, grid, item, shows=shows).values)
    return Shown(
        tensor=tensor,
        maps=channel_maps(tensor, name, grid, item, depth=depth, shows=shows),
        summary=summarize_kind(tensor, shows),
        statistics=part,
        order=None if by == "index" else channel_order(whole, by),
        display=display,
        part="  ·  ".join(_part_in_words(tensor, layout, selection)),
    )


def item_name(layout: Layout | None) -> str:
    """What the items of a batch are called: ``"window"`` where the layout's note says that windows are counted."""
    counted = re.search(r"first axis counts [\d,]+ (\w+?)s\b", layout.note if layout else "")
    return counted[1] if counted else "item"


def slice_name(layout: Layout | None) -> str:
    """What the slices of a volume are called: ``"frame"`` where the layout's note says that depth is time."""
    return "frame" if layout and re.search(r"\btime\b", layout.note) else "slice"


def _part_in_words(tensor: Tensor, layout: Layout | None, selection: Selection) -> list[str]:
    lengths = axis_lengths(tensor.shape, layout.name if layout else "auto")
    words = []
    if lengths.get("N", 1) > 1:
        words.append(f"{item_name(layout)} {selection.item + 1} of {lengths['N']:,}")
    if selection.depth is not None:
        words.append(f"{slice_name(layout)} {selection.depth + 1} of {lengths['D']:,}")
    if selection.shows not in {"auto", value_kinds(tensor)[0]}:
        words.append(selection.shows)
    return words


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
    """The page as a matplotlib figure with a title: numbered channels and a colour bar, or lines, bars or a number.

    Of a vector, all channels are in one figure, whatever the page.
    """
    parts = [f"{title(info.name)}  {info.class_name}  {size(shown.maps.shape)}", shown.part]
    heading = "  ·  ".join(filter(None, parts))
    if shown.picture == "number":
        return value_figure(shown.maps, title=heading, theme=theme)
    if shown.picture == "bars":
        return vector_figure(shown.maps, order=shown.order, title=heading, theme=theme)
    pages: _Pages = {"order": shown.order, "page": page, "per_page": per_page}
    if shown.picture == "lines":
        display = shown.display
        return sequence_figure(
            shown.maps, scale=display["scale"], robust=display["robust"], title=heading, theme=theme, **pages
        )
    return channel_grid_figure(shown.maps, title=heading, theme=theme, **pages, **shown.display)


class _Pages(TypedDict):
    order: npt.NDArray[np.int64] | None
    page: int
    per_page: int
