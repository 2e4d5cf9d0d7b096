from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import nn

from hookviz.errors import WeightsUnavailableError
from hookviz.models.architecture import Architecture, Description, OnProgress, TrainedWeights
from hookviz.models.device import is_out_of_memory
from hookviz.models.hub import hub_weights
from hookviz.models.initialization import skipped_initialization
from hookviz.models.timm_recipe import TimmRecipe

PREFIX = "timm/"
_REGISTERED = re.compile(r"^@register_model\s+def (\w+)", re.MULTILINE)
_EMBEDS = ("clip", "pe_core")
"""In the names of networks whose ``num_classes`` is the length of an embedding that is compared with a text's."""


@cache
def names() -> tuple[str, ...]:
    """``timm/<name>`` for every architecture that timm registers, in alphabetical order.

    They are read from timm's source, since importing its thousand architectures takes a second.
    """
    package = find_spec("timm")
    folders = package.submodule_search_locations if package else None
    sources = [source.read_text("utf-8") for folder in folders or () for source in Path(folder, "models").glob("*.py")]
    return tuple(sorted(PREFIX + name for source in sources for name in _REGISTERED.findall(source)))


def architecture(name: str) -> Architecture:
    """One of timm's architectures, ``timm/<name>``, with all the weights that timm lists for it."""
    from timm import __version__  # here and below, since it imports a thousand architectures
    from timm.models import get_arch_pretrained_cfgs

    own_name = name.removeprefix(PREFIX)
    configs = {key: config.to_dict() for key, config in get_arch_pretrained_cfgs(own_name).items()}
    source = f"timm {__version__} {own_name}, Apache-2.0"
    default: dict[str, Any] = next(iter(configs.values()), {})  # with or without weights
    return Architecture(
        name=name,
        source=source,
        build=lambda: _untrained(own_name),
        trained=tuple(_trained_weights(name, config) for config in configs.values() if _has_weights(config)),
        untrained=_description(own_name, default),
    )


def _has_weights(config: dict[str, Any]) -> bool:
    return bool(config.get("hf_hub_id") or config.get("url"))


def _description(own_name: str, config: dict[str, Any]) -> Description:
    return Description(TimmRecipe.of(config), _categories(own_name, config))


def _trained_weights(name: str, config: dict[str, Any]) -> TrainedWeights:
    from timm import __version__

    own_name = name.removeprefix(PREFIX)
    tag = config.get("tag") or "default"
    described = _description(own_name, config)
    licence = config.get("license") or "licence not stated"
    return TrainedWeights(
        name=tag,
        recipe=described.recipe,
        categories=described.categories,
        source=f"timm {__version__} {own_name}.{tag}, {licence}",
        build=lambda on_progress: _trained(name, tag, config, on_progress),
        qualified_name=f"{own_name}.{tag}",
    )


def _categories(own_name: str, config: dict[str, Any]) -> tuple[str, ...]:
    from timm.data import infer_imagenet_subset

    count, tag = config.get("num_classes") or 0, config.get("tag") or ""
    subset = infer_imagenet_subset(config)
    if subset is None and any(word in f"{own_name}.{tag}" for word in _EMBEDS):
        return ()
    if subset is None or (count == 1000 and "in1k" not in tag):
        return tuple(f"class {index}" for index in range(count))
    return _imagenet_names(subset)


@cache
def _imagenet_names(subset: str) -> tuple[str, ...]:
    if subset == "imagenet-1k":
        from torchvision.models import ResNet18_Weights  # its names are shorter than timm's lists of synonyms

        return tuple(ResNet18_Weights.DEFAULT.meta["categories"])
    from timm.data import ImageNetInfo

    return tuple(ImageNetInfo(subset).label_descriptions())


def _untrained(own_name: str) -> nn.Module:
    import timm

    module: nn.Module = timm.create_model(own_name, pretrained=False)
    return module


def _trained(name: str, tag: str, config: dict[str, Any], on_progress: OnProgress | None) -> nn.Module:
    import timm

    untrained_offer = f"load_model({name!r}, weights=None) gives the same network untrained."
    try:
        path = hub_weights(config, on_progress)
    except WeightsUnavailableError as error:
        raise WeightsUnavailableError(f"The weights {tag} of {name}: {error}; {untrained_offer}") from error
    # timm's own loader: it knows old key names, and finds the file by this entry; one that is not a state dict comes
    # from the address alone, never from the hub.
    overlay = {"file": str(path), "custom_load": path.suffix == ".npz" and config["custom_load"]}
    tagged = f"{name.removeprefix(PREFIX)}.{tag}" if config.get("tag") else name.removeprefix(PREFIX)
    try:
        with skipped_initialization():
            module: nn.Module = timm.create_model(tagged, pretrained=True, pretrained_cfg_overlay=overlay)
    except Exception as error:  # unpickling a damaged file can raise anything
        if is_out_of_memory(error):
            raise
        raise WeightsUnavailableError(
            f"The weights file {path} is damaged; delete it and load {name} again, or {untrained_offer}"
        ) from error
    return module
