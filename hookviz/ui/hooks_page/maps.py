"""The tensor a hook may replace, as it came and as it went on, in one range of colours."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from hookviz.errors import LayoutError
from hookviz.layout import channel_maps
from hookviz.types import FloatArray, LayerInfo
from hookviz.ui import state
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import escaped
from hookviz.views import Mosaic, mosaic_picture, number
from hookviz.views.palette import LEVELS, css

_SHOWN = 16
_COLUMNS = 8


def maps_markup(before: Tensor, after: Tensor, info: LayerInfo, what: str) -> str:
    """At most 16 channels, those that changed most first, before above after; what changed has a frame."""
    was, now = maps_of(before, info), maps_of(after, info)
    if was.shape != now.shape:
        return f'<p class="hv-quiet">{_shape(was)} became {_shape(now)}, which no picture compares.</p>'
    changed = {channel for channel in range(len(was)) if not np.array_equal(was[channel], now[channel], equal_nan=True)}
    channels = _chosen(was, now)
    both = np.concatenate([was, now])
    symmetric = state.display()["scale"] == "symmetric"
    pictures = [
        mosaic_picture(
            both,
            scale="symmetric" if symmetric else "shared",
            cmap=state.display()["cmap"],
            order=[channel + start for channel in channels],
            per_page=_SHOWN,
            columns=min(_COLUMNS, len(channels)),
        )
        for start in (0, len(was))
    ]
    shown = f"{len(channels)} of {len(was)} channels" if len(channels) < len(was) else f"all {len(was)} channels"
    count = f"{len(changed)} of {len(was)} changed" if changed else "none changed"
    return (
        f'<div class="hv-rowtitle">{escaped(what)} as it came ({shown})</div>{_figure(pictures[0], channels, set())}'
        f'<div class="hv-rowtitle" style="margin-top:.6rem">as it went on ({count})</div>'
        f"{_figure(pictures[1], channels, changed)}{_ramp(pictures[0])}"
    )


def map_markup(values: FloatArray, title: str) -> str:
    """One map (H, W) in colours around zero, with its colour bar."""
    picture = mosaic_picture(values[None], scale="symmetric", cmap=state.display()["cmap"])
    if picture.note:
        return f'<div class="hv-rowtitle">{escaped(title)}</div><p class="hv-quiet">{escaped(picture.note)}</p>'
    return (
        f'<div class="hv-rowtitle">{escaped(title)}</div><figure class="hv-single"><img '
        f'src="{data_url(picture.png)}" alt="{escaped(title)} of the channel"></figure>'
        f'<div class="hv-legend">{_bar(picture)}</div>'
    )


def maps_of(tensor: Tensor, info: LayerInfo) -> FloatArray:
    """A layer's tensor as maps (C, H, W), read as the layer's output where its axes are as many."""
    layout = next((one for one in info.layouts if one is not None), None)
    if layout is not None and len(layout.name) == tensor.ndim:
        try:
            return channel_maps(tensor, layout.name, layout.grid).maps
        except LayoutError:  # the input of a layer need not be arranged as its output
            pass
    return channel_maps(tensor).maps


def _chosen(was: FloatArray, now: FloatArray) -> list[int]:
    with np.errstate(all="ignore"):
        change = np.nan_to_num(np.abs(now.astype(np.float64) - was)).mean((1, 2))
        strength = np.nan_to_num(np.abs(was.astype(np.float64))).mean((1, 2))
    order = np.lexsort((-strength, -change))
    return sorted(order[:_SHOWN].tolist())


def _shape(maps: FloatArray) -> str:
    return " × ".join(map(str, maps.shape))


def _figure(picture: Mosaic, channels: list[int], changed: set[int]) -> str:
    geometry = picture.geometry
    if picture.note:
        return f'<p class="hv-quiet">{escaped(picture.note)}</p>'
    cells = []
    for position, channel in enumerate(channels):
        left, top = geometry.corner(position)
        mark = " changed" if channel in changed else ""
        cells.append(
            f'<span class="cell{mark}" style="left:{100 * left / geometry.width:.3f}%;'
            f"top:{100 * top / geometry.height:.3f}%;width:{100 * geometry.tile_width / geometry.width:.3f}%;"
            f'height:{100 * geometry.tile_height / geometry.height:.3f}%"><span class="number">{channel}</span></span>'
        )
    alt = f"{len(channels)} channels" + (
        f", changed: {', '.join(map(str, sorted(changed & set(channels))))}" * bool(changed)
    )
    return (
        f'<figure class="hv-mosaic" style="max-width:{geometry.columns * 110}px">'
        f'<img src="{data_url(picture.png)}" alt="{escaped(alt)}">{"".join(cells)}</figure>'
    )


def _ramp(picture: Mosaic) -> str:
    return f'<div class="hv-legend">{_bar(picture)}<span>both in one range</span></div>'


def _bar(picture: Mosaic) -> str:
    colours = ",".join(css(picture.cmap, round(step * (LEVELS - 1) / 8)) for step in range(9))
    low, high = (number(float(limit[0])) for limit in (picture.limits.vmin, picture.limits.vmax))
    ramp = f'<span class="hv-ramp" style="background:linear-gradient(90deg,{colours})"></span>'
    return f"<span>{low}{ramp}{high}</span>"
