from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np
import torch

from hookviz.errors import HookvizError, LayoutError
from hookviz.numeric import check_tensor, dense, shape_of, to_float64
from hookviz.types import ChannelMaps, ChannelOrder, ChannelStatistics

if TYPE_CHECKING:
    import numpy.typing as npt

ELEMENTS_AT_ONCE = 2**20

SMOOTH = frozenset(
    {
        *("GELU", "GELUTanh", "QuickGELU", "NewGELUActivation", "PytorchGELUTanh"),
        *("SiLU", "SiLUActivation", "Swish", "SwishMe", "Mish", "MishMe", "GLU"),
        *("Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Softplus", "Softsign"),
        *("ELU", "CELU", "SELU", "LeakyReLU", "PReLU", "RReLU"),
        *("Softmax", "Softmax2d", "LogSoftmax", "Softmin"),
    }
)
"""Activation classes that reach exact zero only by accident: negative inputs leave them small, not silent."""


def channel_statistics(values: torch.Tensor | ChannelMaps) -> ChannelStatistics:
    """Mean, standard deviation, extremes, zeros and non-finite counts of every channel, in float64.

    Args:
        values: (C, H, W), a tensor (see :func:`hookviz.layout.arrange`; float64 keeps its precision) or the float32
            maps of one.

    Raises:
        LayoutError: for a tensor that is not three-dimensional.
        HookvizError: for what is no tensor, or one without numbers.
    """
    if isinstance(values, ChannelMaps):
        return _statistics(torch.from_numpy(np.ascontiguousarray(values.maps)))
    plain = dense(values)
    if len(shape_of(plain)) != 3:
        raise LayoutError(f"Channel statistics need (channels, height, width), got shape {tuple(plain.shape)}.")
    return _statistics(plain)


def channel_order(statistics: ChannelStatistics, by: ChannelOrder) -> npt.NDArray[np.int64]:
    """Channel numbers in the order asked for.

    ``"index"`` is ascending; ``"mean"``, ``"max"``, ``"spread"`` (std) and ``"sparsity"`` put the largest first. Equal
    channels keep their order; channels without a finite value come last.

    Raises:
        HookvizError: for any other ``by``.
    """
    if by == "index":
        return np.arange(len(statistics.mean))
    columns = {"mean": "mean", "max": "max", "spread": "std", "sparsity": "sparsity"}
    if by not in columns:
        raise HookvizError(f"Channels are sorted by {', '.join(get_args(ChannelOrder))}; got {by!r}.")
    return np.argsort(-getattr(statistics, columns[by]), kind="stable").astype(np.int64)


class ChannelActivity:
    """Which channels were ever active, over every image of a stream, and how many values were exact zeros.

    Two different measures: one image may leave most values zero while no channel is dead. A dead channel is zero at
    every position of every image seen. Both mean something only where :func:`dead_channels_apply`.
    """

    def __init__(self) -> None:
        self.images = 0
        self.elements = 0
        self.zeros = 0
        self._active: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def update(self, tensor: torch.Tensor, *, channel_axis: int = 1) -> ChannelActivity:
        """Take in a batch (N, C, ...), and return self; NaN and infinity count as active.

        Raises:
            LayoutError: for a tensor without that channel axis, or with another number of channels than before.
        """
        check_tensor(tensor)
        shape = shape_of(tensor)
        if not 1 <= channel_axis < len(shape):
            raise LayoutError(f"Expected a batch (N, C, ...) with channels on axis {channel_axis}, got shape {shape}.")
        channels = shape[channel_axis]
        if len(self._active) not in {0, channels}:
            raise LayoutError(f"Expected {len(self._active)} channels as in the images before, got {channels}.")
        nonzero = _nonzero(dense(tensor), channel_axis=channel_axis)
        self._active = (nonzero > 0) | (self._active if len(self._active) else False)
        self.images += shape[0]
        self.elements += tensor.numel()
        self.zeros += tensor.numel() - int(nonzero.sum())
        return self

    @property
    def zeros_share(self) -> float | None:
        """The share of exact zeros among all values seen, 0 to 1; None before there was any."""
        return self.zeros / self.elements if self.elements else None

    @property
    def ever_active(self) -> npt.NDArray[np.bool_]:
        """For each channel, whether any position of any image was nonzero."""
        return self._active.copy()

    @property
    def never_active(self) -> npt.NDArray[np.bool_]:
        """For each channel, whether it was zero at every position of every image: dead, as far as was seen."""
        return ~self._active

    @property
    def never_active_share(self) -> float | None:
        """The share of channels never active, 0 to 1; None before there was any value."""
        return float(self.never_active.mean()) if self.elements else None


def dead_channels_apply(class_name: str) -> bool:
    """Whether exact zeros mean anything in what such a module returns: False for GELU, SiLU, Sigmoid and their like."""
    return class_name not in SMOOTH


def _nonzero(plain: torch.Tensor, *, channel_axis: int) -> npt.NDArray[np.int64]:
    """How many nonzero values each channel of a batch has."""
    images, others = plain.shape[0], tuple(axis for axis in range(plain.ndim) if axis != channel_axis)
    step = max(1, ELEMENTS_AT_ONCE * images // max(1, plain.numel()))
    parts = (to_float64(plain[start : start + step]) for start in range(0, images, step))
    total = np.zeros(plain.shape[channel_axis], np.int64)
    return sum((np.count_nonzero(part, axis=others) for part in parts), start=total)


def _statistics(plain: torch.Tensor) -> ChannelStatistics:
    channels, count = plain.shape[0], plain.shape[1] * plain.shape[2]
    step = max(1, ELEMENTS_AT_ONCE // max(1, count))
    rows = [_rows(to_float64(plain[start : start + step])) for start in range(0, max(1, channels), step)]
    names = rows[0].keys()
    return ChannelStatistics(**{name: np.concatenate([row[name] for row in rows]) for name in names}, count=count)


def _rows(maps: npt.NDArray[np.float64]) -> dict[str, npt.NDArray[np.generic]]:
    values = maps.reshape(len(maps), -1) if maps.size else np.zeros((len(maps), 0))
    finite = np.isfinite(values)
    some = finite.any(1)
    low = np.where(some, values.min(1, where=finite, initial=np.inf), np.nan)
    high = np.where(some, values.max(1, where=finite, initial=-np.inf), np.nan)
    mean, std = _mean_and_std(values, finite, low, high)
    return {
        "mean": mean,
        "std": std,
        "min": low,
        "max": high,
        "zeros": np.count_nonzero(values == 0, axis=1),
        "nan": np.count_nonzero(np.isnan(values), axis=1),
        "posinf": np.count_nonzero(values == np.inf, axis=1),
        "neginf": np.count_nonzero(values == -np.inf, axis=1),
    }


def _mean_and_std(
    values: npt.NDArray[np.float64],
    finite: npt.NDArray[np.bool_],
    low: npt.NDArray[np.float64],
    high: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """In two passes; values count from the channel's smallest, scaled by a power of two so that nothing overflows."""
    count = finite.sum(1)
    known = np.where(count > 0, count, 1)
    exponent = np.frexp(np.where(count > 0, np.maximum(-low, high), 0.0))[1] + 1
    scale = np.ldexp(1.0, -np.maximum(exponent, -1000))
    start = low * scale
    above = np.where(finite, values, low[:, None]) * scale[:, None] - start[:, None]
    middle = above.sum(1) / known
    apart = np.where(finite, above - middle[:, None], 0.0)
    std = np.where(count > 0, np.sqrt(np.square(apart).sum(1) / known), np.nan)
    return (start + middle) / scale, std / scale
