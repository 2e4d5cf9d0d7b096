"""One card per chosen layer: every channel, the distribution, the numbers, and how true they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import streamlit as st
from matplotlib.figure import Figure
from torch import Tensor

from hookviz.channels import channel_order, channel_statistics, dead_channels_apply
from hookviz.hooks import Call, Overwrite
from hookviz.hooks.structure import leaves
from hookviz.layout import arrange, channel_maps
from hookviz.statistics import summarize
from hookviz.types import ChannelMaps, ChannelStatistics, LayerInfo, Layout, Summary
from hookviz.ui import state
from hookviz.ui.channel_mosaic import mosaic_markup
from hookviz.ui.downloads import show_downloads
from hookviz.ui.layer_picker import size
from hookviz.ui.layout_choice import choose_layout
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.resources import LayerCapture
from hookviz.ui.sentences import one_sentence
from hookviz.ui.style import badge, escaped, show, theme_name
from hookviz.views import channel_grid_figure, figure_bytes, histogram_figure, mosaic_picture, number, page_count

PER_PAGE = 64
_MOSAIC, _FIGURE = "Mosaic", "Figure"


@dataclass(frozen=True, slots=True)
class Shown:
    """One tensor of one call as the card shows it."""

    tensor: Tensor
    maps: ChannelMaps
    summary: Summary
    statistics: ChannelStatistics
    order: npt.NDArray[np.int64]


@st.fragment
def show_layer(position: int, view: str, info: LayerInfo, capture: LayerCapture) -> None:
    """The card of one layer; ``view`` is what its values are known by."""
    with st.container(border=True, key=f"card-{position}"), one_sentence():
        if not capture.calls:
            show(_title(info, "") + '<p class="hv-quiet">This layer was not called for this input.</p>')
            return
        title_place = st.container()
        call = _choose_call(position, view, capture)
        path, tensor = _choose_tensor(position, call)
        with title_place:
            if tensor is None:
                show(_title(info, "") + '<p class="hv-quiet">This layer returned no tensor.</p>')
                return
            overwrite = _overwrite_of(capture, call, path)
            naive = _show_title(position, info, tensor, overwrite)
        layout = choose_layout(position, view, tensor, _known_layout(info, call, path))
        shown = _arranged(overwrite.naive if overwrite and naive else tensor, layout)
        _show_body(position, view, info, call, shown)


def _choose_call(position: int, view: str, capture: LayerCapture) -> Call:
    if len(capture.calls) == 1:
        return capture.calls[0]
    key = f"call-{position}"
    state.settle_index(key, len(capture.calls), view, first=0)
    number_of_call = st.segmented_control(
        f"Called {len(capture.calls)} times in one forward",
        range(len(capture.calls)),
        default=0,
        key=key,
        required=True,
        format_func=lambda index: f"call {index + 1}",
    )
    return capture.calls[number_of_call or 0]


def _choose_tensor(position: int, call: Call) -> tuple[str, Tensor | None]:
    tensors = dict(leaves(call.output, Tensor))
    if not tensors:
        return "", None
    if len(tensors) == 1:
        return next(iter(tensors.items()))
    path = st.selectbox("Part of the output", list(tensors), key=f"part-{position}-{call.layer}-{call.index}")
    return path, tensors[path]


def _overwrite_of(capture: LayerCapture, call: Call, path: str) -> Overwrite | None:
    return next((one for one in capture.overwrites if one.call == call.index and one.path == path), None)


def _show_title(position: int, info: LayerInfo, tensor: Tensor, overwrite: Overwrite | None) -> bool:
    """The heading with the truth badge; whether the naive values are asked for."""
    details = f"{size(tuple(tensor.shape))} · {str(tensor.dtype).removeprefix('torch.')}"
    if overwrite is None:
        show(_title(info, details, badge("good", "✓ exact")))
        return False
    by = overwrite.by or "the network's own forward"
    with st.container(horizontal=True, vertical_alignment="center"):
        title, switch = st.container(), st.container(width="content")
    naive = switch.toggle(
        "Show what a naive hook shows",
        key=f"naive-{position}-{info.name}-{overwrite.call}",
        help=(
            "A hook that stores `output.detach()` keeps the memory, not the values. "
            f"Here {by} wrote into it before the forward ended."
        ),
    )
    truth = badge("bad", "naive: not what the layer computed") if naive else badge("good", "✓ exact")
    with title:
        show(_title(info, details, truth, badge("warn", f"later overwritten in place by {by}")))
    return naive


def _title(info: LayerInfo, details: str, *badges: str) -> str:
    name = escaped(info.name or "(whole network)")
    return (
        f'<div class="hv-title"><span class="layer hv-mono">{name}</span>'
        f'<span class="hv-quiet">{escaped(info.class_name)}{" · " + escaped(details) if details else ""}</span>'
        f"{''.join(badges)}</div>"
    )


def _known_layout(info: LayerInfo, call: Call, path: str) -> Layout | None:
    """What is known of the call's first tensor; nothing is of the others."""
    is_first = call.output_info[0].path == path
    return info.layouts[call.index] if is_first and call.index < len(info.layouts) else None


