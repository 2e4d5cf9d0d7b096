"""One page of channels turned into palette entries, with everything a reader needs to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hookviz.types import ChannelMaps
from hookviz.views.palette import CLASS_NAMES, CONSTANT, LEVELS, NAN, NEGINF, POSINF, css
from hookviz.views.scaling import Limits, channel_limits, check_scale, extremes, layer_limits, levels
from hookviz.views.source import numbers, original_shape, read, shape_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import Scale
    from hookviz.views.labels import Numbers
    from hookviz.views.source import Channels, Maps, Source


class LegendEntry(NamedTuple):
    """What a colour stands for that is not a level of the colormap.

    ``total`` counts values for ``NaN``, ``+Inf`` and ``-Inf``, channels for ``constant``, and pixels for ``gap``. Of
    booleans the two levels that there are have entries too, ``false`` and ``true``, counted in values.
    """

    label: str
    colour: str
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Drawing:
    """A page of channels as palette entries.

    ``entries`` is (n, H, W) uint8. ``limits`` has the values of the first and last colour, ``extremes`` the smallest
    and largest finite value, both for each shown channel. ``scale`` is the scale as used: ``shared`` where ``channel``
    was asked for maps of a single value, of which each would be constant. ``clipped`` counts finite values outside the
    limits. ``legend`` names the classes present. ``note`` says why there is nothing to see, else ``""``. ``numbers``
    says what the values are; booleans have the two ends of the colormap under every scale. ``shows`` says what they are
    of, as :class:`~hookviz.types.ChannelMaps` has it.
    """

    entries: npt.NDArray[np.uint8]
    limits: Limits
    extremes: Limits
    scale: Scale
    cmap: str
    clipped: int
    legend: tuple[LegendEntry, ...]
    note: str = ""
    numbers: Numbers = "real"
    shows: str = "value"


def draw(  # noqa: PLR0913  # as mosaic_picture, which passes on what it is given
    maps: Maps, channels: npt.NDArray[np.intp], *, scale: Scale, robust: bool, cmap: str, like: Maps | None = None
) -> Drawing:
    """Colour the chosen channels; shared and symmetric limits are those of all channels, whichever are shown.

    With ``like``, other maps with these channels, limits are those of both together.

    Raises:
        ViewError: A scale or a colormap that does not exist.
    """
    check_scale(scale)
    height, width = shape_of(maps)[1:]
    used: Scale = "shared" if scale == "channel" and height * width == 1 else scale
    if len(channels) == 0 or height * width == 0:
        return _nothing(maps, used, cmap)
    source = read(maps, _as_slice(channels))
    if numbers(maps) == "boolean":
        return _truths(source, cmap)
    limits = _limits(maps, source, used, robust=robust)
    if like is not None:
        limits = _united(limits, _limits(like, read(like, _as_slice(channels)), used, robust=robust))
    full = extremes(source)
    return Drawing(
        entries=_entries(source, limits, clip=robust),
        limits=limits,
        extremes=full,
        scale=used,
        cmap=cmap,
        clipped=_clipped(source, limits) if robust else 0,
        legend=_legend(source, limits, full, cmap),
        numbers=numbers(maps),
        shows=maps.shows if isinstance(maps, ChannelMaps) else "value",
    )


def _limits(maps: Maps, source: Source, scale: Scale, *, robust: bool) -> Limits:
    """Of the channels in ``source``, which are some of those of ``maps``."""
    if scale == "channel":
        return channel_limits(source, robust=robust)
    low, high = layer_limits(read(maps, slice(None)), robust=robust, symmetric=scale == "symmetric")
    return _same_for_all(source, low, high)


def _united(one: Limits, other: Limits) -> Limits:
    """From the lower of both to the higher; one without a finite value has no say."""
    return Limits(np.fmin(one.vmin, other.vmin), np.fmax(one.vmax, other.vmax))


def _truths(source: Source, cmap: str) -> Drawing:
    limits = _same_for_all(source, 0.0, 1.0)
    true = int(np.count_nonzero(source.values))
    ends = (
        LegendEntry("false", css(cmap, 0), source.values.size - true),
        LegendEntry("true", css(cmap, LEVELS - 1), true),
    )
    entries = _entries(source, limits, clip=False)
    return Drawing(entries, limits, extremes(source), "shared", cmap, 0, ends, numbers="boolean")


def _same_for_all(source: Source, low: float, high: float) -> Limits:
    return Limits(np.full(len(source.values), low), np.full(len(source.values), high))


def _entries(source: Source, limits: Limits, *, clip: bool) -> npt.NDArray[np.uint8]:
    entries = levels(source, limits, clip=clip)
    entries[limits.constant] = CONSTANT
    if source.classes is not None:
        np.copyto(entries, source.classes, where=source.classes != 0)
    return entries


def _legend(source: Source, limits: Limits, full: Limits, cmap: str) -> tuple[LegendEntry, ...]:
    counts = {CONSTANT: int(np.count_nonzero(limits.constant & ~np.isnan(full.vmin)))}
    if source.classes is not None:
        counts |= {entry: int(np.count_nonzero(source.classes == entry)) for entry in (NAN, POSINF, NEGINF)}
    return tuple(
        LegendEntry(CLASS_NAMES[entry], css(cmap, entry), counts[entry]) for entry in sorted(counts) if counts[entry]
    )


def _clipped(source: Source, limits: Limits) -> int:
    low, high = limits.vmin[:, None, None], limits.vmax[:, None, None]
    outside = (source.values < low) | (source.values > high)
    return int(np.count_nonzero(outside if source.finite is None else outside & source.finite))


def _nothing(maps: Maps, scale: Scale, cmap: str) -> Drawing:
    css(cmap, CONSTANT)  # an unknown colormap is refused here too
    shape = shape_of(maps)
    note = f"empty (0 elements, shape {original_shape(maps)})" if 0 in shape else "no channels chosen"
    none = Limits(np.empty(0), np.empty(0))
    return Drawing(np.empty((0, *shape[1:]), np.uint8), none, none, scale, cmap, 0, (), note)


def _as_slice(channels: npt.NDArray[np.intp]) -> Channels:
    # A slice is a view where an index array is a copy.
    first, count = int(channels[0]), len(channels)
    return slice(first, first + count) if np.array_equal(channels, np.arange(first, first + count)) else channels
