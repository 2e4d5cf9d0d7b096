"""What sessions share: loaded models and kept values, each within a stated bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import streamlit as st
import torch
from torch import Tensor

from hookviz.class_names import read_class_names
from hookviz.hooks import Call, Estimate, Overwrite, estimate
from hookviz.hooks.operations import list_all
from hookviz.hooks.structure import leaves
from hookviz.images import read_image
from hookviz.images.reading import ImageReading
from hookviz.look import look
from hookviz.models import Model, list_weights, load_frames, load_model
from hookviz.models.model import UNTRAINED
from hookviz.models.preparation import Pictures
from hookviz.types import LayerInfo
from hookviz.ui.keeping import Keeping, keep_function
from hookviz.ui.shelf import Shelf

MOVING = ("video", "optical flow")
"""The tasks of networks that take several frames."""

MODELS_KEPT = 3
BYTES_KEPT = 512 * 2**20


@dataclass(frozen=True, slots=True)
class LayerCapture:
    """What one layer returned for one image: its calls, how much was ``kept``, and what overwrote it later."""

    calls: tuple[Call, ...]
    overwrites: tuple[Overwrite, ...]
    kept: Keeping = "exact"

    @property
    def bytes(self) -> int:
        """The memory that the tensors take; of sparse ones, which do not tell it, what they take when drawn."""
        kept = [tensor for call in self.calls for _, tensor in leaves(call.output, Tensor)]
        return sum(
            tensor.numel() * tensor.element_size() for tensor in [*kept, *(one.naive for one in self.overwrites)]
        )


@dataclass(frozen=True, slots=True, eq=False)
class SeenImage:
    """A file that was read: the picture, or the first frame, and all pictures that the network takes."""

    reading: ImageReading
    pictures: Pictures


@st.cache_resource(show_spinner=False)
def models() -> Shelf[Model]:
    """The models in memory: at most ``MODELS_KEPT`` of them, shared by all sessions."""
    return Shelf(MODELS_KEPT, lambda _: 1)


@st.cache_resource(show_spinner=False)
def captures() -> Shelf[LayerCapture]:
    """The layers' values in memory: at most ``BYTES_KEPT``, shared by all sessions."""
    return Shelf(BYTES_KEPT, lambda capture: capture.bytes)


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """Which network, with which weights, where: the weights by name, or a visitor's own file with its class names."""

    name: str
    weights: str
    device: str
    own_weights: bytes | None = None
    class_names: bytes | None = None

    @property
    def key(self) -> str:
        """What the model is known by; files by what is in them."""
        own = [digest(content) for content in (self.own_weights, self.class_names) if content is not None]
        return " ".join([self.name, *(own or [self.weights]), self.device])


def get_model(chosen: ChosenModel, on_progress: Callable[[int, int], None]) -> Model:
    """A model, loaded once for all sessions."""
    return models().get(chosen.key, lambda: _load(chosen, on_progress))


def _load(chosen: ChosenModel, on_progress: Callable[[int, int], None]) -> Model:
    weights = chosen.own_weights or (None if chosen.weights == UNTRAINED else chosen.weights)
    return load_model(
        chosen.name,
        weights,
        chosen.device,
        class_names=None if chosen.class_names is None else read_class_names(chosen.class_names),
        on_progress=on_progress,
        on_note=lambda _: None,
    )


def digest(content: bytes) -> str:
    """What some bytes are known by."""
    return blake2b(content, digest_size=16).hexdigest()


# In what follows, Streamlit's caches tell calls apart by ``key`` alone: arguments with an underscore are not looked at.


@st.cache_resource(show_spinner=False, max_entries=4)
def get_image(key: str, moving: bool, _content: bytes, _second: bytes | None) -> SeenImage:  # noqa: ARG001
    """The upright image in some bytes, decoded once; of one that moves, all frames. ``key`` is the bytes' digest."""
    if not moving:
        reading = read_image(_content)
        return SeenImage(reading, reading.image)
    frames = load_frames(_content) if _second is None else [read_image(_content).image, read_image(_second).image]
    return SeenImage(ImageReading(frames[0], "", frames[0].size, frames[0].mode), tuple(frames))


@st.cache_resource(show_spinner=False, max_entries=32)
def get_batch(key: tuple[str, str], _model: Model, _image: SeenImage) -> Tensor:  # noqa: ARG001
    """The network's input for an image; ``key`` is the model's and the image's."""
    return _model.prepare(_image.pictures)


@st.cache_resource(show_spinner=False, max_entries=16)
def get_result(key: tuple[str, str], _model: Model, _batch: Tensor) -> Any:  # noqa: ARG001
    """What the network says: of a classifier the five most probable classes."""
    return _model.predict(_batch, k=5)


@st.cache_resource(show_spinner=False, max_entries=16)
def get_layers(key: tuple[str, tuple[int, ...]], _model: Model, _batch: Tensor) -> list[LayerInfo]:  # noqa: ARG001
    """The layers of a model with calls and shapes for an input's shape."""
    return list_all(_model.module, *_model.arguments(_batch))


@st.cache_resource(show_spinner=False, max_entries=16)
def get_estimate(key: tuple[str, tuple[int, ...]], _model: Model, _batch: Tensor) -> Estimate:  # noqa: ARG001
    """What a forward of a model takes for an input's shape."""
    return estimate(_model.module, *_model.arguments(_batch))


def get_captures(
    key: tuple[str, str], model: Model, batch: Tensor, names: Sequence[str], keeping: Keeping
) -> dict[str, LayerCapture]:
    """What the named layers computed: from memory where it is still there, the others from one forward."""
    shelf = captures()
    found = {name: capture for name in names if (capture := shelf.find((*key, name, keeping))) is not None}
    missing = [name for name in names if name not in found]
    made = _look_at(model, batch, missing, keeping) if missing else {}
    for name, capture in made.items():
        shelf.put((*key, name, keeping), capture)
    return found | made


def _look_at(model: Model, batch: Tensor, names: Sequence[str], keeping: Keeping) -> dict[str, LayerCapture]:
    seen = look(model.module, model.arguments(batch), names, keep=keep_function(keeping))
    overwritten = seen.overwrites
    return {
        name: LayerCapture(seen.calls[name], tuple(one for one in overwritten if one.layer == name), keeping)
        for name in names
    }


def default_weights(name: str) -> str:
    """The name of the weights a model has by default."""
    return list_weights(name)[0]


def device_threads() -> int:
    """How many threads torch computes with on the CPU."""
    return torch.get_num_threads()