def _arranged(tensor: Tensor, layout: Layout) -> Shown:
    maps = channel_maps(tensor, layout.name, layout.grid)
    statistics = channel_statistics(arrange(tensor, layout.name, layout.grid).values)
    order = channel_order(statistics, state.chosen_order())
    return Shown(tensor, maps, summarize(tensor), statistics, order)


def _show_body(position: int, view: str, info: LayerInfo, call: Call, shown: Shown) -> None:
    pages = page_count(shown.maps.channels, PER_PAGE)
    state.settle_index(f"page-{position}", pages, f"{view} {call.index}", first=1)
    page = 0
    with st.container(horizontal=True, vertical_alignment="center"):
        kind = st.segmented_control(
            "View",
            [_MOSAIC, _FIGURE],
            default=_MOSAIC,
            required=True,
            key=f"view-{position}",
            label_visibility="collapsed",
        )
        if pages > 1:
            page = st.pagination(pages, key=f"page-{position}", width=min(pages, 7) * 44 + 100) - 1
            first = page * PER_PAGE
            st.caption(
                f"{first + 1}–{min(first + PER_PAGE, shown.maps.channels)} of {shown.maps.channels} channels",
                width="content",
            )
    if kind == _FIGURE:
        _show_figure(info, shown, page)
        histogram, numbers = st.columns([2, 3], gap="medium", vertical_alignment="center")
    else:
        pictures, histogram = st.columns([3, 2], gap="medium")
        numbers = histogram
        with pictures:
            _show_mosaic(info, shown, page)
    with histogram:
        _show_histogram(shown)
    with numbers:
        _show_numbers(info, shown)
    show_downloads(
        f"{position}-{view}-{call.index}",
        info,
        shown.tensor,
        lambda: _figure(info, shown, page, "light"),
        lambda: (shown.summary, shown.statistics),
    )


def _show_mosaic(info: LayerInfo, shown: Shown, page: int) -> None:
    picture = mosaic_picture(shown.maps, order=_order(shown), page=page, **state.display())
    show(mosaic_markup(picture, shown.statistics, info.name or "the whole network"))
    _show_note(shown)


def _show_figure(info: LayerInfo, shown: Shown, page: int) -> None:
    png = figure_bytes(_figure(info, shown, page, theme_name()), "png", dpi=150)
    alt = f"Channels of {info.name or 'the whole network'} with numbers, ranges and a colour bar"
    show(f'<div class="hv-figure"><img src="{data_url(png)}" alt="{escaped(alt)}"></div>')
    _show_note(shown)


def _figure(info: LayerInfo, shown: Shown, page: int, theme: Literal["light", "dark"]) -> Figure:
    return channel_grid_figure(
        shown.maps,
        order=_order(shown),
        page=page,
        title=f"{info.name or '(whole network)'}  {info.class_name}  {size(shown.maps.shape)}",
        theme=theme,
        **state.display(),
    )


def _order(shown: Shown) -> npt.NDArray[np.int64] | None:
    return None if state.chosen_order() == "index" else shown.order


def _show_note(shown: Shown) -> None:
    if shown.maps.note:
        st.caption(shown.maps.note)


def _show_histogram(shown: Shown) -> None:
    svg = figure_bytes(histogram_figure(shown.summary, theme=theme_name()), "svg")
    alt = "Histogram of all values of the layer"
    show(f'<div class="hv-figure"><img src="{data_url(svg, "image/svg+xml")}" alt="{alt}"></div>')


def _show_numbers(info: LayerInfo, shown: Shown) -> None:
    summary, statistics = shown.summary, shown.statistics
    rows = {
        "mean": _text(summary.mean),
        "sd (population)": _text(summary.std),
        "min": _text(summary.min),
        "max": _text(summary.max),
        "zeros": "n/a" if summary.sparsity is None else f"{100 * summary.sparsity:.1f} %",
        "values": f"{summary.count:,}",
    }
    if summary.shows != "value":
        rows["of"] = summary.shows
    constant = int(np.count_nonzero(statistics.min == statistics.max)) if statistics.count > 1 else 0
    if constant:
        rows["constant channels"] = f"{constant} of {len(statistics.mean)}"
    if dead_channels_apply(info.class_name) and statistics.count > 1:
        silent = int(np.count_nonzero(statistics.zeros == statistics.count))
        rows["channels all zero here"] = f"{silent} of {len(statistics.mean)}"
    rows |= {
        name: f"{value:,}"
        for name, value in (("NaN", summary.nan), ("+Inf", summary.posinf), ("−Inf", summary.neginf))
        if value
    }
    cells = "".join(
        f'<span><span class="what">{escaped(name)}</span>{escaped(value)}</span>' for name, value in rows.items()
    )
    show(f'<div class="hv-numbers">{cells}</div>')


def _text(value: float | None) -> str:
    return "n/a" if value is None else number(value)
