from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooks.preserve import preserved
from hookviz.models.device import OnNote, copy_on_cpu, is_out_of_memory, out_of_memory_note, warn_note
from hookviz.models.recipe import Recipe
from hookviz.types import Prediction

UNTRAINED = "untrained"


@dataclass(frozen=True, eq=False)
class Model:
    """A network with everything that belongs to its weights.

    ``module`` is in eval mode on ``device``. ``weights`` is the entry's name (``"IMAGENET1K_V2"``), ``"bundled"``, a
    checkpoint's file name, or ``"untrained"``. ``categories`` names the classes by index, and is empty where the
    weights have no classifier. ``source`` says in one line where network and weights come from; ``note`` is a sentence
    for the reader where loading did something else than asked, else ``""``.
    """

    name: str
    module: nn.Module
    recipe: Recipe
    categories: tuple[str, ...]
    weights: str
    device: torch.device
    source: str
    note: str = ""

    @property
    def trained(self) -> bool:
        """Whether the weights come from training; predictions of an untrained network mean nothing."""
        return self.weights != UNTRAINED

    @property
    def normalization(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and standard deviation per channel that :meth:`prepare` uses, of an image scaled to 0..1."""
        return self.recipe.normalization

    def prepare(self, image: Image.Image) -> Tensor:
        """The network's input by the weights' own recipe, (1, 3, H, W) float32 on the model's device.

        Raises:
            ImageError: not a PIL image, or one far too long and thin.
        """
        return self.recipe.prepare(image).to(self.device)

    def view(self, image: Image.Image) -> Image.Image:
        """The pixels that the network sees of ``image``: resized and cropped, before they are normalised."""
        return self.recipe.view(image)

    def crop_box(self, image: Image.Image) -> tuple[float, float, float, float]:
        """Where :meth:`view` lies in ``image``: left, upper, right, lower, in its pixels, as in ``Image.crop``."""
        return self.recipe.crop_box(image)

    def predict(
        self, image: Image.Image | Tensor, k: int = 5, *, on_note: OnNote = warn_note
    ) -> tuple[Prediction, ...]:
        """The ``k`` most probable classes, the first most, equal ones by index; the network is left as it was found.

        ``image`` is a PIL image or an input already prepared, (1, 3, H, W). Probabilities are the softmax over all
        classes. Where the accelerator's memory is full, the CPU does it, and ``on_note`` is told so in one sentence.

        Raises:
            ModelError: ``k`` below 1, not one image, weights without a classifier, or an output that is not finite.
            ImageError: an image that cannot be prepared.
        """
        if k < 1:
            raise ModelError(f"Ask for at least one prediction, not {k}.")
        if not self.categories:
            raise ModelError(
                f"The weights {self.weights} of {self.name} have no classifier, so there is nothing to predict."
            )
        probabilities = self._probabilities(self._batch_of_one(image), on_note)
        # A stable sort, since topk orders equal values differently from device to device.
        ordered = torch.sort(probabilities, descending=True, stable=True)
        ranked = zip(ordered.indices[:k].tolist(), ordered.values[:k].tolist(), strict=True)
        return tuple(Prediction(index, self.categories[index], probability) for index, probability in ranked)

    def _batch_of_one(self, image: Image.Image | Tensor) -> Tensor:
        batch = image.to(self.device) if isinstance(image, Tensor) else self.prepare(image)
        if batch.ndim != 4 or len(batch) != 1:
            raise ModelError(f"A prepared input has shape (1, 3, height, width), not {tuple(batch.shape)}.")
        return batch

    def _probabilities(self, batch: Tensor, on_note: OnNote) -> Tensor:
        try:
            probabilities = _class_probabilities(self.module, batch)
        except RuntimeError as error:
            if self.device.type == "cpu" or not is_out_of_memory(error):
                raise
            probabilities = None
        # Outside the except: the error holds the failed forward's tensors, and with them the memory, until it is gone.
        if probabilities is None:
            on_note(out_of_memory_note(self.name, self.device))
            probabilities = _class_probabilities(copy_on_cpu(self.module), batch.cpu())
        if probabilities.isnan().any():
            raise ModelError(f"The output of {self.name} is not finite for this image, so its classes have no order.")
        return probabilities


def _class_probabilities(module: nn.Module, batch: Tensor) -> Tensor:
    with preserved(module):
        output: Any = module(batch)
    # In train mode GoogLeNet and Inception return a named tuple; a module that insists on it still has its logits
    # there.
    logits: Tensor = getattr(output, "logits", output)
    return torch.softmax(logits.float(), dim=1)[0].cpu()
