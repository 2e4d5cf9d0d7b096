from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError

SUFFIXES = (".pth", ".pt", ".safetensors")
_WRAPPERS = ("state_dict", "model")
_SHOWN = 3


def load_checkpoint(module: nn.Module, path: Path) -> None:
    """Fill ``module`` with the values of a file, all of them and no others.

    The file is a state dict, by itself or under ``"state_dict"`` or ``"model"``, with or without DataParallel's
    ``module.``.

    Raises:
        ModelError: the file cannot be read as one, or does not fit ``module``; the sentence names the first
        differences.
    """
    state = _unwrapped(_read(path), path)
    own = module.state_dict()
    differences = _differences(state, own)
    if differences:
        raise ModelError(f"The checkpoint {path.name} does not fit: {'; '.join(differences)}.")
    # Versions of layer types (MNASNet refuses to load without), which a stripped or safetensors file does not carry.
    state._metadata = own._metadata  # type: ignore[attr-defined]  # how torch passes them
    module.load_state_dict(state)


def _read(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".safetensors":
            from safetensors.torch import load_file  # here, since most checkpoints do not need it

            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise ModelError(f"There is no checkpoint {str(path)!r}.") from error
    except pickle.UnpicklingError as error:
        raise ModelError(
            f"The checkpoint {path.name} holds more than tensors, which can run code; save model.state_dict() instead."
        ) from error
    except Exception as error:
        raise ModelError(
            f"The checkpoint {path.name} could not be read; it may be damaged or another kind of file."
        ) from error


class _State(dict[str, Tensor]):
    """A state dict that can carry ``_metadata``, as torch's own does."""


def _unwrapped(stored: Any, path: Path) -> _State:
    for wrapper in _WRAPPERS:
        if isinstance(stored, Mapping) and isinstance(stored.get(wrapper), Mapping):
            stored = stored[wrapper]
    if not isinstance(stored, Mapping) or not all(isinstance(value, Tensor) for value in stored.values()):
        raise ModelError(f"The checkpoint {path.name} is not a state dict; save model.state_dict().")
    return _State({str(name).removeprefix("module."): value for name, value in stored.items()})


def _differences(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> list[str]:
    shapes = [
        f"{name} is {tuple(state[name].shape)} instead of {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    counted = [
        ("missing", [name for name in own if name not in state]),
        ("unexpected", [name for name in state if name not in own]),
        ("of another shape", shapes),
    ]
    return [f"{len(names)} {what} ({_first(names)})" for what, names in counted if names]


def _first(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
