"""The mosaic as markup: the very PNG of ``views.mosaic``, with the channels' numbers laid over it."""

from __future__ import annotations

from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import escaped
from hookviz.views import Mosaic, value_range, value_text
from hookviz.views.palette import LEVELS, css

_WIDEST_TILE = 200
"""CSS pixels; a few small maps are not blown up to the whole width."""

_SHRUNK_FROM = 560
"""CSS pixels that a card has for its mosaic; a wider one is shrunk, and without smoothing whole lines would vanish."""


def mosaic_markup(picture: Mosaic, shows: str, layer: str) -> str:
    """A page of channels, their numbers, and the legend: what the values are of, and what the colours stand for."""
    geometry = picture.geometry
    alt = f"{len(geometry.channels)} channels of {layer}, {geometry.columns} in a row"
    if picture.note:
        return f'<p class="hv-quiet">{escaped(picture.note)}</p>'
    cells = "".join(_cell(picture, position) for position in range(len(geometry.channels)))
    dense = " dense" if geometry.width > _SHRUNK_FROM else ""
    return (
        f'<figure class="hv-mosaic{dense}" style="max-width:{geometry.columns * _WIDEST_TILE}px">'
        f'<img src="{data_url(picture.png)}" alt="{escaped(alt)}">{cells}</figure>{_legend(picture, shows)}'
    )


def _cell(picture: Mosaic, position: int) -> str:
    geometry = picture.geometry
    channel = geometry.channels[position]
    left, top = geometry.corner(position)
    low, high = float(picture.extremes.vmin[position]), float(picture.extremes.vmax[position])
    words = f"channel {channel}: {value_range(low, high, numbers=picture.numbers)}"
    return (
        f'<span class="cell" title="{escaped(words)}" style="left:{100 * left / geometry.width:.3f}%;'
        f"top:{100 * top / geometry.height:.3f}%;width:{100 * geometry.tile_width / geometry.width:.3f}%;"
        f'height:{100 * geometry.tile_height / geometry.height:.3f}%"><span class="number">{channel}</span></span>'
    )


def _legend(picture: Mosaic, shows: str) -> str:
    entries = [] if shows == "value" else [f"<span><b>{escaped(shows)}</b></span>"]
    if picture.numbers != "boolean":  # its two colours have names
        entries.append(f"<span>{_ramp(picture)}</span>")
    entries += [
        f'<span><span class="swatch" style="background:{entry.colour}"></span>'
        f"{escaped(entry.label)} {entry.total:,}</span>"
        for entry in picture.legend
        if entry.label != "gap"
    ]
    if picture.clipped:
        entries.append(f"<span>{picture.clipped:,} values beyond the limits</span>")
    return f'<div class="hv-legend">{"".join(entries)}</div>'


def _ramp(picture: Mosaic) -> str:
    colours = ",".join(_colours(picture.cmap))
    low, high = _ends(picture)
    return f'{low}<span class="hv-ramp" style="background:linear-gradient(90deg,{colours})"></span>{high}'


def _ends(picture: Mosaic) -> tuple[str, str]:
    if picture.scale == "channel":
        return "each channel’s smallest", "largest"
    limits = picture.limits
    low, high = (value_text(float(limit[0]), picture.numbers) for limit in (limits.vmin, limits.vmax))
    return low, high


def _colours(cmap: str) -> list[str]:
    """Nine colours along a colormap, for a gradient."""
    return [css(cmap, round(step * (LEVELS - 1) / 8)) for step in range(9)]
