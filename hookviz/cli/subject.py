"""What a command looks at: a network and the picture that goes into it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from PIL import Image

from hookviz.class_names import read_class_names
from hookviz.cli.console import Console
from hookviz.errors import HookvizError, ImageError
from hookviz.hooks import list_layers, list_operations
from hookviz.hooks.operations import list_all
from hookviz.images import ImageReading, read_image
from hookviz.models import Model, list_weights, load_model
from hookviz.models.model import UNTRAINED
from hookviz.samples import list_samples, sample_bytes
from hookviz.types import LayerInfo

STDIN = "-"
SAMPLE = "sample:"


@dataclass(frozen=True)
class Subject:
    """A network with its input: ``inputs`` is what the module is called with for ``image``."""

    model: Model
    image: Image.Image
    inputs: tuple[Any, ...]

    @cached_property
    def layers(self) -> list[LayerInfo]:
        """Every layer, from one forward.

        Raises:
            HookvizError: the forward failed.
        """
        with forward_in_words(self.model.name):
            return list_layers(self.model.module, *self.inputs)

    @cached_property
    def layers_and_operations(self) -> list[LayerInfo]:
        """Every layer and functional operation, from one forward. Raises as ``layers`` does."""
        with forward_in_words(self.model.name):
            return list_all(self.model.module, *self.inputs)

    @cached_property
    def operations(self) -> list[LayerInfo]:
        """Every functional operation, from one forward, in the order of the run. Raises as ``layers`` does."""
        with forward_in_words(self.model.name):
            return list_operations(self.model.module, *self.inputs)


def load_subject(chosen: argparse.Namespace, console: Console) -> Subject:
    """The network and the picture that the words name; the picture first, since it is wrong more often.

    Raises:
        HookvizError: either cannot be had.
    """
    console.progress(f"reading {chosen.image}")
    reading = read(chosen.image)
    for note in reading.notes:
        console.note(note)
    model = load(chosen, console, device=chosen.device)
    console.note(model.input_note(reading.image))
    return Subject(model, reading.image, model.inputs(reading.image))


def load(chosen: argparse.Namespace, console: Console, *, device: str) -> Model:
    """The network, with what is to be known of it said on the way.

    Raises:
        HookvizError: no such model, weights, class names or device.
    """
    names = None if chosen.class_names is None else read_class_names(chosen.class_names)
    console.progress(f"loading {chosen.model}")
    return load_model(
        chosen.model,
        _weights(chosen.model, chosen.weights),
        device,
        class_names=names,
        on_progress=console.download(chosen.model),
        on_note=console.note,
    )


def _weights(model: str, asked: str) -> str:
    """Untrained only where there is such a thing: a network of one's own has the values that it was built with."""
    if asked.lower() == UNTRAINED and UNTRAINED not in list_weights(model):
        return "default"
    return asked


def read(source: str) -> ImageReading:
    """The picture in a file, on stdin, or among the samples; a file wins over a sample of its name.

    Raises:
        ImageError: there is none.
    """
    if source == STDIN:
        if sys.stdin is None:
            raise ImageError("There is nothing on stdin; give the path of an image file.")
        return read_image(sys.stdin.buffer)
    if source.startswith(SAMPLE):
        return read_image(sample_bytes(source.removeprefix(SAMPLE)))
    return read_image(sample_bytes(source) if _is_sample(source) else source)


def _is_sample(source: str) -> bool:
    """Whether a word that is no file names a sample, or looks as if it was meant to."""
    if source in {sample.name for sample in list_samples()}:
        return not Path(source).exists()
    return bool(source) and not any(mark in source for mark in "./\\:\0") and not Path(source).exists()


@contextmanager
def forward_in_words(model: str) -> Iterator[None]:
    """Say in one sentence why a forward broke off, and in which layer."""
    try:
        yield
    except (HookvizError, MemoryError):
        raise
    except Exception as error:  # a network of one's own may raise anything
        notes = [note.removeprefix("hookviz: ") for note in getattr(error, "__notes__", ())]
        raise HookvizError(f"{model} cannot run on this image: {(notes or [repr(error)])[0]}") from error
