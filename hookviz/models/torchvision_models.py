from __future__ import annotations

from typing import Any

import torchvision
from torch import nn
from torchvision.transforms import _presets as presets  # where every weights entry gets its transforms from

from hookviz.errors import WeightsUnavailableError
from hookviz.models.architecture import Architecture, OnProgress, TrainedWeights
from hookviz.models.classification import CLASSIFICATION, VIDEO
from hookviz.models.clip import ClipRecipe
from hookviz.models.detection import DETECTION, INSTANCE_SEGMENTATION, KEYPOINTS, DetectionRecipe
from hookviz.models.device import is_out_of_memory
from hookviz.models.download import cached_weights
from hookviz.models.initialization import skipped_initialization
from hookviz.models.optical_flow import OPTICAL_FLOW, FlowRecipe
from hookviz.models.preparation import Preparation
from hookviz.models.quantized import quantized_network, quantized_with_weights
from hookviz.models.recipe import Recipe
from hookviz.models.segmentation import SEGMENTATION, SegmentationRecipe
from hookviz.models.task import Task

_QUANTIZED = "quantized_"
_TASKS: dict[type, Task] = {
    presets.ImageClassification: CLASSIFICATION,
    presets.ObjectDetection: DETECTION,
    presets.SemanticSegmentation: SEGMENTATION,
    presets.VideoClassification: VIDEO,
    presets.OpticalFlow: OPTICAL_FLOW,
}
_DETECTION_TASKS: dict[str, Task] = {"maskrcnn_": INSTANCE_SEGMENTATION, "keypointrcnn_": KEYPOINTS}
_CLIP_LENGTHS = {"s3d": 128, "swin3d_b": 32, "swin3d_s": 32, "swin3d_t": 32}
"""The frames per clip with which torchvision measured the weights, where it is not 16."""


def names() -> list[str]:
    """All of torchvision's networks, in alphabetical order."""
    return list(torchvision.models.list_models())


def architecture(name: str) -> Architecture:
    """One of torchvision's networks with all the weights that torchvision lists for it."""
    entries = list(torchvision.models.get_model_weights(name))
    default = torchvision.models.get_model_weights(name).DEFAULT
    entries.sort(key=lambda entry: entry is not default)
    return Architecture(
        name=name,
        source=f"torchvision {torchvision.__version__} {name}, BSD-3-Clause",
        build=lambda: _untrained(name, default),
        trained=tuple(_trained_weights(name, entry) for entry in entries),
        task=_task(name, default),
        int8=name.startswith(_QUANTIZED),
    )


def _task(name: str, default: Any) -> Task:
    by_name = (task for prefix, task in _DETECTION_TASKS.items() if name.startswith(prefix))
    return next(by_name, _TASKS[type(default.transforms())])


def _recipe(name: str, entry: Any) -> Preparation:
    transform = entry.transforms()
    if isinstance(transform, presets.ObjectDetection):
        return DetectionRecipe(transform)
    if isinstance(transform, presets.SemanticSegmentation):
        return SegmentationRecipe(transform)
    if isinstance(transform, presets.VideoClassification):
        return ClipRecipe(transform, _CLIP_LENGTHS.get(name, 16))
    if isinstance(transform, presets.OpticalFlow):
        return FlowRecipe(transform)
    return Recipe(transform)


def _trained_weights(name: str, entry: Any) -> TrainedWeights:
    licence = entry.meta.get("license", "BSD-3-Clause")
    return TrainedWeights(
        name=entry.name,
        recipe=_recipe(name, entry),
        categories=tuple(entry.meta.get("categories") or ()),
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
        return _filled(name, entry)
    except Exception as error:  # unpickling a damaged file can raise anything
        if is_out_of_memory(error):
            raise
        raise WeightsUnavailableError(
            f"The weights file {path} is damaged; delete it and load {name} again, or {untrained_offer}"
        ) from error


def _filled(name: str, entry: Any) -> nn.Module:
    # torchvision's own builders: they know old key names (DenseNet) and auxiliary heads, and find the file in the
    # cache.
    if name.startswith(_QUANTIZED):
        return quantized_with_weights(name, entry)
    with skipped_initialization():
        module: nn.Module = torchvision.models.get_model(name, weights=entry, progress=False)
    return module


def _untrained(name: str, default: Any) -> nn.Module:
    if name.startswith(_QUANTIZED):
        return quantized_network(name, default.meta["backend"], _untrained_options(name, default))
    module: nn.Module = torchvision.models.get_model(name, weights=None, **_untrained_options(name, default))
    return module


def _untrained_options(name: str, default: Any) -> dict[str, Any]:
    """What the builder itself sets with weights, so that layer names and sizes are the same without."""
    base = name.removeprefix(_QUANTIZED)
    if base == "googlenet":
        return {"aux_logits": False, "transform_input": True, "init_weights": True}
    if base == "inception_v3":
        # The quantised one loses its auxiliary head with weights.
        return {"aux_logits": base == name, "transform_input": True, "init_weights": True}
    if base.startswith("vit_"):
        return {"image_size": default.meta["min_size"][0]}
    transform = default.transforms()
    if not isinstance(transform, (presets.ObjectDetection, presets.SemanticSegmentation)):
        return {}
    options = {"weights_backbone": None, "num_classes": len(default.meta["categories"])}
    has_auxiliary_head = isinstance(transform, presets.SemanticSegmentation) and not base.startswith("lraspp_")
    return options | ({"aux_loss": True} if has_auxiliary_head else {})
