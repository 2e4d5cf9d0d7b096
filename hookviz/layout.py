from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from hookviz.errors import LayoutError
from hookviz.numeric import check_tensor, density_note, dtype_name, real, shape_of, to_float32, to_float64
from hookviz.types import ChannelMaps
from hookviz.value_kinds import as_kind, kind_note, kind_of_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def channel_maps(  # noqa: PLR0913 - which part of a tensor, and as what; all but the first mostly left out
    tensor: torch.Tensor,
    layout: str = "auto",
    grid: Grid | None = None,
    item: int = 0,
    *,
    depth: int | None = None,
    shows: str = "auto",
) -> ChannelMaps:
    """A layer's tensor as one map per channel, for drawing.

    float32 values come unchanged; float64 ones beyond float32 are drawn at its end, and the note says so. Complex
    tensors show their magnitude, quantized ones dequantized values, sparse ones are made dense. The maps share no
    memory with the tensor.

    Args:
        tensor: any dtype and device; it and its graph are left alone.
        layout: what the axes are: one of ``READERS``, or ``"auto"``, which reads 4 axes as NCHW, 2 as NC, 1 as C, 5 as
            NCDHW, and 3 as one table of tokens × features, since nothing in such a shape says that it is an image. A
            shape cannot tell NCHW from NHWC either: say ``"NHWC"`` for networks that put channels last, and ``"LNC"``
            for sequences with the batch second, as ``nn.LSTM`` has them by default.
        grid: rows and columns of the tokens of an ``"NLC"`` or ``"LNC"`` tensor; tokens before those of the grid are
            left out, and noted.
        item: which element of the batch.
        depth: which slice of a volume (NCDHW, NDHWC), along its depth or its time; None is all of them.
        shows: what the numbers are of: ``"magnitude"``, ``"phase"``, ``"real part"`` or ``"imaginary part"`` of a
            complex tensor, ``"dequantized value"`` or ``"stored integer"`` of a quantized one; ``"auto"`` is the first.

    Returns:
        Maps (C, H, W). A vector is C maps of 1×1, a sequence (NCL) C maps of 1×L; of a volume, map c is its slice
        ``tensor[item, c, depth]``, or holds all slices from top to bottom.

    Raises:
        LayoutError: where layout, grid, item, depth or shows do not fit, or this is no tensor.
        HookvizError: for a tensor without numbers (meta, fake).
    """
    values, used, note = arrange(tensor, layout, grid, item, depth=depth, shows=shows)
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
        shows=kind_of_values(tensor, shows),
        note=_joined(note, f"{clipped} values beyond float32 are drawn at its end" if clipped else ""),
    )


def arrange(  # noqa: PLR0913 - as channel_maps
    tensor: torch.Tensor,
    layout: str = "auto",
    grid: Grid | None = None,
    item: int = 0,
    *,
    depth: int | None = None,
    shows: str = "auto",
) -> Arrangement:
    """The values behind :func:`channel_maps`, in their own dtype, for statistics that need every digit.

    The tensor may share memory with the one given. Arguments and errors are those of :func:`channel_maps`.
    """
    if not isinstance(tensor, torch.Tensor):
        raise LayoutError(f"Expected a torch.Tensor, got {type(tensor).__name__}: pick one tensor out of the output.")
    check_tensor(tensor)
    shape = shape_of(tensor)
    name = _named(layout, shape)
    if grid is not None and name not in {"NLC", "LNC"}:
        raise LayoutError(
            f"A grid arranges tokens (NLC or LNC), but this {_text(shape)} tensor is read as {name}: leave it out."
        )
    batch = name.find("N")
    if batch >= 0:
        _check_item(item, shape[batch], shape)
    elif item:
        raise LayoutError(
            f"Layout {name} has no batch to pick item {item} from: leave item out, or name a layout with N."
        )
    _check_depth(depth, name, shape)
    plain = as_kind(tensor, shows)
    notes = (_empty_note(shape) if not tensor.numel() else "", density_note(tensor), kind_note(tensor, shows))
    if batch >= 0 and not shape[batch]:
        return Arrangement(torch.zeros((0, 0, 0)), name, _joined(*notes))
    one = plain if depth is None else plain.narrow(name.index("D"), depth, 1)
    values, note = READERS[name](one.select(batch, item) if batch >= 0 else one, grid)
    return Arrangement(real(values), name, _joined(note if depth is None else "", *notes))


def axis_lengths(shape: Sequence[int], layout: str = "auto") -> dict[str, int]:
    """How long each axis is, by the letter it has in a layout: ``{"N": 1, "C": 64, "H": 56, "W": 56}``.

    Raises:
        LayoutError: the layout does not fit the shape.
    """
    name = _named(layout, tuple(shape))
    return {} if name == "scalar" else dict(zip(name, shape, strict=True))


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
    "LNC": _tokens,
    "NHW": _plain(lambda image: image[None]),
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


def _check_depth(depth: int | None, name: str, shape: tuple[int, ...]) -> None:
    if depth is None:
        return
    if "D" not in name:
        raise LayoutError(
            f"This {_text(shape)} tensor is read as {name} and has no slices: leave depth out, or name a layout with D."
        )
    count = shape[name.index("D")]
    if not 0 <= depth < count:
        raise LayoutError(f"There is no slice {depth} of {count} ({_text(shape)}): choose from 0 to {count - 1}.")


def _check_item(item: int, batch: int, shape: tuple[int, ...]) -> None:
    if item != 0 and not 0 <= item < batch:
        raise LayoutError(
            f"There is no item {item} in a batch of {batch} {_text(shape)}: choose from 0 to {batch - 1}."
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
