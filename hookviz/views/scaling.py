"""How values become levels: the limits of each channel, and the place of a value between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from hookviz.errors import ViewError
from hookviz.types import Scale
from hookviz.views.palette import LEVELS

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.views.source import Source

SCALES: tuple[Scale, ...] = get_args(Scale)
ROBUST_PERCENTILES = (1.0, 99.0)

# Elements worked on at a time: float64 copies of this many stay in a core's cache.
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The values that get the first and the last colour: float64 arrays, one per channel, NaN where none is finite."""

    vmin: npt.NDArray[np.float64]
    vmax: npt.NDArray[np.float64]

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """Which channels have finite values but no range to spread over colours."""
        return np.equal(self.vmin, self.vmax)


def check_scale(scale: str) -> None:
    """Refuse a scale that does not exist.

    Raises:
        ViewError: Names the scales there are.
    """
    if scale not in SCALES:
        raise ViewError(f"no scale {scale!r}; choose one of {', '.join(SCALES)}")


def extremes(source: Source) -> Limits:
    """Smallest and largest finite value of each channel."""
    rows = source.values.reshape(len(source.values), -1)
    if source.finite is None:
        return Limits(rows.min(axis=1).astype(np.float64), rows.max(axis=1).astype(np.float64))
    finite = source.finite.reshape(rows.shape)
    lowest = np.where(finite, rows, np.inf).min(axis=1).astype(np.float64)
    highest = np.where(finite, rows, -np.inf).max(axis=1).astype(np.float64)
    none = ~finite.any(axis=1)
    return Limits(np.where(none, np.nan, lowest), np.where(none, np.nan, highest))


def channel_limits(source: Source, *, robust: bool) -> Limits:
    """Limits for each channel alone: all its finite values, or the middle 98 % of them.

    Where so few values differ that the robust limits coincide, the full range is used.
    """
    full = extremes(source)
    if not robust:
        return full
    low, high = _percentiles(source)
    usable = (low < high) & np.isfinite(low) & np.isfinite(high)
    return Limits(np.where(usable, low, full.vmin), np.where(usable, high, full.vmax))


def layer_limits(source: Source, *, robust: bool, symmetric: bool) -> tuple[float, float]:
    """One pair of limits for all channels together, (NaN, NaN) where no value is finite."""
    classes = None if source.classes is None else source.classes.reshape(1, 1, -1)
    whole = type(source)(source.values.reshape(1, 1, -1), classes)
    limits = channel_limits(whole, robust=robust)
    low, high = float(limits.vmin[0]), float(limits.vmax[0])
    if symmetric:
        reach = max(abs(low), abs(high))
        return -reach, reach
    return low, high


def levels(source: Source, limits: Limits, *, clip: bool) -> npt.NDArray[np.uint8]:
    """The level, 0 to 249, of each value: ``round((value - vmin) / (vmax - vmin) * 249)`` in float64.

    Values outside the limits get the nearest end; only with ``clip`` may there be any. Channels without a range get 0.
    """
    ranged = limits.vmin < limits.vmax
    vmin, vmax = np.where(ranged, limits.vmin, 0.0), np.where(ranged, limits.vmax, np.inf)
    with np.errstate(over="ignore"):
        shrink = np.where(ranged & np.isinf(vmax - vmin), 0.5, 1.0)  # a range can be twice the largest float64
    clip = clip or source.classes is not None  # the zeros that stand for what is not finite may lie outside
    result = np.empty(source.values.shape, np.uint8)
    step = max(1, _BLOCK // max(1, source.values[0].size)) if len(result) else 1
    for start in range(0, len(result), step):
        block = slice(start, start + step)
        bounds = (part[block, None, None] for part in (vmin, vmax, shrink))
        result[block] = _block_levels(source.values[block], *bounds, clip=clip)
    return result


def _block_levels(
    values: npt.NDArray[Any],
    vmin: npt.NDArray[np.float64],
    vmax: npt.NDArray[np.float64],
    shrink: npt.NDArray[np.float64],
    *,
    clip: bool,
) -> npt.NDArray[np.float64]:
    place = np.clip(values, vmin, vmax) if clip else values.astype(np.float64)
    if shrink.min() < 1.0:
        place *= shrink
        vmin, vmax = vmin * shrink, vmax * shrink
    place -= vmin
    place /= vmax - vmin
    place *= LEVELS - 1
    return np.rint(place, out=place)


def _percentiles(source: Source) -> npt.NDArray[np.float64]:
    rows = source.values.reshape(len(source.values), -1).astype(np.float64)
    # Interpolating between neighbours near ±1e308 can overflow; such limits are not finite, and not used.
    with np.errstate(over="ignore", invalid="ignore"):
        if source.finite is None:
            return np.percentile(rows, ROBUST_PERCENTILES, axis=1)
        finite = source.finite.reshape(rows.shape)
        pairs = [_percentile_pair(row[keep]) for row, keep in zip(rows, finite, strict=True)]
        return np.array(pairs).T


def _percentile_pair(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.percentile(values, ROBUST_PERCENTILES) if values.size else np.full(2, np.nan)
