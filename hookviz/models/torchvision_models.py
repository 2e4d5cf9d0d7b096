from __future__ import annotations

from typing import Any

import torchvision
from torch import nn

from hookviz.errors import WeightsUnavailableError
from hookviz.models.architecture import Architecture, OnProgress, TrainedWeights
from hookviz.models.device import is_out_of_memory
from hookviz.models.download import cached_weights
from hookviz.models.initialization import skipped_initialization
from hookviz.models.recipe import Recipe


def classifier_names() -> list[str]:
    """Torchvision's classifiers, in alphabetical order."""
    return sorted(torchvision.models.list_models(module=torchvision.models))


def architecture(name: str) -> Architecture:
    """One of torchvision's classifiers with all the weights that torchvision lists for it."""
    entries = list(torchvision.models.get_model_weights(name))
    default = torchvision.models.get_model_weights(name).DEFAULT
    entries.sort(key=lambda entry: entry is not default)
    return Architecture(
        name=name,
        source=f"torchvision {torchvision.__version__} {name}, BSD-3-Clause",
        build=lambda: _untrained(name, default),
        trained=tuple(_trained_weights(name, entry) for entry in entries),
    )


def _trained_weights(name: str, entry: Any) -> TrainedWeights:
    licence = entry.meta.get("license", "BSD-3-Clause")
    return TrainedWeights(
        name=entry.name,
        recipe=Recipe(entry.transforms()),
        categories=tuple(entry.meta["categories"] or ()),
        source=f"torchvision {torchvision.__version__} {entry!r}, {licence}",
        build=lambda on_progress: _trained(name, entry, on_progress),
        qualified_name=repr(entry),
    )


def _trained(name: str, entry: Any, on_progress: OnProgress | None) -> nn.Module:
    untrained_offer = f"load_model({name!r}, weights=None) gives the same network untrained."
    try:
        path = cached_weights(entry.url, on_progress)
    except WeightsUnavailableError as error:
        raise WeightsUnavailableError(f"The weights {entry.name} of {name}: {error}; {untrained_offer}") from error
    try:
        with skipped_initialization():
            # torchvision's own builder: it knows old key names (DenseNet) and auxiliary heads, and finds the file in
            # the cache.
            module: nn.Module = torchvision.models.get_model(name, weights=entry, progress=False)
    except Exception as error:  # unpickling a damaged file can raise anything
        if is_out_of_memory(error):
            raise
        raise WeightsUnavailableError(
            f"The weights file {path} is damaged; delete it and load {name} again, or {untrained_offer}"
        ) from error
    return module


def _untrained(name: str, default: Any) -> nn.Module:
    options: dict[str, Any] = {}
    # Each option is what the builder itself sets with weights, so that layer names and input size are the same without.
    if name == "googlenet":
        options = {"aux_logits": False, "transform_input": True, "init_weights": True}
    elif name == "inception_v3":
        options = {"aux_logits": True, "transform_input": True, "init_weights": True}
    elif name.startswith("vit_"):
        options = {"image_size": default.meta["min_size"][0]}
    module: nn.Module = torchvision.models.get_model(name, weights=None, **options)
    return module
