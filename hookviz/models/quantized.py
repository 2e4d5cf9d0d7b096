"""torchvision's int8 networks."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torchvision
from torch import nn
from torchvision.models.quantization import utils as quantization

from hookviz.models.initialization import seeded_initialization

_building = threading.Lock()


def quantized_network(name: str, backend: str, options: dict[str, Any]) -> nn.Module:
    """An untrained int8 network: its float weights quantized, and scales read off one random picture.

    torchvision's own builder leaves the scales of its two MobileNets at 1, with which all their weights become 0.
    """
    with _quiet_and_alone():
        module: nn.Module = torchvision.models.get_model(name, weights=None, quantize=False, **options)
        quantization.quantize_model(module, backend)
    return module


def quantized_with_weights(name: str, entry: Any) -> nn.Module:
    """The int8 network filled with the values of one of torchvision's weights entries."""
    # Not with undefined values: the builder reads scales off a picture before it loads the file.
    with _quiet_and_alone(), seeded_initialization():
        module: nn.Module = torchvision.models.get_model(name, weights=entry, quantize=True, progress=False)
    return module


@contextmanager
def _quiet_and_alone() -> Iterator[None]:
    """Put torch's quantized engine back, and hide what torch says of its own quantization being deprecated.

    Both are global to the process, so one thread at a time; a built network runs whatever the engine is.
    """
    with _building, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = torch.backends.quantized.engine
        try:
            yield
        finally:
            torch.backends.quantized.engine = engine
