"""What the channels of every layer are good for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hookviz.views.depth_chart import WIDTH, depth_chart, share_axis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from hookviz.views.theme import ThemeName

_BLUE = "#3b82d0"  # readable on both themes


class ChannelHealth(NamedTuple):
    """How many channels a layer has, and how many of them are dead, constant or duplicated; each at most one of it."""

    channels: int
    dead: int
    constant: int
    duplicated: int


def channel_health_figure(
    layers: Sequence[ChannelHealth | None], *, title: str | None = None, theme: ThemeName = "light"
) -> Figure:
    """A bar of 100 % for each layer: dead, constant and duplicated channels from the foot up, then the rest.

    Args:
        layers: In order; None where a layer's axes name no channels, or a channel has too few values to tell.
        title: The first line; None is ``"channels by depth"``.
        theme: ``"light"`` or ``"dark"``.

    Raises:
        ViewError: No layers, or a theme that does not exist.
    """
    caption = "share of each layer's channels  ·  no bar: not to be told of this layer"
    canvas, plot = depth_chart(len(layers), "channels by depth" if title is None else title, caption, theme)
    look, places = canvas.theme, np.arange(1, len(layers) + 1)
    known = [one if one is not None and one.channels else ChannelHealth(0, 0, 0, 0) for one in layers]
    counts = np.array(known, np.float64).reshape(-1, 4)
    shares = counts[:, 1:] / np.maximum(counts[:, :1], 1)
    rest = np.where(counts[:, 0] > 0, 1 - shares.sum(axis=1), 0.0)
    kinds = {"dead": look.ink, "constant": look.accent, "duplicated": _BLUE, "active": look.bars}
    bottom = np.zeros(len(layers))
    for (name, colour), heights in zip(kinds.items(), [*shares.T, rest], strict=True):
        faint = 0.45 if name == "active" else 1.0
        plot.bar(places, heights, 0.86, bottom=bottom, color=colour, alpha=faint, linewidth=0, label=name)
        bottom = bottom + heights
    left = WIDTH - 20
    for name, colour in reversed(kinds.items()):
        left -= 30 + round(6.2 * len(name))
        canvas.swatch(left, 20, 9, colour)
        canvas.text(left + 13, 18, name)
    share_axis(canvas, plot)
    return canvas.figure
