from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from hookviz.errors import LayoutError
from hookviz.numeric import check_tensor, dense, density_note, dtype_name, real, shape_of, shows, to_float32, to_float64
from hookviz.types import ChannelMaps

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from hookviz.types import BoolArray

Grid = tuple[int, int]

AUTO = ("scalar", "C", "NC", "NLC", "NCHW", "NCDHW")
"""What a tensor of 0, 1, 2 ... axes is read as where nobody says more."""

MOST_PREFIX_TOKENS = 16
"""Class, distillation and register tokens stand before the tokens of the image; more than these is a wrong grid."""

FLOAT32_MAX = float(np.finfo(np.float32).max)


class Arrangement(NamedTuple):
    """A real tensor (channels, height, width) in a dtype that holds it, the layout it was read in, and a note."""

    values: torch.Tensor
    layout: str
    note: str


def channel_maps(tensor: torch.Tensor, layout: str = "auto", grid: Grid | None = None, item: int = 0) -> ChannelMaps:
    """A layer's tensor as one map per channel, for drawing.

    float32 values come unchanged; float64 ones beyond float32 are drawn at its end, and the note says so. Complex
    tensors show their magnitude, quantized ones dequantized values, sparse ones are made dense. The maps share no
    memory with the tensor.

    Args:
        tensor: any dtype and device; it and its graph are left alone.
        layout: what the axes are: one of ``READERS``, or ``"auto"``, which reads 4 axes as NCHW, 2 as NC, 1 as C, 5 as
            NCDHW, and 3 as one table of tokens × features, since nothing in such a shape says that it is an image. A
            shape cannot tell NCHW from NHWC either: say ``"NHWC"`` for networks that put channels last.
        grid: rows and columns of the tokens of an ``"NLC"`` tensor; tokens before those of the grid are left out, and
            noted.
        item: which element of the batch.

    Returns:
        Maps (C, H, W). A vector is C maps of 1×1, a sequence (NCL) C maps of 1×L; of a volume, map c holds its slices
        ``tensor[item, c, d]`` from top to bottom.

    Raises:
        LayoutError: where layout, grid or item do not fit, or this is no tensor.
        HookvizError: for a tensor without numbers (meta, fake).
    """
    values, used, note = arrange(tensor, layout, grid, item)
    maps, clipped = _as_float32(to_float64(values) if values.dtype == torch.float64 else to_float32(values))
    nan, posinf, neginf = _non_finite(maps)
    return ChannelMaps(
        maps=maps,
        nan=nan,
        posinf=posinf,
        neginf=neginf,
        layout=used,
        shape=shape_of(tensor),
        dtype=dtype_name(tensor),
        shows=shows(tensor),
        note=_joined(note, f"{clipped} values beyond float32 are drawn at its end" if clipped else ""),
    )


def arrange(tensor: torch.Tensor, layout: str = "auto", grid: Grid | None = None, item: int = 0) -> Arrangement:
    """The values behind :func:`channel_maps`, in their own dtype, for statistics that need every digit.

    The tensor may share memory with the one given. Arguments and errors are those of :func:`channel_maps`.
    """
    if not isinstance(tensor, torch.Tensor):
        raise LayoutError(f"Expected a torch.Tensor, got {type(tensor).__name__}: pick one tensor out of the output.")
    check_tensor(tensor)
    shape = shape_of(tensor)
    name = _named(layout, shape)
    if grid is not None and name != "NLC":
        raise LayoutError(
            f"A grid arranges tokens (layout NLC), but this {_text(shape)} tensor is read as {name}: leave it out."
        )
    if name.startswith("N"):
        _check_item(item, shape)
    elif item:
        raise LayoutError(
            f"Layout {name} has no batch to pick item {item} from: leave item out, or name a layout with N."
        )
    if name.startswith("N") and not shape[0]:
        return Arrangement(torch.zeros((0, 0, 0)), name, _joined(_empty_note(shape), density_note(tensor)))
    plain = dense(tensor)
    values, note = READERS[name](plain[item] if name.startswith("N") else plain, grid)
    notes = (note, _empty_note(shape) if not tensor.numel() else "", density_note(tensor))
    return Arrangement(real(values), name, _joined(*notes))


