"""Files of timm's weights: from the Hugging Face cache, from torch's, or downloaded into torch's.

``huggingface_hub`` is asked for what it has, not to download: without a network it tries for 24 seconds, twice.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from hookviz.errors import WeightsUnavailableError
from hookviz.models.architecture import OnProgress
from hookviz.models.download import cached_weights

_FILE_NAMES = ("model.safetensors", "pytorch_model.bin")
"""What a weights file is called on the hub, the usual name first."""


def hub_weights(config: dict[str, Any], on_progress: OnProgress | None = None) -> Path:
    """The weights file of one of timm's ``pretrained_cfg``.

    Raises:
        WeightsUnavailableError: it could not be fetched whole; nothing of it is left on the disk.
    """
    repository = config.get("hf_hub_id")
    if not repository:
        return cached_weights(config["url"], on_progress)
    return _in_hub_cache(repository) or _downloaded(repository, on_progress)


def _in_hub_cache(repository: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache  # here, since timm alone brings it

    found = (try_to_load_from_cache(repository, name) for name in _FILE_NAMES)
    return next((Path(path) for path in found if isinstance(path, str)), None)


def _downloaded(repository: str, on_progress: OnProgress | None) -> Path:
    from huggingface_hub import constants, hf_hub_url

    if constants.HF_HUB_OFFLINE:
        raise WeightsUnavailableError(f"{repository} is not in the cache, and HF_HUB_OFFLINE forbids to download it")
    usual, other = _FILE_NAMES
    try:
        return cached_weights(hf_hub_url(repository, usual), on_progress, name=_cache_name(repository, usual))
    except WeightsUnavailableError as error:
        if not (isinstance(error.__cause__, HTTPError) and error.__cause__.code == 404):
            raise
    return cached_weights(hf_hub_url(repository, other), on_progress, name=_cache_name(repository, other))


def _cache_name(repository: str, file_name: str) -> str:
    return f"{repository}/{file_name}".replace("/", "--")
