"""The mosaic as a component of our own: the very PNG of ``views.mosaic``, with channels to point at, open and walk."""

from __future__ import annotations

from hookviz.ui import state
from hookviz.ui.card_channels import CardChannels
from hookviz.ui.own_component import own_component
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import escaped
from hookviz.views import Mosaic, value_range, value_text
from hookviz.views.labels import NO_FINITE
from hookviz.views.palette import LEVELS, css

_show = own_component("channel_mosaic", isolate_styles=False)  # the page has other mosaics, drawn in the same style

_WIDEST_TILE = 200
"""CSS pixels; a few small maps are not blown up to the whole width."""

_SHRUNK_FROM = 560
"""CSS pixels that a card has for its mosaic; a wider one is shrunk, and without smoothing whole lines would vanish."""


def show_channel_mosaic(channels: CardChannels, picture: Mosaic, *, first: int) -> None:
    """Show a page of channels, of which one can be opened; ``first`` is how many channels come before it."""
    geometry = picture.geometry
    _show(
        key=state.mosaic_key(channels.position),
        data={
            "card": channels.position,
            "of": channels.of,
            "picture": data_url(picture.png),
            "alt": f"{len(geometry.channels)} channels of {channels.layer}, {geometry.columns} in a row",
            "columns": geometry.columns,
            "rows": geometry.rows,
            "width": geometry.width,
            "height": geometry.height,
            "tileWidth": geometry.tile_width,
            "tileHeight": geometry.tile_height,
            "gap": geometry.gap,
            "channels": list(geometry.channels),
            "ranges": [channel_range(picture, place) for place in range(len(geometry.channels))],
            "first": first,
            "total": channels.shown.maps.channels,
            "widest": geometry.columns * _WIDEST_TILE,
            "dense": geometry.width > _SHRUNK_FROM,
            "turn": state.channel_turn(channels.position),
        },
        on_step_change=lambda: state.take_step(channels.position),
    )


def channel_range(picture: Mosaic, place: int) -> str:
    """The range of the channel at a place in a picture: ``"−1.2 to 3.4"``, or that it is constant or not finite."""
    low, high = float(picture.extremes.vmin[place]), float(picture.extremes.vmax[place])
    text = value_range(low, high, numbers=picture.numbers)
    return text if text == NO_FINITE else text.replace(" … ", " to ")


def legend_markup(picture: Mosaic, shows: str) -> str:
    """The legend of a page: what the values are of, and what the colours stand for."""
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
    low, high = _ends(picture)
    return f"{low}{ramp_markup(picture.cmap)}{high}"


def ramp_markup(cmap: str) -> str:
    """A colormap as a short strip, by nine colours along it."""
    colours = ",".join(css(cmap, round(step * (LEVELS - 1) / 8)) for step in range(9))
    return f'<span class="hv-ramp" style="background:linear-gradient(90deg,{colours})"></span>'


def _ends(picture: Mosaic) -> tuple[str, str]:
    if picture.scale == "channel":
        return "each channel’s smallest", "largest"
    limits = picture.limits
    low, high = (value_text(float(limit[0]), picture.numbers) for limit in (limits.vmin, limits.vmax))
    return low, high
