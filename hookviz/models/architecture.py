from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import nn

from hookviz.errors import ModelError, WeightsUnavailableError
from hookviz.models.classification import CLASSIFICATION
from hookviz.models.model import UNTRAINED
from hookviz.models.preparation import Preparation
from hookviz.models.task import Task

OnProgress: TypeAlias = Callable[[int, int], None]
"""Told the bytes done and the bytes in all, 0 where the server does not say."""


@dataclass(frozen=True)
class Description:
    """What is needed to use a network besides its values: how it takes a picture, and what its classes are called."""

    recipe: Preparation
    categories: tuple[str, ...]


@dataclass(frozen=True)
class TrainedWeights(Description):
    """One set of trained values with its own ``recipe`` and ``categories``; ``build`` gives the network with them.

    ``qualified_name`` is a second name to find it by: torchvision's ``"ResNet50_Weights.IMAGENET1K_V2"``.
    """

    name: str
    source: str
    build: Callable[[OnProgress | None], nn.Module]
    qualified_name: str = ""


@dataclass(frozen=True)
class Architecture:
    """One network of the catalogue: ``build`` gives it as constructed; ``trained`` has the default first.

    ``untrained`` describes a network that has no trained weights. ``int8`` is for 8-bit arithmetic, which torch has for
    the CPU alone, and for whose scales the values must be defined from the start.
    """

    name: str
    source: str
    build: Callable[[], nn.Module]
    trained: tuple[TrainedWeights, ...]
    task: Task = field(default=CLASSIFICATION)
    untrained: Description | None = None
    int8: bool = False

    @property
    def default(self) -> TrainedWeights:
        """The weights that ``"default"`` means.

        Raises:
            WeightsUnavailableError: there are none.
        """
        if not self.trained:
            raise WeightsUnavailableError(
                f"There are no trained weights of {self.name}; "
                f"load_model({self.name!r}, weights=None) gives it untrained."
            )
        return self.trained[0]

    @property
    def description(self) -> Description:
        """What the network goes by while it is untrained, or filled from a file: the default weights' description."""
        return self.untrained or self.default

    @property
    def weights_names(self) -> tuple[str, ...]:
        """Every name that weights can be asked by, the default first, ``"untrained"`` last."""
        return (*(one.name for one in self.trained), UNTRAINED)

    def find(self, name: str) -> TrainedWeights:
        """The weights called ``name``, in any case; ``"default"`` is the first.

        Raises:
            ModelError: no such weights; the sentence lists those there are.
        """
        if name.lower() == "default":
            return self.default
        for one in self.trained:
            if name.lower() in {one.name.lower(), one.qualified_name.lower()}:
                return one
        raise ModelError(f"{self.name} has no weights {name!r}; choose one of {', '.join(self.weights_names)}.")
