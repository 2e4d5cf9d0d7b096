"""The network on the page and the picture it was given, for what looks at both later than the page itself."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from hookviz.layer_picture import Selection
from hookviz.models import Model
from hookviz.types import LayerInfo, Layout
from hookviz.ui import resources
from hookviz.ui.sidebar import ChosenImage


@dataclass(frozen=True, slots=True, eq=False)
class ShownNetwork:
    """A network and an image by what they are known by.

    ``key`` is that of both. Neither is held: a session that is left open would keep a network in memory that all others
    have done with.
    """

    key: tuple[str, str]
    chosen: resources.ChosenModel
    image: ChosenImage

    def model(self) -> Model:
        """The network, loaded again if it has been given up."""
        return resources.models().find(self.key[0]) or resources.get_model(self.chosen, lambda _done, _total: None)

    def seen(self, model: Model) -> resources.SeenImage:
        """The image that was read."""
        return resources.get_image(self.key[1], model.task in resources.MOVING, self.image.content, self.image.second)

    def batch(self, model: Model) -> Tensor:
        """The network's input."""
        return resources.get_batch(self.key, model, self.seen(model))


@dataclass(frozen=True, slots=True, eq=False)
class ShownTensor:
    """Where in a network a card's tensor comes from, and how its axes are read, as the library takes it."""

    network: ShownNetwork
    info: LayerInfo
    call: int
    path: str
    layout: Layout
    selection: Selection
