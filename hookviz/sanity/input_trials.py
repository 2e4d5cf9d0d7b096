"""The same image fed in the usual wrong ways, beside the right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from hookviz.hooks import record
from hookviz.models.own_recipe import Normalization
from hookviz.models.preparation import Preparation
from hookviz.sanity.answers import Answers, scores_in
from hookviz.sanity.input_mistakes import RIGHT, SINGLE_MISTAKES, prepared
from hookviz.sanity.normalization import unnormalized
from hookviz.statistics import summarize
from hookviz.types import Summary

AS_FED = "as it was fed"

_PREVIEW = 128


@dataclass(frozen=True, slots=True)
class InputTrial:
    """One way to feed the image: the numbers that go in, what the first layer makes of them, and the answer.

    ``index``, ``probability`` and ``entropy`` (a share of the largest possible one) are None where the network gives no
    class scores. ``pixels``, (height, width, 3) uint8, is the input turned back into a picture as if it were prepared
    rightly, so that it shows what the network takes it for; None where it is no picture.
    """

    title: str
    is_right: bool
    input: Summary
    first_layer: str
    output: Summary | None
    index: int | None
    probability: float | None
    entropy: float | None
    pixels: npt.NDArray[np.uint8] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Feeding:
    """A private copy in eval mode, its first layer with weights, and how a batch becomes its arguments."""

    private: nn.Module
    first_layer: str
    arguments: Callable[[Tensor], tuple[Any, ...]]

    def trials(self, image: Image.Image, recipe: Preparation, fed: Tensor | None = None) -> list[InputTrial]:
        """Feed one image in every usual way; ``fed`` is added as the user's own.

        Raises:
            ImageError: the image cannot be prepared.
        """
        titled = {} if fed is None else {AS_FED: fed}
        titled |= {way.title: batch for way, batch in prepared(image, recipe, SINGLE_MISTAKES).items()}
        return [self._trial(title, batch, recipe.normalization) for title, batch in titled.items()]

    def _trial(self, title: str, batch: Tensor, normalization: Normalization) -> InputTrial:
        with record(self.private, [self.first_layer]) as rec:
            output = self.private(*self.arguments(batch))
        first = rec[self.first_layer][0].output if rec.get(self.first_layer) else None
        answers, scores = Answers(), scores_in(output)
        if scores is not None:
            answers.add(title, scores, None)
        answer = answers.each[0] if answers.each else None
        return InputTrial(
            title=title,
            is_right=title == RIGHT.title,
            input=summarize(batch),
            first_layer=self.first_layer,
            output=summarize(first) if isinstance(first, Tensor) else None,
            index=None if answer is None else answer.index,
            probability=None if answer is None else answer.probability,
            entropy=None if answer is None else answer.entropy,
            pixels=_pixels(batch, normalization),
        )


def _pixels(batch: Tensor, normalization: Normalization) -> npt.NDArray[np.uint8] | None:
    """At most 128 pixels a side."""
    if batch.ndim != 4 or batch.shape[1] != len(normalization[0]) or batch.shape[1] not in {1, 3}:
        return None
    unit = unnormalized(batch[:1].detach().float().cpu(), normalization).nan_to_num(0.0).clamp(0, 1)
    longest = max(unit.shape[-2:])
    if longest > _PREVIEW:
        unit = F.interpolate(unit, scale_factor=_PREVIEW / longest, mode="area")
    picture: npt.NDArray[np.uint8] = (unit[0] * 255).round().byte().expand(3, -1, -1).permute(1, 2, 0).numpy()
    return picture
