from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.models.checkpoints.report import CheckpointError, subject

_DEPTH = 3
_AVERAGED = ("ema", "swa", "averaged", "teacher", "momentum", "target")
_NOT_A_MODEL = ("optim", "sched", "scaler", "loss", "args", "config")


@dataclass(frozen=True)
class StoredState:
    """One state dict of a file: the keys it lies under (``()`` at the top), and its tensors by name."""

    path: tuple[str, ...]
    values: dict[str, Tensor]

    @property
    def averaged(self) -> bool:
        """Whether its key says that it is an average over training steps."""
        return any(is_averaged(part) for part in self.path)


class Checkpoint(dict[str, Tensor]):
    """The tensors of a checkpoint's state dict by name.

    Where a file has several state dicts, the largest that is not an average over training comes first and is what the
    mapping holds. ``ignored`` are the names of entries that are no tensors; ``name`` is the file's.
    """

    def __init__(self, states: tuple[StoredState, ...], ignored: tuple[str, ...], name: str = "") -> None:
        super().__init__(states[0].values)
        self.states = states
        self.ignored = ignored
        self.name = name

    @classmethod
    def of(cls, stored: Any, name: str = "") -> Checkpoint:
        """What was stored, a state dict or a dictionary around some.

        Raises:
            CheckpointError: no state dict in it, or tensors that have no plain values.
        """
        if isinstance(stored, Checkpoint):
            return stored
        states = sorted(_states(stored, ()), key=lambda state: (state.averaged, -len(state.values)))
        if not states:
            raise CheckpointError(f"{subject(name)} is not a state dict; save model.state_dict().")
        for state in states:
            _refuse_unusual(state, name)
        return cls(tuple(states), tuple(_ignored(stored, states)), name)


def is_averaged(name: str) -> bool:
    """Whether a part of a name says that what lies under it is an average over training steps."""
    words = name.lower().split("_")
    return any(word in words for word in _AVERAGED)


def _states(stored: Any, path: tuple[str, ...]) -> Iterator[StoredState]:
    if not isinstance(stored, Mapping) or len(path) > _DEPTH:
        return
    named = {name: value for name, value in stored.items() if isinstance(name, str)}
    tensors = {name: _plain(value) for name, value in named.items() if isinstance(value, Tensor)}
    if tensors:
        yield StoredState(path, tensors)
    for name, value in named.items():
        if not any(word in name.lower() for word in _NOT_A_MODEL):
            yield from _states(value, (*path, name))


def _plain(value: Tensor) -> Tensor:
    return value.data if isinstance(value, nn.Parameter) else value


def _refuse_unusual(state: StoredState, name: str) -> None:
    for key, value in state.values.items():
        if value.layout is not torch.strided or value.is_quantized or value.is_nested or value.device.type != "cpu":
            raise CheckpointError(
                f"{subject(name)} stores {key} as a sparse, quantized or otherwise unusual tensor; "
                "save a state_dict of ordinary float tensors."
            )


def _ignored(stored: Mapping[Any, Any], states: list[StoredState]) -> Iterator[str]:
    """Names at the top, and inside the state dict that comes first, that led to no tensor."""
    leads = {state.path[0] for state in states if state.path}
    yield from (str(key) for key, value in stored.items() if key not in leads and not isinstance(value, Tensor))
    inner: Any = stored
    for part in states[0].path:
        inner = inner[part]
        yield from (f"{part}.{key}" for key, value in inner.items() if not isinstance(value, Tensor | Mapping))
