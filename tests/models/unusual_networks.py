"""Networks whose layers return what a picture of channels does not expect, and the same values by hand.

``by_hand`` computes each of them from the input with torch alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torchvision.transforms import v2

from hookviz import Network

SIZE = 12


def sparse(batch: Tensor) -> Tensor:
    brightest: Tensor = batch * (batch > 0.5)
    return brightest.to_sparse()


BY_HAND: dict[str, Callable[[Tensor], Tensor]] = {
    "complex": torch.fft.fft2,
    "quantized": lambda batch: torch.quantize_per_tensor(batch * 4 - 1, 0.05, 20, torch.quint8),
    "per_channel": lambda batch: torch.quantize_per_channel(
        batch, torch.tensor([0.01, 0.02, 0.03]), torch.tensor([0, 5, 9]), 1, torch.quint8
    ),
    "mask": lambda batch: batch > 0.4,
    "classes": lambda batch: batch.argmax(1) * 1000,
    "brain_float": lambda batch: (batch * 3).bfloat16(),
    "sparse": sparse,
    "vector": lambda batch: batch.flatten(1)[:, :40] - 0.5,
    "features": lambda batch: batch.flatten()[:7],
    "sequence": lambda batch: batch.flatten(2)[:, :, :50].reshape(1, 3, 50).repeat(1, 4, 1),
    "scalar": lambda batch: batch.mean(),
    "volume": lambda batch: torch.stack([batch, batch * batch, 1 - batch, batch.flip(3)], 2),
    "two": lambda batch: torch.cat([batch, 1 - batch]),
}


class Returns(nn.Module):
    """Returns what one of the functions above makes of the batch."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, batch: Tensor) -> Tensor:
        return BY_HAND[self.name](batch)


class Unusual(nn.ModuleDict):
    def __init__(self) -> None:
        super().__init__({name: Returns(name) for name in BY_HAND})
        self["conv1d"] = nn.Conv1d(3, 5, 3)
        self["conv3d"] = nn.Conv3d(3, 4, 1)

    def forward(self, batch: Tensor) -> Tensor:
        for name in BY_HAND:
            self[name](batch)
        self["conv1d"](batch.flatten(2))
        self["conv3d"](BY_HAND["volume"](batch))
        return batch.mean((2, 3))


def unusual() -> Network:
    torch.manual_seed(0)
    prepare = v2.Compose(
        [
            v2.Lambda(lambda picture: picture.resize((SIZE, SIZE))),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
        ]
    )
    return Network(Unusual(), prepare=prepare, class_names=["red", "green", "blue"])
