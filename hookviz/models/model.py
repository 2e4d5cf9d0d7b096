from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from hookviz.hooks.preserve import preserved
from hookviz.models.checkpoints.report import CheckpointReport
from hookviz.models.classification import CLASSIFICATION
from hookviz.models.device import OnNote, copy_on_cpu, is_out_of_memory, out_of_memory_note, warn_note
from hookviz.models.preparation import Box, Pictures, Preparation, as_frames
from hookviz.models.task import Task

UNTRAINED = "untrained"


@dataclass(frozen=True, eq=False)
class Model:
    """A network with everything that belongs to its weights.

    ``module`` is in eval mode on ``device``. ``weights`` is the entry's name (``"IMAGENET1K_V2"``), ``"bundled"``, a
    checkpoint's file name, or ``"untrained"``. ``categories`` names the classes by index, and is empty where the
    weights have no classifier. ``source`` says in one line where network and weights come from; ``note`` is a sentence
    for the reader where loading did something else than asked, else ``""``. ``purpose`` reads the network's output.
    ``report`` says how a checkpoint fitted, and is None where the weights are no checkpoint.
    """

    name: str
    module: nn.Module
    recipe: Preparation
    categories: tuple[str, ...]
    weights: str
    device: torch.device
    source: str
    note: str = ""
    purpose: Task = CLASSIFICATION
    report: CheckpointReport | None = None

    @property
    def trained(self) -> bool:
        """Whether the weights come from training; predictions of an untrained network mean nothing."""
        return self.weights != UNTRAINED

    @property
    def task(self) -> str:
        """What the network is for.

        One of ``"classification"``, ``"detection"``, ``"instance segmentation"``, ``"keypoints"``, ``"segmentation"``,
        ``"video"`` and ``"optical flow"``.
        """
        return self.purpose.name

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel that :meth:`prepare` uses, of an image scaled to 0..1."""
        return self.recipe.normalization

    def prepare(self, image: Pictures) -> Tensor:
        """The network's input by the weights' own recipe as one float32 tensor on the model's device.

        It is (1, 3, H, W); for a video network a clip (1, 3, T, H, W), and for optical flow both frames (2, 3, H, W).
        Those two take a list of frames, or one picture, which stands still; :meth:`input_note` says so.

        Raises:
            ImageError: not a PIL image, or one far too long and thin.
        """
        return self.recipe.prepare(image).to(self.device)

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """What the module is called with for an input already prepared: ``module(*model.arguments(batch))``."""
        return self.recipe.arguments(batch)

    def inputs(self, image: Pictures) -> tuple[Any, ...]:
        """What the module is called with for an image: ``module(*model.inputs(image))``.

        A classifier, a segmentation and a video network take what :meth:`prepare` gives, a detector a list of one
        (3, H, W) tensor from 0 to 1, which it normalises itself, and optical flow two frames, (1, 3, H, W) each.

        Raises:
            ImageError: not a PIL image, or one far too long and thin.
        """
        return self.arguments(self.prepare(image))

    def input_note(self, image: Pictures) -> str:
        """A sentence where the network gets something else than the pictures as they are, else ``""``."""
        return self.recipe.note(image)

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees of ``image``: resized and cropped, before they are normalised."""
        return self.recipe.view(image)

    def crop_box(self, image: Image.Image) -> Box:
        """Where :meth:`view` lies in ``image``: left, upper, right, lower, in its pixels, as in ``Image.crop``."""
        return self.recipe.crop_box(image)

    def predict(self, image: Pictures | Tensor, k: int = 5, *, on_note: OnNote = warn_note) -> Any:
        """What the network says of an image; the network is left as it was found.

        A classifier and a video network give the ``k`` most probable classes, the first most, equal ones by index, with
        the softmax over all classes; a detector :class:`Detections`, a segmentation network a :class:`ClassMap`, and
        optical flow a :class:`Flow`, to all of which ``k`` does not matter. (Typed Any, since :attr:`task` alone says
        which.)

        ``image`` is what :meth:`prepare` takes, or what it gave. Where the accelerator's memory is full, the CPU does
        it, and ``on_note`` is told so in one sentence.

        Raises:
            ModelError: ``k`` below 1, not one image, weights without a classifier, or an output that is not finite.
            ImageError: an image that cannot be prepared.
        """
        self.purpose.check(self, k)
        size = None
        if not isinstance(image, Tensor):
            first = as_frames(image)[0]
            size = first.height, first.width
        output = self._output(self._batch(image), on_note)
        return self.purpose.read(output, self, k=k, size=size)

    def _batch(self, image: Pictures | Tensor) -> Tensor:
        if not isinstance(image, Tensor):
            return self.prepare(image)
        self.recipe.check(image)
        return image.to(self.device)

    def _output(self, batch: Tensor, on_note: OnNote) -> Any:
        try:
            return _on_cpu(_run(self.module, self.arguments(batch)))
        except RuntimeError as error:
            if self.device.type == "cpu" or not is_out_of_memory(error):
                raise
        # Outside the except: the error holds the failed forward's tensors, and with them the memory, until it is gone.
        on_note(out_of_memory_note(self.name, self.device))
        return _run(copy_on_cpu(self.module), self.arguments(batch.cpu()))


def _run(module: nn.Module, arguments: tuple[Any, ...]) -> Any:
    with preserved(module):
        return module(*arguments)


def _on_cpu(output: Any) -> Any:
    return pytree.tree_map_only(Tensor, Tensor.cpu, output)
