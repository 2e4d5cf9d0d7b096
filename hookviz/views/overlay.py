"""A map laid over the image it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from hookviz.errors import ViewError
from hookviz.views.palette import palette
from hookviz.views.scaling import Limits, channel_limits, levels
from hookviz.views.source import Source, read, shape_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

Interpolation: TypeAlias = Literal["nearest", "bilinear"]


def overlay(  # noqa: PLR0913 - a picture has this many settings, each with a default and a name at the call
    image: npt.NDArray[np.uint8],
    channel_map: npt.NDArray[np.floating],
    *,
    cmap: str = "viridis",
    alpha: float = 0.5,
    vmin: float | None = None,
    vmax: float | None = None,
    interpolation: Interpolation = "bilinear",
) -> npt.NDArray[np.uint8]:
    """Blend a map, enlarged to the image's size and coloured, over the image.

    Args:
        image: (H, W, 3) uint8 RGB.
        channel_map: (h, w). Cells that are not finite are painted in the colours that a mosaic gives them.
        cmap: A matplotlib colormap.
        alpha: 0 shows only the image, 1 only the map.
        vmin: The value of the first colour; None is the smallest finite one of the map.
        vmax: The value of the last colour; None is the largest finite one.
        interpolation: How the map is enlarged, as in :func:`enlarge`.

    Returns:
        (H, W, 3) uint8 RGB.

    Raises:
        ViewError: Not an RGB image, not a map, an alpha outside 0 to 1, or a setting that does not exist.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise ViewError(f"an overlay needs an (H, W, 3) uint8 image, got {image.dtype} of shape {image.shape}")
    if not 0.0 <= alpha <= 1.0:
        raise ViewError(f"alpha is 0 (only the image) to 1 (only the map), got {alpha}")
    source = _readable(channel_map)
    entries = _enlarged_entries(source, _limits(source, vmin, vmax), image.shape[:2], interpolation)
    mixed = image * (1.0 - alpha) + palette(cmap)[entries] * alpha
    return np.asarray(np.rint(mixed), np.uint8)


def enlarge(
    channel_map: npt.NDArray[np.floating], height: int, width: int, *, interpolation: Interpolation = "bilinear"
) -> npt.NDArray[np.float64]:
    """Resample an (h, w) map to (height, width), float64.

    Both ways agree with ``torch.nn.functional.interpolate``, ``align_corners=False``, so that a map lies where a
    network's own upsampling would put it.

    Raises:
        ViewError: An interpolation that does not exist.
    """
    if interpolation not in _WEIGHTS:
        raise ViewError(f"no interpolation {interpolation!r}; choose one of {', '.join(get_args(Interpolation))}")
    weights = _WEIGHTS[interpolation]
    rows, columns = weights(channel_map.shape[0], height), weights(channel_map.shape[1], width)
    return rows @ channel_map.astype(np.float64) @ columns.T


def _nearest(cells: int, pixels: int) -> npt.NDArray[np.float64]:
    return np.eye(cells)[np.arange(pixels) * cells // pixels]


def _bilinear(cells: int, pixels: int) -> npt.NDArray[np.float64]:
    centre = np.clip((np.arange(pixels) + 0.5) * cells / pixels - 0.5, 0.0, cells - 1.0)
    return np.clip(1.0 - np.abs(centre[:, None] - np.arange(cells)), 0.0, 1.0)


_WEIGHTS: dict[str, Callable[[int, int], npt.NDArray[np.float64]]] = {"nearest": _nearest, "bilinear": _bilinear}


def _readable(channel_map: npt.NDArray[np.floating]) -> Source:
    if channel_map.ndim != 2 or channel_map.size == 0:
        raise ViewError(f"an overlay needs one map (h, w) with at least one value, got shape {channel_map.shape}")
    shape_of(channel_map[None])
    return read(channel_map[None], slice(None))


def _limits(source: Source, vmin: float | None, vmax: float | None) -> Limits:
    own = channel_limits(source, robust=False)
    low = own.vmin if vmin is None else np.array([vmin], np.float64)
    return Limits(low, own.vmax if vmax is None else np.array([vmax], np.float64))


def _enlarged_entries(
    source: Source, limits: Limits, size: tuple[int, int], interpolation: Interpolation
) -> npt.NDArray[np.uint8]:
    if source.classes is None or source.finite is None:
        values = enlarge(source.values[0], *size, interpolation=interpolation)
        return _levels(values, limits)
    # What is not finite has no share in its neighbours' colours: weights of the finite cells alone, made to sum to 1.
    share = enlarge(source.finite[0], *size, interpolation=interpolation)
    values = enlarge(source.values[0], *size, interpolation=interpolation) / np.where(share > 0, share, 1.0)
    entries = _levels(values, limits)
    classes = enlarge(source.classes[0], *size, interpolation="nearest").astype(np.uint8)
    np.copyto(entries, classes, where=classes != 0)
    return entries


def _levels(values: npt.NDArray[np.float64], limits: Limits) -> npt.NDArray[np.uint8]:
    found: npt.NDArray[np.uint8] = levels(Source(values[None], None), limits, clip=True)[0]
    return found
