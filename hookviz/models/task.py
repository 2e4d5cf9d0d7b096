from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hookviz.models.results import ClassMap, Detections, Flow
from hookviz.types import Prediction

if TYPE_CHECKING:
    from hookviz.models.model import Model

Result: TypeAlias = tuple[Prediction, ...] | Detections | ClassMap | Flow


class Task(Protocol):
    """What a network is for, and with it how its output is read."""

    @property
    def name(self) -> str:
        """The task in the field's words, such as ``"detection"``."""

    def check(self, model: Model, k: int) -> None:
        """Refuse what cannot be answered before the network runs.

        Raises:
            ModelError: ``k`` below 1, or weights that have no classifier.
        """

    def read(self, output: Any, model: Model, *, k: int, size: tuple[int, int] | None) -> Result:
        """What an ``output`` on the CPU says; ``size`` is the picture's height and width where there was a picture.

        Raises:
            ModelError: an output that is not finite.
        """
