"""The frozen vocabulary: what passes from one part of hookviz to another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.integer]

Scale: TypeAlias = Literal["channel", "shared", "symmetric"]
"""How values become colours: each channel over its own range, all over one range, or all over one range around zero."""

ChannelOrder: TypeAlias = Literal["index", "mean", "max", "spread", "sparsity"]
"""What channels are sorted by: ``index`` ascending, everything else largest first."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor inside a module's output or input: where it sits in the structure, and what it is.

    ``path`` is dotted (``"1.h"``), and ``""`` where the value is the tensor itself. ``shape`` has -1 where the items of
    a nested tensor differ. ``dtype`` is torch's name without the prefix, such as ``"bfloat16"``.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Layout:
    """How the axes of a layer's output are to be read.

    ``name`` and ``grid`` are what ``channel_maps`` takes. ``known`` is False where nothing but the number of axes
    speaks for it. ``note`` says in words what no letter says, such as that the first axis counts windows.
    """

    name: str
    grid: tuple[int, int] | None = None
    known: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class LayerInfo:
    """One module of a network, or one functional operation (``is_operation``), whose class is its plain name.

    ``depth`` is 0 for the root. ``parameters`` counts the elements of every parameter in and below the module, each
    once. ``calls`` is how often one forward runs it, and None where no forward was run to find out. ``outputs`` has,
    for each call, the tensors it returned, and ``layouts`` how to read the first of them, None where there is none.
    ``other_layouts`` has, for each call, one for every tensor behind the first, None where nothing is known of it.
    """

    name: str
    class_name: str
    depth: int
    parameters: int
    calls: int | None = None
    outputs: tuple[tuple[TensorInfo, ...], ...] = ()
    layouts: tuple[Layout | None, ...] = ()
    is_operation: bool = False
    other_layouts: tuple[tuple[Layout | None, ...], ...] = ()

    @property
    def output_shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of all tensors returned, in the order of calls."""
        return tuple(info.shape for call in self.outputs for info in call)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts per bin, and the ``len(counts) + 1`` edges; both empty where there was no finite value to bin."""

    counts: IntArray
    edges: FloatArray

    def __post_init__(self) -> None:
        expected = len(self.counts) + 1 if len(self.counts) else 0
        if len(self.edges) != expected:
            raise ValueError(f"{len(self.counts)} bins need {expected} edges, got {len(self.edges)}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return np.array_equal(self.counts, other.counts) and np.array_equal(self.edges, other.edges)

    __hash__ = None  # type: ignore[assignment]  # arrays are mutable, so equal histograms could hash apart


@dataclass(frozen=True, slots=True)
class Summary:
    """What a tensor holds, in numbers.

    ``count`` is all elements; ``mean``, ``std`` (population, ddof 0), ``min``, ``max`` and ``histogram`` speak of the
    finite ones, in float64, and are None (the histogram: empty) where there is none. ``zeros`` counts exact zeros.
    ``shows`` says what the numbers are of: ``"value"``, or ``"magnitude"`` for complex and ``"dequantized value"`` for
    quantized tensors.
    """

    count: int
    nan: int
    posinf: int
    neginf: int
    zeros: int
    mean: float | None
    std: float | None
    min: float | None
    max: float | None
    histogram: Histogram
    dtype: str = "float32"
    shows: str = "value"

    @property
    def finite(self) -> int:
        """How many elements are neither NaN nor infinite."""
        return self.count - self.nan - self.posinf - self.neginf

    @property
    def sparsity(self) -> float | None:
        """The share of exact zeros among all elements, 0 to 1; None where there are no elements."""
        return self.zeros / self.count if self.count else None


@dataclass(frozen=True, slots=True, eq=False)
class ChannelMaps:
    """A layer's tensor arranged for drawing: one map per channel.

    ``maps`` is (C, H, W) float32. ``nan``, ``posinf`` and ``neginf`` are boolean (C, H, W), taken from the original
    dtype. ``layout`` names the axes as they were read (``"NCHW"``); ``shape`` and ``dtype`` are the original tensor's;
    ``shows`` says what the numbers are of, as in :class:`Summary`; ``note`` is a sentence for the reader where the
    arrangement needs one, else ``""``.
    """

    maps: npt.NDArray[np.float32]
    nan: BoolArray
    posinf: BoolArray
    neginf: BoolArray
    layout: str
    shape: tuple[int, ...]
    dtype: str
    shows: str = "value"
    note: str = ""

    def __post_init__(self) -> None:
        if self.maps.ndim != 3:
            raise ValueError(f"maps must be (channels, height, width), got shape {self.maps.shape}")
        for name in ("nan", "posinf", "neginf"):
            mask: BoolArray = getattr(self, name)
            if mask.shape != self.maps.shape:
                raise ValueError(f"{name} must have the shape of maps {self.maps.shape}, got {mask.shape}")

    @property
    def channels(self) -> int:
        """How many channels there are."""
        return int(self.maps.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class ChannelStatistics:
    """One row per channel, each an array of length C: over the channel's finite values, NaN where it has none."""

    mean: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64]
    min: npt.NDArray[np.float64]
    max: npt.NDArray[np.float64]
    zeros: npt.NDArray[np.int64]
    nan: npt.NDArray[np.int64]
    posinf: npt.NDArray[np.int64]
    neginf: npt.NDArray[np.int64]
    count: int
    """Elements per channel."""

    @property
    def sparsity(self) -> npt.NDArray[np.float64]:
        """The share of exact zeros per channel, 0 to 1."""
        return self.zeros / self.count if self.count else np.full(len(self.zeros), np.nan)


@dataclass(frozen=True, slots=True)
class Prediction:
    """One of the top-k: class index, its name, and its softmax probability, 0 to 1."""

    index: int
    label: str
    probability: float
