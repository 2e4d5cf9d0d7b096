"""What one position of a layer sees of the image: all it could see, and what it draws on in this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hookviz.errors import GradientError, LayoutError
from hookviz.hooks.dependencies import DependencyMode
from hookviz.hooks.differentiable import Differentiable, differentiable_output
from hookviz.layout import arrange

Grid = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ReceptiveField:
    """The part of the image that one position of a layer can see.

    ``top``, ``bottom``, ``left`` and ``right`` are half-open and in the input's pixels: rows ``top`` to ``bottom - 1``
    hold every pixel that any weights could let the position depend on; all four are 0 where there is none. ``weights``,
    (H, W) float32 of the input's size, says how strongly it does depend on each in this image. Where ``exact`` is False
    the box is no more than a bound, and ``note`` says of which kind.
    """

    top: int
    bottom: int
    left: int
    right: int
    weights: npt.NDArray[np.float32]
    layer: str
    position: tuple[int, int]
    exact: bool = True
    note: str = ""

    @property
    def is_whole_image(self) -> bool:
        """Whether the box is the whole input."""
        return (self.top, self.left) == (0, 0) and (self.bottom, self.right) == self.weights.shape

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """Left, upper, right and lower edge of the box as shares of the input's width and height, 0 to 1."""
        height, width = self.weights.shape
        return self.left / width, self.top / height, self.right / width, self.bottom / height


def receptive_field(  # noqa: PLR0913  # which value, in a layer's own words; all but the position mostly left out
    module: nn.Module,
    args: tuple[Any, ...],
    layer: str,
    position: tuple[int, int],
    *,
    kwargs: dict[str, Any] | None = None,
    channel: int | None = None,
    call: int = 0,
    path: str = "",
    layout: str = "auto",
    grid: Grid | None = None,
    item: int = 0,
    depth: int | None = None,
) -> ReceptiveField:
    """Find out which pixels of the input one position of a layer depends on.

    >>> field = receptive_field(model, (image,), "layer1.0.conv1", (10, 20))
    >>> field.top, field.bottom, field.left, field.right

    The box comes from a backward pass that carries masks in place of gradients, and so takes no notice of weights that
    happen to be zero, ReLUs that are off, and which value a pooling picked. Two positions where an attention mask or a
    dynamic filter keeps them apart count as connected. ``weights`` is the absolute gradient with respect to the pixels,
    summed over the input's channels, of the value at that position, or for all channels together of the Euclidean norm
    of the values there; it is zero throughout where these are.

    A private copy runs in eval mode as far as the layer, once forward and twice backward; the network, its gradients,
    the random state and the grad mode stay as they are.

    Args:
        module: the network.
        args: what it is called with. The input's pixels are the last two axes of the first floating tensor with at
            least three axes (the last one where there is no such, or where the layer is a sequence NCL).
        layer: a layer's name, or that of a functional operation as ``list_operations`` has it.
        position: row and column as in ``channel_maps(output, ...).maps[:, row, column]``.
        kwargs: keyword arguments for the module.
        channel: one channel, or None for all.
        call: which call of a layer that runs more than once.
        path: which tensor of an output that has several, dotted.
        layout: as for ``channel_maps``, like ``grid``, ``item`` and ``depth``.
        grid: rows and columns of tokens.
        item: which element of the batch.
        depth: which slice of a volume.

    Raises:
        UnknownLayerError: there is no such layer or operation, or it made no such call.
        LayoutError: no such position, channel or path, or a layout that does not fit.
        GradientError: no gradient leads from the input to this output, as with integers and int8 networks.
        HookvizError: the network cannot be copied.
    """
    found = differentiable_output(module, (args, kwargs or {}), layer, call=call, path=path)
    numbers = torch.arange(found.output.numel()).reshape(found.output.shape)
    arranged = arrange(numbers, layout, grid, item, depth=depth)
    elements = _elements(arranged.values, position, channel).to(found.output.device)
    axes = 1 if arranged.layout in {"NCL"} and found.image.ndim == 3 else 2
    weights = _pixels(_strength(found, elements), axes)
    reached, guessed = _reach(found, elements)
    edges = _box(_pixels(reached, axes) != 0)
    # Nothing reaches further than the whole image.
    cut_note = "" if edges == (0, weights.shape[0], 0, weights.shape[1]) else found.cut_note
    return ReceptiveField(
        *edges,
        weights=weights,
        layer=found.layer,
        position=position,
        exact=not guessed and not cut_note,
        note="; ".join(filter(None, (cut_note or ("" if any(edges) else _NOTHING), _guess_note(guessed)))),
    )


_NOTHING = "this position sees nothing of the image, padding alone"


def _guess_note(guessed: set[str]) -> str:
    names = ", ".join(sorted(guessed))
    return f"it may be smaller, since through {names} everything is taken to see everything" if names else ""


def _elements(numbers: Tensor, position: tuple[int, int], channel: int | None) -> Tensor:
    """The places of one position's values in the flat output."""
    channels, height, width = numbers.shape
    row, column = position
    if not (0 <= row < height and 0 <= column < width):
        raise LayoutError(
            f"There is no position {position} in maps of {height}×{width}: rows and columns count from 0."
        )
    if channel is not None and not 0 <= channel < channels:
        raise LayoutError(f"There is no channel {channel} of {channels}: choose from 0 to {channels - 1}.")
    at_position = numbers[:, row, column]
    return at_position if channel is None else at_position[channel : channel + 1]


def _strength(found: Differentiable, elements: Tensor) -> Tensor:
    """The gradient of the norm of these elements with respect to the image."""
    values = found.output.detach().flatten()[elements]
    norm = torch.linalg.vector_norm(values, dtype=torch.promote_types(values.dtype, torch.float32))
    slope = (
        torch.ones_like(values) if len(values) == 1 else torch.where(norm > 0, values / norm, torch.zeros_like(values))
    )
    seed = torch.zeros_like(found.output, memory_format=torch.contiguous_format).flatten()
    seed[elements] = slope.to(seed.dtype)
    return _backward(found, seed.reshape(found.output.shape))


def _reach(found: Differentiable, elements: Tensor) -> tuple[Tensor, set[str]]:
    """Which values of the image could influence these elements, and the operations behind which that is a guess."""
    mode = DependencyMode()
    seed = torch.zeros_like(found.output, memory_format=torch.contiguous_format).flatten()
    seed[elements] = 1
    mode.follow(seed)
    with mode:
        return _backward(found, seed.view(found.output.shape)), mode.guessed


def _backward(found: Differentiable, seed: Tensor) -> Tensor:
    try:
        (gradient,) = torch.autograd.grad(found.output, found.image, seed, retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        raise GradientError(f"torch cannot take the gradient of {found.layer!r} ({error}).") from error
    return torch.zeros_like(found.image) if gradient is None else gradient


def _pixels(gradient: Tensor, axes: int) -> npt.NDArray[np.float32]:
    """Absolute values summed over all axes but those of the pixels."""
    if gradient.ndim < axes:
        gradient = gradient.reshape(1, -1)
    rows = gradient.shape[-2] if axes == 2 else 1
    summed = gradient.detach().abs().double().reshape(-1, rows, gradient.shape[-1]).sum(dim=0)
    return summed.cpu().numpy().astype(np.float32)


def _box(seen: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
    if not len(rows):
        return 0, 0, 0, 0
    return int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1
