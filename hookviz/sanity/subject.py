"""The network that a check looks at, with what is known of how images become its input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.errors import HookvizError, ModelError
from hookviz.models import Model, load_model
from hookviz.models.own_recipe import OwnRecipe, prepared_by
from hookviz.models.preparation import Preparation
from hookviz.models.timm_recipe import TimmRecipe
from hookviz.sanity.items import Content

Prepare = Callable[[Image.Image], Any]


@dataclass(frozen=True, eq=False)
class Subject:
    """A network as somebody uses it.

    ``recipe`` is how its weights want images to be prepared, None where nobody says. ``prepare`` is how somebody
    prepares them, None where that is by the recipe.
    """

    model: Model
    recipe: Preparation | None
    prepare: Prepare | None

    @property
    def module(self) -> nn.Module:
        """The network itself."""
        return self.model.module

    @property
    def reads_classes(self) -> bool:
        """Whether what it returns are scores of classes, as far as is known."""
        return self.model.task in {"classification", "video"}

    def batch(self, content: Content) -> Tensor:
        """What goes in, as one tensor in the network's dtype, on its device.

        Raises:
            ImageError: a picture that cannot be prepared.
            ModelError: somebody's own ``prepare`` fails, or gives no tensor.
        """
        value = content.value
        if isinstance(value, Tensor):
            batch = value
        elif self.prepare is not None:
            batch = prepared_by(self.prepare, value, whose="prepare")
        else:
            batch = self.model.prepare(value)
        return self._fitting(batch)

    def arguments(self, batch: Tensor) -> tuple[Any, ...]:
        """What the network is called with."""
        return self.model.arguments(self._fitting(batch))

    def _fitting(self, batch: Tensor) -> Tensor:
        dtype = next((one.dtype for one in self.module.parameters() if one.is_floating_point()), torch.float32)
        return batch.to(self.model.device, dtype if batch.is_floating_point() else None)


def subject_of(
    model: Model | nn.Module | str, prepare: Prepare | None, *, weights: Any = "default", device: Any = "auto"
) -> Subject:
    """The subject for what a caller named.

    Raises:
        HookvizError: no model, no such model, or weights that cannot be had.
    """
    if isinstance(model, str):
        model = load_model(model, weights, device)
    if isinstance(model, nn.Module):
        model = _described(model, prepare)
    if not isinstance(model, Model):
        raise HookvizError(f"{type(model).__name__} is no network; pass a name, load_model(...), or an nn.Module.")
    return Subject(model, _recipe(model, prepare), prepare)


def _described(module: nn.Module, prepare: Prepare | None) -> Model:
    """A bare module with what can be said about it."""
    try:
        recipe = OwnRecipe.of(module, prepare, None)
    except ModelError:  # it takes no pictures as far as its layers say
        recipe = OwnRecipe.of(module, _refuse, None)
    return Model(
        name=type(module).__name__,
        module=module,
        recipe=recipe,
        categories=(),
        weights="as given",
        device=next((one.device for one in module.parameters()), torch.device("cpu")),
        source="a module of your own",
    )


def _refuse(_: Image.Image) -> Tensor:
    raise ModelError("Nothing says how this network wants its images; give prepare=..., or pass prepared tensors.")


def _recipe(model: Model, prepare: Prepare | None) -> Preparation | None:
    """What the weights want.

    A network of one's own leaves that open, but where timm configured it, or where it brings a ``prepare`` of its own
    and images are prepared otherwise.
    """
    if not isinstance(model.recipe, OwnRecipe):
        return model.recipe
    config = getattr(model.module, "pretrained_cfg", None)
    if isinstance(config, dict):
        return TimmRecipe.of(config)
    return None if prepare is None or model.recipe.make is prepare else model.recipe
