from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from hookviz.class_names import numbered_class_names
from hookviz.errors import ModelError, UnknownModelError
from hookviz.models import efficientnet_lite, own, simple_cnn, timm_models, torchvision_models
from hookviz.models.architecture import Architecture, Description, OnProgress
from hookviz.models.checkpoints import SUFFIXES, CheckpointReport, fill_from_checkpoint
from hookviz.models.device import OnNote, choose_device, is_out_of_memory, out_of_memory_note, place, warn_note
from hookviz.models.initialization import seeded_initialization, skipped_initialization
from hookviz.models.model import UNTRAINED, Model
from hookviz.models.own_task import OWN_TASK

_BUNDLED = {efficientnet_lite.NAME: efficientnet_lite.architecture, simple_cnn.NAME: simple_cnn.architecture}

WeightsChoice: TypeAlias = Any
"""None, a name, a path, or a member of one of torchvision's weights enums, which are untyped."""


def list_models() -> list[str]:
    """Every model there is: the bundled ones, which need no download, torchvision's, ``timm/<name>``, and one's own."""
    return list(dict.fromkeys([*_BUNDLED, *torchvision_models.names(), *timm_models.names(), *own.names()]))


def list_weights(name: str) -> tuple[str, ...]:
    """The weights there are for a model: first what ``"default"`` means, then all others, last ``"untrained"``.

    Raises:
        UnknownModelError: no model of that name.
    """
    return (own.AS_BUILT,) if _is_own(name) else _architecture(name).weights_names


def model_task(name: str) -> str:
    """What a model is for, as :attr:`Model.task` says it, without loading it.

    Raises:
        UnknownModelError: no model of that name.
    """
    return OWN_TASK.name if _is_own(name) else _architecture(name).task.name


def load_model(  # noqa: PLR0913 - what is loaded, where to, and who is told
    name: str,
    weights: WeightsChoice = "default",
    device: str | torch.device = "auto",
    *,
    class_names: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    on_note: OnNote = warn_note,
) -> Model:
    """A model ready to run: in eval mode, on ``device``, with its weights' own preprocessing and class names.

    ``name`` is one of :func:`list_models`, or ``package.module:factory`` for a network of one's own: a function that
    returns it, or a :class:`Network` with its ``prepare``, class names and example input. Its module is imported.

    ``weights`` is ``"default"`` (the first of :func:`list_weights`), another name from there, torchvision's enum
    member, a checkpoint for this network (the path of a .pth, .pt, .bin or .safetensors file, its bytes, or an open
    file), or None: untrained, with the same values in every process. A checkpoint and an untrained network go by the
    default weights' preprocessing and class names; ``class_names`` gives a checkpoint its own, and without them classes
    of another number are ``"class 0"`` and so on. What is not on the disk is
    downloaded into torch's cache; ``on_progress`` is told the bytes done and the bytes in all. ``device`` ``"auto"`` is
    CUDA, else MPS, else the CPU; where the network does not fit there, it goes to the CPU and ``on_note`` is told so
    (``Model.note`` keeps the sentence).

    Any number of threads may load at once; random states are not touched.

    Raises:
        UnknownModelError: no model of that name; the sentence has the nearest ones.
        WeightsUnavailableError: the weights could not be downloaded or read.
        ModelError: no such weights or device, or a checkpoint that does not fit.
    """
    architecture = None if _is_own(name) else _architecture(name)
    asked = choose_device(device)
    wanted = torch.device("cpu") if architecture and architecture.int8 else asked
    try:
        built = _own_built(name, weights) if architecture is None else _built(architecture, weights, on_progress)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        raise ModelError(f"There is not enough memory to load {name}; choose a smaller model.") from error
    placed = place(built.module.eval(), wanted)
    note = "" if placed == wanted else out_of_memory_note(name, wanted)
    if wanted != asked and device != "auto":
        note = f"{name} computes with 8-bit integers, which torch does on the CPU only."
    if built.report is not None and built.report.random_layers:
        note = f"{note} {built.report.verdict}".strip()
    if note:
        on_note(note)
    return Model(
        name=name,
        module=built.module,
        recipe=built.described_by.recipe,
        categories=_categories(built, class_names),
        weights=built.weights,
        device=placed,
        source=built.source,
        note=note,
        purpose=OWN_TASK if architecture is None else architecture.task,
        report=built.report,
    )


def _is_own(name: str) -> bool:
    """Whether a name means a network of one's own; an installed package cannot take the name of a shipped one."""
    if name in own.asked_for():
        return True
    shipped = name in _BUNDLED or name in torchvision_models.names() or name in timm_models.names()
    return not shipped and (name in own.names() or own.is_target(name))


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
    report: CheckpointReport | None = None


def _built(architecture: Architecture, weights: WeightsChoice, on_progress: OnProgress | None) -> _Built:
    if weights is None or (isinstance(weights, str) and weights.lower() == UNTRAINED):
        with seeded_initialization():
            module = architecture.build()
        return _Built(module, UNTRAINED, f"{architecture.source}, untrained", architecture.description)
    checkpoint = _checkpoint(weights)
    if checkpoint is not None:
        with seeded_initialization() if architecture.int8 else skipped_initialization():
            module = architecture.build()
        return _filled(module, checkpoint, architecture.source, architecture.description)
    trained = architecture.find(weights if isinstance(weights, str) else repr(weights))
    return _Built(trained.build(on_progress), trained.name, trained.source, trained)


def _own_built(name: str, weights: WeightsChoice) -> _Built:
    checkpoint = None if weights is None else _checkpoint(weights)
    if checkpoint is None and not (isinstance(weights, str) and weights.lower() in {"default", own.AS_BUILT}):
        raise ModelError(f"{name} comes with the values that its factory gives it; ask for no weights, or for a file.")
    network = own.build(name)
    module = network.build(None)
    if checkpoint is None:
        return _Built(module, own.AS_BUILT, network.source, network)
    return _filled(module, checkpoint, network.source, network)


def _filled(module: nn.Module, checkpoint: Any, source: str, described_by: Description) -> _Built:
    report = fill_from_checkpoint(module, checkpoint)  # what stays random, the note says
    name = report.name or "own weights"
    return _Built(module, name, f"{source}, values of {name}", described_by, report)


def _checkpoint(weights: WeightsChoice) -> Any:
    """A path, bytes or an open file that the weights are to be read from; None where they are chosen by name."""
    if isinstance(weights, os.PathLike):
        return Path(weights)
    if isinstance(weights, str) and weights.lower().endswith(SUFFIXES):
        return Path(weights).expanduser()
    return weights if isinstance(weights, (bytes, bytearray, memoryview)) or hasattr(weights, "read") else None


def _categories(built: _Built, class_names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the classes: given, or those of the default weights where their number is right, or numbers."""
    default = built.described_by.categories
    count = len(default) if built.report is None else built.report.num_classes or len(default)
    if not count and class_names is not None:
        return tuple(class_names)  # how many classes a network of one's own has, it says when it runs
    if class_names is None:
        return default if count == len(default) else numbered_class_names(count)
    if len(class_names) != count:
        raise ModelError(
            f"There are {len(class_names)} class names for a network of {count} classes; give one for each."
        )
    return tuple(class_names)
