from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any
from warnings import warn

from torch import Tensor, nn

from hookviz.models.checkpoints.heads import fit_head, restart
from hookviz.models.checkpoints.matching import Match, match
from hookviz.models.checkpoints.reading import read_checkpoint
from hookviz.models.checkpoints.report import CheckpointError, CheckpointReport, subject
from hookviz.models.checkpoints.sources import CheckpointSource


class CheckpointWarning(UserWarning):
    """A checkpoint was loaded that has no values for some layers."""


def load_checkpoint(module: nn.Module, source: CheckpointSource | Mapping[str, Any]) -> CheckpointReport:
    """Fill ``module`` with the values of a checkpoint, all of them or, where it does not fit, none.

    ``source`` is a file (see :func:`read_checkpoint`) or what was read from one. A head of another number of classes is
    resized. Where the file has no head, the head gets a seeded random start, which ``random_layers`` and a
    :class:`CheckpointWarning` say.

    Raises:
        CheckpointError: the file cannot be read, or does not fit; then ``error.report`` has the comparison.
    """
    report = fill_from_checkpoint(module, source)
    if report.random_layers:
        warn(report.verdict, CheckpointWarning, stacklevel=2)
    return report


def fill_from_checkpoint(module: nn.Module, source: CheckpointSource | Mapping[str, Any]) -> CheckpointReport:
    """Do what :func:`load_checkpoint` does, for who reads ``random_layers``: nothing is warned of."""
    state = source if isinstance(source, Mapping) else read_checkpoint(source)
    matched = match(module, state)
    report = matched.report
    if not report.fits:
        raise CheckpointError(report.verdict, report)
    try:
        _fill(_without_values(module), matched, on_meta=True)
    except Exception as error:  # a network may have its own way to load, and raise anything
        raise CheckpointError(
            f"{subject(report.name)} does not fit, though its names and shapes do: the network refuses its values.",
            report,
        ) from error
    _fill(module, matched)
    return report


class _State(dict[str, Any]):
    """A state dict that can carry ``_metadata``, as torch's own does."""


def _fill(module: nn.Module, matched: Match, *, on_meta: bool = False) -> None:
    report = matched.report
    if report.wrong_shape and report.num_classes is not None:
        fit_head(module, report.num_classes)
    own = module.state_dict()
    for layer in () if on_meta else report.random_layers:
        restart(module, layer)
    values: dict[str, Tensor] = {name: value.to("meta") if on_meta else value for name, value in matched.values.items()}
    state = _State(module.state_dict() | values)
    # Versions of layer types (MNASNet refuses to load without), which a stripped or safetensors file does not carry.
    state._metadata = own._metadata  # type: ignore[attr-defined]  # how torch passes them
    module.load_state_dict(state)


def _without_values(module: nn.Module) -> nn.Module:
    """A copy of ``module`` without memory for values, to try things on."""
    memo: dict[int, object] = {
        id(parameter): nn.Parameter(parameter.detach().to("meta"), requires_grad=parameter.requires_grad)
        for parameter in module.parameters()
    }
    memo |= {id(buffer): buffer.detach().to("meta") for buffer in module.buffers()}
    return copy.deepcopy(module, memo)
