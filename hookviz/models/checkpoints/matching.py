from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from hookviz.models.checkpoints.differences import Differences
from hookviz.models.checkpoints.naming import Naming, best_naming
from hookviz.models.checkpoints.report import CheckpointReport
from hookviz.models.checkpoints.states import Checkpoint


@dataclass(frozen=True)
class Match:
    """A report, and the file's values by the network's own names."""

    report: CheckpointReport
    values: dict[str, Tensor]


def match_checkpoint(module: nn.Module, state: Mapping[str, Any]) -> CheckpointReport:
    """How the values in ``state`` compare with those of ``module``, which is not changed.

    ``state`` is what :func:`read_checkpoint` gives, a state dict, or a dictionary around some. Of all ways to take
    wrappers and prefixes off, the one counts that makes most names and shapes agree; where a model and its average over
    training (EMA) agree alike, the model counts, and the average is named in ``ignored``.

    Raises:
        CheckpointError: there is no state dict in it.
    """
    return match(module, state).report


def match(module: nn.Module, state: Mapping[str, Any]) -> Match:
    """As :func:`match_checkpoint`, together with the values."""
    checkpoint = Checkpoint.of(state)
    own = own_values(module)
    naming = best_naming(checkpoint.states, own)
    values = {name: naming.state.values[key] for name, key in naming.keys.items()}
    values |= _tied(own, values)
    differences = Differences.between(module, own, values, naming.left_over)
    return Match(_report(checkpoint, naming, differences), values)


def own_values(module: nn.Module) -> dict[str, Tensor]:
    """The parameters and buffers of a network's state dict, themselves rather than detached."""
    return {name: value for name, value in module.state_dict(keep_vars=True).items() if isinstance(value, Tensor)}


def _tied(own: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values for parameters that are another's under a second name, which safetensors stores once."""
    by_identity = {id(own[name]): value for name, value in values.items()}
    return {
        name: by_identity[id(tensor)]
        for name, tensor in own.items()
        if name not in values and id(tensor) in by_identity
    }


def _report(checkpoint: Checkpoint, naming: Naming, differences: Differences) -> CheckpointReport:
    aside = tuple(".".join(state.path) for state in checkpoint.states if state is not naming.state and state.path)
    return CheckpointReport(
        matched=differences.matched,
        missing=differences.missing,
        unexpected=differences.unexpected,
        wrong_shape=differences.wrong_shape,
        wrong_dtype=differences.wrong_dtype,
        renamed=naming.removed,
        ignored=(*aside, *checkpoint.ignored),
        random_layers=differences.random_layers,
        head=differences.head,
        num_classes=differences.num_classes,
        fits=differences.fits,
        name=checkpoint.name,
    )
