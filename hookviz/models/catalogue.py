from __future__ import annotations

import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from hookviz.errors import ModelError, UnknownModelError
from hookviz.models import efficientnet_lite, simple_cnn, timm_models, torchvision_models
from hookviz.models.architecture import Architecture, Description, OnProgress
from hookviz.models.checkpoint import SUFFIXES, load_checkpoint
from hookviz.models.device import OnNote, choose_device, is_out_of_memory, out_of_memory_note, place, warn_note
from hookviz.models.initialization import seeded_initialization, skipped_initialization
from hookviz.models.model import UNTRAINED, Model

_BUNDLED = {efficientnet_lite.NAME: efficientnet_lite.architecture, simple_cnn.NAME: simple_cnn.architecture}

WeightsChoice: TypeAlias = Any
"""None, a name, a path, or a member of one of torchvision's weights enums, which are untyped."""


def list_models() -> list[str]:
    """Every model there is: the bundled ones, which need no download, then torchvision's, then ``timm/<name>``."""
    return [*_BUNDLED, *torchvision_models.names(), *timm_models.names()]


def list_weights(name: str) -> tuple[str, ...]:
    """The weights there are for a model: first what ``"default"`` means, then all others, last ``"untrained"``.

    Raises:
        UnknownModelError: no model of that name.
    """
    return _architecture(name).weights_names


def load_model(
    name: str,
    weights: WeightsChoice = "default",
    device: str | torch.device = "auto",
    *,
    on_progress: OnProgress | None = None,
    on_note: OnNote = warn_note,
) -> Model:
    """A model ready to run: in eval mode, on ``device``, with its weights' own preprocessing and class names.

    ``weights`` is ``"default"`` (the first of :func:`list_weights`), another name from there, torchvision's enum
    member, the path of a checkpoint (.pth, .pt, .safetensors) for this network, or None: untrained, with the same
    values in every process, and the default weights' preprocessing and class names. What is not on the disk is
    downloaded into torch's cache; ``on_progress`` is told the bytes done and the bytes in all. ``device`` ``"auto"`` is
    CUDA, else MPS, else the CPU; where the network does not fit there, it goes to the CPU and ``on_note`` is told so
    (``Model.note`` keeps the sentence).

    Any number of threads may load at once; random states are not touched.

    Raises:
        UnknownModelError: no model of that name; the sentence has the nearest ones.
        WeightsUnavailableError: the weights could not be downloaded or read.
        ModelError: no such weights or device, or a checkpoint that does not fit.
    """
    architecture = _architecture(name)
    asked = choose_device(device)
    wanted = torch.device("cpu") if architecture.cpu_only else asked
    try:
        built = _built(architecture, weights, on_progress)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError(f"There is not enough memory to load {name}; choose a smaller model.") from error
    placed = place(built.module.eval(), wanted)
    note = "" if placed == wanted else out_of_memory_note(name, wanted)
    if wanted != asked and device != "auto":
        note = f"{name} computes with 8-bit integers, which torch does on the CPU only."
    if note:
        on_note(note)
    return Model(
        name=name,
        module=built.module,
        recipe=built.described_by.recipe,
        categories=built.described_by.categories,
        weights=built.weights,
        device=placed,
        source=built.source,
        note=note,
        purpose=architecture.task,
    )


def _architecture(name: str) -> Architecture:
    if name in _BUNDLED:
        return _BUNDLED[name]()
    if name in torchvision_models.names():
        return torchvision_models.architecture(name)
    if name in timm_models.names():
        return timm_models.architecture(name)
    close = get_close_matches(str(name).lower(), list_models(), n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "list_models() has all names."
    raise UnknownModelError(f"There is no model {name!r}; {hint}")


@dataclass(frozen=True)
class _Built:
    module: nn.Module
    weights: str
    source: str
    described_by: Description
    """The weights whose recipe and class names the module goes by."""


def _built(architecture: Architecture, weights: WeightsChoice, on_progress: OnProgress | None) -> _Built:
    if weights is None or (isinstance(weights, str) and weights.lower() == UNTRAINED):
        with seeded_initialization():
            module = architecture.build()
        return _Built(module, UNTRAINED, f"{architecture.source}, untrained", architecture.description)
    path = _checkpoint_path(weights)
    if path is not None:
        with skipped_initialization():
            module = architecture.build()
        load_checkpoint(module, path)
        return _Built(module, path.name, f"{architecture.source}, values of {path.name}", architecture.description)
    trained = architecture.find(weights if isinstance(weights, str) else repr(weights))
    return _Built(trained.build(on_progress), trained.name, trained.source, trained)


def _checkpoint_path(weights: WeightsChoice) -> Path | None:
    if isinstance(weights, os.PathLike):
        return Path(weights)
    if isinstance(weights, str) and weights.lower().endswith(SUFFIXES):
        return Path(weights).expanduser()
    return None
