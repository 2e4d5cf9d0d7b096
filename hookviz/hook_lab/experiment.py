"""What can be tried: a hook of one kind on one layer, that does one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hookviz.errors import HookvizError

LabKind: TypeAlias = Literal["forward", "forward_pre", "backward", "backward_pre"]

Action: TypeAlias = Literal["look", "scale", "noise", "clamp", "zero", "mean", "not_returned", "in_place", "function"]

LossKind: TypeAlias = Literal["logit", "cross-entropy"]

STRENGTHS: dict[Action, float] = {"scale": 2.0, "noise": 1.0, "clamp": 1.0}
"""What takes a strength, and the one to begin with."""

CHOOSE_CHANNELS: tuple[Action, ...] = ("scale", "noise", "clamp", "zero", "mean", "in_place")
"""What can be done to some channels alone."""

SIGNATURES: dict[LabKind, str] = {
    "forward": "hook(module, args, output)",
    "forward_pre": "hook(module, args)",
    "backward": "hook(module, grad_input, grad_output)",
    "backward_pre": "hook(module, grad_output)",
}


class HookLabError(HookvizError):
    """An experiment that cannot be made, or that broke off; the sentence says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossChoice:
    """What the gradients are of: a class's logit or its cross-entropy; ``target`` None is the predicted class."""

    kind: LossKind = "logit"
    target: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A hook to try.

    ``action`` is what it does to the first tensor it may replace: the output, the first argument, or the gradient of
    either. ``look`` only looks, ``not_returned`` makes a new tensor and returns nothing, ``in_place`` writes
    zeros into the tensor and returns nothing, ``function`` calls ``function``, named as
    ``package.module:function``. ``strength`` is the factor, the noise's standard deviation or the limit. ``channels``
    are numbers, ``"strongest"`` for the one with the largest mean of absolute values, or None for all. ``layout`` names
    the axes of the layer's output where they are known (``"NHWC"``).
    """

    layer: str
    kind: LabKind = "forward"
    action: Action = "look"
    strength: float = 1.0
    channels: tuple[int, ...] | Literal["strongest"] | None = None
    layout: str = ""
    function: str = ""
    loss: LossChoice = LossChoice()  # frozen, so it can be shared

    @property
    def is_backward(self) -> bool:
        """Whether the hook fires in the backward pass."""
        return self.kind.startswith("backward")

    @property
    def replaces(self) -> str:
        """The name, in the hook's signature, of what it may replace."""
        return {"forward": "output", "forward_pre": "args", "backward": "grad_input", "backward_pre": "grad_output"}[
            self.kind
        ]

    def axis(self, dimensions: int) -> int:
        """Which axis of a tensor counts channels."""
        if len(self.layout) == dimensions and "C" in self.layout:
            return self.layout.index("C")
        return {0: 0, 1: 0, 3: 2}.get(dimensions, 1)
