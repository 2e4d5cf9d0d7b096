"""A mosaic to look at, beside another one; what can be clicked is in ``channel_mosaic``."""

from __future__ import annotations

from hookviz.ui.channel_mosaic import legend_markup
from hookviz.ui.prediction_panel import data_url
from hookviz.ui.style import escaped, show
from hookviz.views import Mosaic

_WIDEST_TILE = 110
"""CSS pixels, so that a few channels do not become posters."""


def show_mosaic_figure(title: str, picture: Mosaic, shows: str) -> None:
    """A page of channels with their numbers, a title above and the colours below; ``shows`` is what values are of."""
    geometry = picture.geometry
    cells = "".join(_cell(picture, place) for place in range(len(geometry.channels)))
    widest = geometry.columns * _WIDEST_TILE
    show(
        f'<div class="hv-part-title">{escaped(title)}</div>'
        f'<figure class="hv-mosaic" style="max-width:{widest}px"><img src="{data_url(picture.png)}" '
        f'alt="{len(geometry.channels)} channels of {escaped(title)}">{cells}</figure>{legend_markup(picture, shows)}'
    )


def _cell(picture: Mosaic, place: int) -> str:
    geometry = picture.geometry
    left, top = geometry.corner(place)
    return (
        f'<span class="cell" style="left:{100 * left / geometry.width:.3f}%;top:{100 * top / geometry.height:.3f}%;'
        f"width:{100 * geometry.tile_width / geometry.width:.3f}%;"
        f'height:{100 * geometry.tile_height / geometry.height:.3f}%">'
        f'<span class="number">{geometry.channels[place]}</span></span>'
    )
