"""A place in a network where a layer's output passes as maps, for code that puts a hook of its own there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hookviz.hooks.edits import Edit
from hookviz.types import Layout


def has_maps(layout: Layout) -> bool:
    """Whether the output holds maps of height and width that are no windows."""
    if layout.note:
        return False
    return layout.name in {"NCHW", "NHWC"} or (layout.name in {"NLC", "LNC"} and layout.grid is not None)


@dataclass(frozen=True)
class MapTap(Edit):
    """Send the output through ``maps``, as (items, channels, height, width), and on as it was.

    Tokens that stand before those of the grid (the class token) go round it.
    """

    layout: Layout
    maps: nn.Module

    def apply(self, tensor: Tensor) -> Tensor:
        """Copy the output by way of ``maps``."""
        if self.layout.name == "NCHW":
            return self._passed(tensor)
        if self.layout.name == "NHWC":
            return self._passed(tensor.movedim(-1, 1)).movedim(1, -1)
        return (
            self._tokens(tensor) if self.layout.name == "NLC" else self._tokens(tensor.transpose(0, 1)).transpose(0, 1)
        )

    def _tokens(self, tokens: Tensor) -> Tensor:
        height, width = self.layout.grid or (0, 0)
        before, image = tokens.split([tokens.shape[1] - height * width, height * width], 1)
        passed = self._passed(image.movedim(-1, 1).unflatten(-1, (height, width)))
        return torch.cat([before, passed.flatten(2).movedim(1, -1)], 1)

    def _passed(self, image: Tensor) -> Tensor:
        passed: Tensor = self.maps(image.clone())
        return passed
