from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import nn

from hookviz.errors import ModelError
from hookviz.models.model import UNTRAINED
from hookviz.models.recipe import Recipe

OnProgress: TypeAlias = Callable[[int, int], None]
"""Told the bytes done and the bytes in all, 0 where the server does not say."""


@dataclass(frozen=True)
class TrainedWeights:
    """One set of trained values with its own ``recipe`` and ``categories``; ``build`` gives the network with them.

    ``qualified_name`` is a second name to find it by: torchvision's ``"ResNet50_Weights.IMAGENET1K_V2"``.
    """

    name: str
    recipe: Recipe
    categories: tuple[str, ...]
    source: str
    build: Callable[[OnProgress | None], nn.Module]
    qualified_name: str = ""


@dataclass(frozen=True)
class Architecture:
    """One network of the catalogue: ``build`` gives it as constructed; ``trained`` has the default first."""

    name: str
    source: str
    build: Callable[[], nn.Module]
    trained: tuple[TrainedWeights, ...]

    @property
    def default(self) -> TrainedWeights:
        """The weights that ``"default"`` means."""
        return self.trained[0]

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