def _tokens(tokens: torch.Tensor, grid: Grid | None) -> tuple[torch.Tensor, str]:
    if grid is None:
        return tokens[None], "tokens × features: not known to be an image, shown as one table"
    height, width = _checked_grid(grid, tokens=len(tokens))
    prefix = len(tokens) - height * width
    image = tokens[prefix:].reshape(height, width, tokens.shape[1]).permute(2, 0, 1)
    return image, f"{prefix} of {len(tokens)} tokens stand before the grid and are left out" if prefix else ""


def _volume(volume: torch.Tensor, _grid: Grid | None) -> tuple[torch.Tensor, str]:
    depth, height = volume.shape[1:3]
    return volume.flatten(1, 2), f"volume: {depth} slices of {height} rows, from top to bottom"


def _plain(
    view: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[torch.Tensor, Grid | None], tuple[torch.Tensor, str]]:
    return lambda tensor, _grid: (view(tensor), "")


READERS: dict[str, Callable[[torch.Tensor, Grid | None], tuple[torch.Tensor, str]]] = {
    "NCHW": _plain(lambda image: image),
    "NHWC": _plain(lambda image: image.permute(2, 0, 1)),
    "CHW": _plain(lambda image: image),
    "HWC": _plain(lambda image: image.permute(2, 0, 1)),
    "HW": _plain(lambda image: image[None]),
    "NC": _plain(lambda vector: vector[:, None, None]),
    "C": _plain(lambda vector: vector[:, None, None]),
    "scalar": _plain(lambda number: number[None, None, None]),
    "NLC": _tokens,
    "NCL": _plain(lambda sequence: sequence[:, None, :]),
    "NCDHW": _volume,
    "NDHWC": lambda volume, grid: _volume(volume.permute(3, 0, 1, 2), grid),
}
"""How each layout becomes (C, H, W), the element of the batch already picked."""


def _named(layout: str, shape: tuple[int, ...]) -> str:
    if layout == "auto":
        if len(shape) >= len(AUTO):
            raise LayoutError(
                f"Nothing is known of tensors with {len(shape)} axes {_text(shape)}: index it down to 5 or fewer."
            )
        return AUTO[len(shape)]
    if layout not in READERS:
        raise LayoutError(f"Unknown layout {layout!r}: choose 'auto' or one of {', '.join(READERS)}.")
    expected = 0 if layout == "scalar" else len(layout)
    if len(shape) != expected:
        raise LayoutError(f"Layout {layout} needs {expected} axes, but the tensor has {len(shape)}: {_text(shape)}.")
    return layout


def _check_item(item: int, shape: tuple[int, ...]) -> None:
    if item != 0 and not 0 <= item < shape[0]:
        raise LayoutError(
            f"There is no item {item} in a batch of {shape[0]} {_text(shape)}: choose from 0 to {shape[0] - 1}."
        )


def _checked_grid(grid: Grid, *, tokens: int) -> Grid:
    if len(grid) != 2 or min(grid) < 1:
        raise LayoutError(f"A grid is (rows, columns), both at least 1, got {grid}.")
    cells = math.prod(grid)
    if not 0 <= tokens - cells <= MOST_PREFIX_TOKENS:
        raise LayoutError(
            f"A grid of {grid[0]}×{grid[1]} needs {cells} tokens and at most {MOST_PREFIX_TOKENS} before them, "
            f"but there are {tokens}."
        )
    return grid


def _as_float32(numbers: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.float32], int]:
    """A contiguous copy, and how many finite values did not fit."""
    if numbers.dtype == np.float32:
        return np.array(numbers, np.float32, order="C"), 0
    beyond = np.isfinite(numbers) & (np.abs(numbers) > FLOAT32_MAX)
    within = np.where(beyond, np.copysign(FLOAT32_MAX, numbers), numbers)
    return within.astype(np.float32, order="C"), int(np.count_nonzero(beyond))


def _non_finite(maps: npt.NDArray[np.float32]) -> tuple[BoolArray, BoolArray, BoolArray]:
    if np.isfinite(maps).all():
        nothing = np.broadcast_to(np.False_, maps.shape)  # takes no memory
        return nothing, nothing, nothing
    return np.isnan(maps), maps == np.inf, maps == -np.inf


def _text(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) if shape else "()"


def _empty_note(shape: tuple[int, ...]) -> str:
    return f"empty (0 elements, shape {shape})"


def _joined(*sentences: str) -> str:
    return "; ".join(sentence for sentence in sentences if sentence)
