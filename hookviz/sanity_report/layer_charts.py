"""The layers of a report as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from hookviz.describe import title
from hookviz.sanity import Compared, LayerRow
from hookviz.views import (
    ChannelHealth,
    SignedLogAxis,
    channel_health_figure,
    likeness_by_depth_figure,
    ridge_figure,
    spread_by_depth_figure,
)

PER_PAGE = 50
"""Rows of a ridge that fit on a sheet of paper."""


def row_name(row: LayerRow, layers: Sequence[LayerRow]) -> str:
    """A layer, with which call and which part of what it returned where there are several."""
    again = any(one.call > 1 for one in layers if one.layer == row.layer)
    return " ".join(filter(None, (title(row.layer), f"call {row.call}" if again else "", row.part)))


def ridges(layers: Sequence[LayerRow], names: Sequence[str]) -> Iterator[Figure]:
    """All layers over one axis, in as many figures as paper needs."""
    axis = SignedLogAxis.of_summaries(one.summary for one in layers)
    pages = -(-len(layers) // PER_PAGE)
    step = -(-len(layers) // pages)
    for first in range(0, len(layers), step):
        last = min(first + step, len(layers))
        rows = [(f"{names[at]}  {at + 1}", layers[at].summary) for at in range(first, last)]
        words = "values by depth" if pages == 1 else f"values by depth, layers {first + 1} to {last} of {len(layers)}"
        yield ridge_figure(rows, axis=axis, title=words)


def spread(layers: Sequence[LayerRow]) -> Figure:
    """Mean and spread of all layers."""
    means, deviations = ([one.summary.mean for one in layers], [one.summary.std for one in layers])
    return spread_by_depth_figure(_numbers(means), _numbers(deviations))


def health(layers: Sequence[LayerRow]) -> Figure | None:
    """The channels of all layers; None where nothing can be told of any."""
    counts = [_health(one) for one in layers]
    return channel_health_figure(counts) if any(counts) else None


def likeness(compared: Compared, layers: Sequence[LayerRow]) -> Figure | None:
    """How alike the layers are, under the numbers that they have among all layers; None of no layer."""
    numbers = numbers_of_layers(layers)
    values = {numbers[one.layer]: one.cka for one in compared.layers if one.layer in numbers}
    places = sorted(values)
    if not places:
        return None
    return likeness_by_depth_figure(_numbers([values[one] for one in places]), places=np.array(places, np.int64))


def numbers_of_layers(layers: Sequence[LayerRow]) -> dict[str, int]:
    """The number of the first row of every layer, from 1."""
    return {one.layer: number for number, one in reversed(list(enumerate(layers, 1)))}


def _health(row: LayerRow) -> ChannelHealth | None:
    if row.channels is None or row.dead is None or row.constant is None or row.duplicated is None:
        return None
    return ChannelHealth(row.channels, row.dead, row.constant, row.duplicated)


def _numbers(values: Sequence[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], np.float64)
