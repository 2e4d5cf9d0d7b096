"""What pruning has taken away, read without disturbing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from hookviz.hooks.names import LayerNames
from hookviz.hooks.norms import total_norm

Pruning: TypeAlias = Literal["mask", "baked in", "dense"]

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass(frozen=True, slots=True)
class PrunedParameter:
    """One parameter of one layer, by the name its layer uses (``weight``, also while torch keeps ``weight_orig``).

    ``state`` is ``"mask"`` while a mask of ``torch.nn.utils.prune`` is on, ``"baked in"`` where the stored values
    themselves hold exact zeros, whoever put them there (``prune.remove``, or an initialization), else ``"dense"``.
    ``zeros`` counts the mask's zeros, and those of the values where there is no mask. Norms are Euclidean, in float64:
    ``norm_before`` of the stored parameter, ``norm_masked`` of it under its mask, ``norm_effective`` of what the layer
    holds at this moment, which a masked layer renews at its next forward. ``outputs_gone`` and ``inputs_gone`` are the
    channels whose elements are all zeros.
    """

    layer: str
    parameter: str
    state: Pruning
    count: int
    zeros: int
    norm_before: float
    norm_masked: float
    norm_effective: float
    outputs_gone: tuple[int, ...]
    inputs_gone: tuple[int, ...]

    @property
    def name(self) -> str:
        """The dotted name."""
        return f"{self.layer}.{self.parameter}" if self.layer else self.parameter

    @property
    def sparsity(self) -> float:
        """The share of zeros, 0 to 1; 0 for a parameter without elements."""
        return self.zeros / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class PruningReport:
    """Every parameter of a network once, in the order of ``named_modules()``."""

    parameters: tuple[PrunedParameter, ...]

    def __getitem__(self, name: str) -> PrunedParameter:
        for one in self.parameters:
            if one.name == name:
                return one
        raise KeyError(name)

    @property
    def count(self) -> int:
        """Elements of all parameters, masked ones counted once."""
        return sum(one.count for one in self.parameters)

    @property
    def zeros(self) -> int:
        """Zeros of all parameters."""
        return sum(one.zeros for one in self.parameters)

    @property
    def sparsity(self) -> float:
        """The share of zeros among all elements, 0 to 1."""
        return self.zeros / self.count if self.count else 0.0


def pruning_report(module: nn.Module) -> PruningReport:
    """Say what is pruned in a network, as it stands; nothing is run, removed or changed.

    >>> prune.l1_unstructured(model.conv1, "weight", 0.5)
    >>> pruning_report(model)["conv1.weight"].sparsity
    0.5

    A parameter that several layers share is listed under the first of them. Lazy parameters without a shape yet are
    left out.
    """
    seen: set[int] = set()
    rows: list[PrunedParameter] = []
    for name, layer in LayerNames(module).items():
        for parameter, stored, mask in _stored(layer):
            if id(stored) not in seen:
                seen.add(id(stored))
                rows.append(_row(name, layer, parameter, stored.detach(), mask))
    return PruningReport(tuple(rows))


def _stored(layer: nn.Module) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """Give the layer's own parameters: the name without ``_orig``, the stored tensor, and the mask on it."""
    for name, parameter in layer._parameters.items():
        if parameter is None or is_lazy(parameter):
            continue
        plain = name.removesuffix("_orig")
        mask = layer._buffers.get(f"{plain}_mask") if plain != name else None
        yield (name if mask is None else plain), parameter, mask


def _row(layer: str, module: nn.Module, name: str, stored: Tensor, mask: Tensor | None) -> PrunedParameter:
    kept = stored != 0 if mask is None else mask != 0
    zeros = int((~kept).sum())
    effective = stored if mask is None else getattr(module, name)
    outputs, inputs = (1, 0) if isinstance(module, _TRANSPOSED) and stored.ndim > 1 else (0, 1)
    structured = mask is not None or stored.ndim > 1  # a bias of zeros is an initialization, not a channel gone
    return PrunedParameter(
        layer=layer,
        parameter=name,
        state="mask" if mask is not None else "baked in" if zeros else "dense",
        count=stored.numel(),
        zeros=zeros,
        norm_before=total_norm([stored]),
        norm_masked=total_norm([stored if mask is None else stored * mask]),
        norm_effective=total_norm([effective]),
        outputs_gone=_gone(kept, outputs) if structured else (),
        inputs_gone=_gone(kept, inputs) if structured else (),
    )


def _gone(kept: Tensor, axis: int) -> tuple[int, ...]:
    if kept.ndim <= axis or not kept.numel():
        return ()
    alive = kept.movedim(axis, 0).flatten(1).any(1) if kept.ndim > 1 else kept
    return tuple((~alive).nonzero().flatten().tolist())
