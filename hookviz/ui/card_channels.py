"""What the parts of a card that show channels have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from hookviz.layer_picture import Shown
from hookviz.ui.shown_network import ShownTensor


@dataclass(frozen=True, slots=True, eq=False)
class CardChannels:
    """The channels of the card at ``position``, as they are ``shown``.

    ``of`` is what the values on the page shown are known by, ``belongs_to`` whose choice an open channel is, ``layer``
    what they are of, in words. ``values`` gives them all, (C, H, W) in a dtype that holds them; ``tensor`` says where
    they come from.
    """

    position: int
    of: str
    belongs_to: str
    layer: str
    shown: Shown
    values: Callable[[], Tensor]
    tensor: ShownTensor
