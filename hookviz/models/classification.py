from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.types import Prediction

if TYPE_CHECKING:
    from hookviz.models.model import Model


@dataclass(frozen=True)
class Classification:
    """One probability per class: of a picture, or of a clip."""

    name: str

    def check(self, model: Model, k: int) -> None:
        """Refuse to ask for less than one class, or where there are none."""
        if k < 1:
            raise ModelError(f"Ask for at least one prediction, not {k}.")
        if not model.categories:
            raise ModelError(
                f"The weights {model.weights} of {model.name} have no classifier, so there is nothing to predict."
            )

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> tuple[Prediction, ...]:  # noqa: ARG002 - the size does not matter to classes
        """The ``k`` most probable classes, equal ones by index."""
        # In train mode GoogLeNet and Inception return a named tuple; a module that insists on it still has its logits
        # there.
        logits: Tensor = getattr(output, "logits", output)
        probabilities = torch.softmax(logits.float(), dim=1)[0].cpu()
        if probabilities.isnan().any():
            raise ModelError(f"The output of {model.name} is not finite for this image, so its classes have no order.")
        # A stable sort, since topk orders equal values differently from device to device.
        ordered = torch.sort(probabilities, descending=True, stable=True)
        ranked = zip(ordered.indices[:k].tolist(), ordered.values[:k].tolist(), strict=True)
        return tuple(Prediction(index, model.categories[index], probability) for index, probability in ranked)


CLASSIFICATION = Classification("classification")
VIDEO = Classification("video")
