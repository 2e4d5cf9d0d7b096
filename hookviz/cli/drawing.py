"""How the command line draws a layer: as the page does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from matplotlib.figure import Figure
from torch import Tensor

from hookviz.cli.console import Console
from hookviz.cli.output_value import one_call, one_tensor
from hookviz.describe import title
from hookviz.errors import HookvizError
from hookviz.hooks import Call
from hookviz.known_layouts import known_layout
from hookviz.layer_picture import (
    PAPER_DPI,
    Display,
    Selection,
    Shown,
    arranged,
    draw_figure,
    draw_mosaic,
    item_name,
    slice_name,
)
from hookviz.layout import axis_lengths
from hookviz.types import ChannelOrder, LayerInfo, Layout
from hookviz.value_kinds import COMPLEX, QUANTIZED
from hookviz.views import figure_bytes, page_count

KINDS = {kind.split()[0]: kind for kind in (*COMPLEX, *QUANTIZED)}
"""What values can be shown as, in one word each."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn of each layer, and how; ``page``, ``call``, ``item`` and ``slice`` count from 1."""

    by: ChannelOrder
    display: Display
    per_page: int
    page: int
    call: int | None
    part: str | None
    theme: Literal["light", "dark"]
    item: int | None = None
    slice: int | None = None
    shows: str = "auto"

    @classmethod
    def of(cls, chosen: argparse.Namespace) -> Drawing:
        """As the words say."""
        return cls(
            by=chosen.sort,
            display=Display(scale=chosen.scale, robust=chosen.robust, cmap=chosen.cmap),
            per_page=chosen.per_page,
            page=chosen.page,
            call=chosen.call,
            part=chosen.part,
            theme=chosen.theme,
            item=chosen.item,
            slice=chosen.slice,
            shows=KINDS.get(chosen.shows, "auto"),
        )

    def shown(self, info: LayerInfo, calls: Sequence[Call], console: Console) -> Shown:
        """The tensor to draw, with notes on what is left out of the picture.

        Raises:
            HookvizError: no such call, part or page, or a tensor whose axes nothing is known of.
        """
        name, call = title(info.name), one_call(calls, self.call or 1)
        path, tensor = one_tensor(call, self.part)
        layout = known_layout(info, call, path)
        shown = arranged(tensor, layout, self.by, self.display, self._selection(name, tensor, layout, console))
        pages = page_count(shown.maps.channels, self.per_page)
        if self.page > pages:
            raise HookvizError(
                f"{name} has {shown.maps.channels} channels, so there is no page {self.page} of {pages}."
            )
        if len(calls) > 1 and self.call is None:
            console.note(f"{name} runs {len(calls)} times, and this is call 1; --call chooses another")
        if len(call.output_info) > 1 and self.part is None:
            parts = ", ".join(one.path for one in call.output_info)
            console.note(f"{name} returns several tensors, and this is {path!r}; --part chooses among {parts}")
        if pages > 1:
            console.note(f"{name} has {shown.maps.channels} channels, and this is page {self.page} of {pages}")
        console.note(f"{name}: {shown.maps.note}" if shown.maps.note else "")
        return shown

    def _selection(self, name: str, tensor: Tensor, layout: Layout | None, console: Console) -> Selection:
        lengths = axis_lengths(tensor.shape, layout.name if layout else "auto")
        items, slices = lengths.get("N", 1), lengths.get("D", 1)
        for option, asked, there, what in (
            ("--item", self.item, items, item_name(layout)),
            ("--slice", self.slice, slices, slice_name(layout)),
        ):
            counted = f"{there:,} {what}" + "s" * (there != 1)
            if (asked or 1) > max(1, there):
                raise HookvizError(f"{name} has {counted}, so there is no {what} {asked}.")
            if there > 1 and asked is None:
                console.note(f"{name} has {counted}, and this is {what} 1; {option} chooses another")
        return Selection((self.item or 1) - 1, (self.slice or 1) - 1 if "D" in lengths else None, self.shows)

    def mosaic(self, shown: Shown) -> bytes:
        """A PNG, a pixel for each value: the very bytes of the page."""
        return draw_mosaic(shown, self.page - 1, per_page=self.per_page).png

    def figure(self, info: LayerInfo, shown: Shown) -> Figure:
        """The figure with title, numbers and a colour bar."""
        return draw_figure(info, shown, self.page - 1, per_page=self.per_page, theme=self.theme)

    def figure_file(self, info: LayerInfo, shown: Shown, suffix: str) -> bytes:
        """The figure as the page gives it to download, ``.png`` or ``.svg``."""
        if suffix == ".png":
            return figure_bytes(self.figure(info, shown), "png", dpi=PAPER_DPI)
        return figure_bytes(self.figure(info, shown), "svg")
