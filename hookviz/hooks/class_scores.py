"""The scores of classes in what a network returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hookviz.errors import HookvizError


def class_scores(output: Any) -> Tensor | None:
    """The logits (items, classes) in an output, which is them or has them as ``logits``; None where there are none."""
    scores = output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", output)
    if isinstance(scores, Tensor) and scores.ndim == 2 and scores.shape[1] > 1 and scores.is_floating_point():
        return scores
    return None


def scores_of_one(output: Any) -> Tensor:
    """The logits (1, classes) of a network that was given one item.

    Raises:
        HookvizError: it returned no such tensor, or one for several items.
    """
    scores = class_scores(output)
    if scores is None:
        raise HookvizError("this network returns no scores of classes, (1, classes); choose a classifier.")
    if len(scores) != 1:
        raise HookvizError(f"the network was given {len(scores)} items; give one, such as image[:1].")
    return scores


def checked_target(scores: Tensor, target: int | None) -> int:
    """The class that is meant: the most probable one where none is given; negative ones count from the end.

    Raises:
        HookvizError: there is no such class, or the scores are not finite.
    """
    if not bool(torch.isfinite(scores).all()):
        raise HookvizError("the network's scores are not finite; find_nonfinite() says where that begins.")
    classes = scores.shape[1]
    if target is None:
        return int(scores.argmax())
    if not -classes <= target < classes:
        raise HookvizError(f"there is no class {target} among {classes}; choose from 0 to {classes - 1}.")
    return target % classes
