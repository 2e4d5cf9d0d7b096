"""Reading what a caller hands in, channel maps or a plain array, as values and classes ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hookviz.errors import ViewError
from hookviz.types import ChannelMaps
from hookviz.views.labels import numbers_of
from hookviz.views.palette import NAN, NEGINF, POSINF

if TYPE_CHECKING:
    import numpy.typing as npt

    from hookviz.types import BoolArray
    from hookviz.views.labels import Numbers

Maps: TypeAlias = "ChannelMaps | npt.NDArray[Any]"
"""Channel maps, or a real (C, H, W) array of any dtype, whose NaN and infinities are found in the array itself."""

Channels: TypeAlias = "slice | npt.NDArray[np.intp]"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Some channels of a layer.

    ``values`` is (C, H, W) of any real dtype, finite throughout: 0 stands where ``classes``, uint8 of the same shape,
    is not 0 but one of the palette's ``NAN``, ``POSINF``, ``NEGINF``. ``classes`` is None where everything is finite.
    """

    values: npt.NDArray[Any]
    classes: npt.NDArray[np.uint8] | None

    @property
    def finite(self) -> BoolArray | None:
        """Where the values are finite, or None where they all are."""
        return None if self.classes is None else self.classes == 0


def shape_of(maps: Maps) -> tuple[int, int, int]:
    """(C, H, W) of what is to be drawn.

    Raises:
        ViewError: Not three axes, or not real numbers.
    """
    values = maps.maps if isinstance(maps, ChannelMaps) else np.asarray(maps)
    if values.ndim != 3:
        raise ViewError(f"a picture of channels needs (channels, height, width), got shape {values.shape}")
    if values.dtype.kind not in "biuf":
        raise ViewError(f"a picture needs real numbers, got {values.dtype}; take the magnitude or the phase first")
    channels, height, width = values.shape
    return channels, height, width


def original_shape(maps: Maps) -> tuple[int, ...]:
    """The shape of the tensor the maps came from, for messages."""
    return maps.shape if isinstance(maps, ChannelMaps) else np.asarray(maps).shape


def numbers(maps: Maps) -> Numbers:
    """What the values are: real numbers, integers, or true and false."""
    if isinstance(maps, ChannelMaps):
        return numbers_of(maps.dtype, maps.shows)
    return numbers_of(np.asarray(maps).dtype.name)


def read(maps: Maps, channels: Channels) -> Source:
    """The chosen channels, with what is not finite set apart."""
    if isinstance(maps, ChannelMaps):
        masks = (maps.nan[channels], maps.posinf[channels], maps.neginf[channels])
        return _read_masked(maps.maps[channels], *masks)
    values = _plain(np.asarray(maps)[channels])
    if values.dtype.kind != "f" or _all_finite(values):
        return Source(values, None)
    return _set_apart(values, np.isnan(values), values == np.inf, values == -np.inf)


def _read_masked(values: npt.NDArray[np.float32], nan: BoolArray, posinf: BoolArray, neginf: BoolArray) -> Source:
    if nan.any() or posinf.any() or neginf.any():
        return _set_apart(_within_float32(values), nan | np.isnan(values), posinf, neginf)
    if _all_finite(values):
        return Source(values, None)
    return _set_apart(_within_float32(values), np.isnan(values), posinf, neginf)


def _within_float32(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    # An infinity that the masks do not know was finite in the original dtype, and too large for float32.
    largest = np.finfo(np.float32).max
    return np.clip(values, -largest, largest)


def _plain(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.itemsize <= 8:
        return values
    with np.errstate(over="ignore"):  # extended precision reaches further than float64; the masks show where
        return values.astype(np.float64)


def _all_finite(values: npt.NDArray[Any]) -> bool:
    # NaN and infinities survive min and max, so no mask of the whole array is needed.
    return values.size == 0 or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def _set_apart(values: npt.NDArray[Any], nan: BoolArray, posinf: BoolArray, neginf: BoolArray) -> Source:
    classes = np.zeros(values.shape, np.uint8)
    for mask, entry in ((posinf, POSINF), (neginf, NEGINF), (nan, NAN)):
        classes[mask] = entry
    return Source(np.where(classes == 0, values, values.dtype.type(0)), classes)
