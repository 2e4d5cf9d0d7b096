"""What somebody's own network says: classes, where its output looks like them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from hookviz.class_names import numbered_class_names
from hookviz.errors import ModelError
from hookviz.models.classification import CLASSIFICATION
from hookviz.types import Prediction

if TYPE_CHECKING:
    from hookviz.models.model import Model


@dataclass(frozen=True)
class OwnTask:
    """Classes, by name or by number; anything else is left to the layers' own pictures."""

    name: str = "classification"

    def check(self, model: Model, k: int) -> None:  # noqa: ARG002 - nothing is known of the network beforehand
        """Refuse to ask for less than one class."""
        if k < 1:
            raise ModelError(f"Ask for at least one prediction, not {k}.")

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> tuple[Prediction, ...]:
        """The ``k`` most probable classes.

        Raises:
            ModelError: no (1, classes) tensor, another number of class names, or values that are not finite.
        """
        logits = getattr(output, "logits", output)
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != 1 or logits.shape[1] < 2:
            raise ModelError(f"{model.name} gives {_described(output)}, which is no list of classes; see its layers.")
        count = logits.shape[1]
        names = model.categories or numbered_class_names(count)
        if len(names) != count:
            raise ModelError(f"{model.name} has {len(names)} class names for {count} classes; give one for each.")
        return CLASSIFICATION.read(logits, replace(model, categories=names), k=k, size=size)


def _described(output: Any) -> str:
    if isinstance(output, Tensor):
        return f"a tensor of shape {tuple(output.shape)}"
    return f"a {type(output).__name__}"


OWN_TASK = OwnTask()
