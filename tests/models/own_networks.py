"""Networks as people write them, for hookviz to find by ``tests.models.own_networks:<name>``."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import v2

from hookviz import Network

SEQUENCE = torch.arange(10.0).reshape(1, 10)


def three_classes() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    )


def three_classes_by_hand(module: nn.Module, batch: Tensor) -> Tensor:
    weights = module.state_dict()
    features = torch.conv2d(batch, weights["0.weight"], weights["0.bias"]).relu().mean((2, 3))
    logits: Tensor = features @ weights["4.weight"].T + weights["4.bias"]
    return logits


def described() -> Network:
    prepare = v2.Compose(
        [
            v2.Lambda(lambda picture: picture.resize((16, 16))),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.25] * 3),
        ]
    )
    return Network(three_classes(), prepare=prepare, class_names=["cat", "dog", "bird"])


def misnamed() -> Network:
    return Network(three_classes(), class_names=["cat", "dog"])


def grey_digits() -> Network:
    module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    return Network(module, example=torch.zeros(1, 1, 28, 20))


class SeveralInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 5)

    def forward(self, batch: dict[str, Tensor], weights: list[Tensor]) -> Tensor:
        scaled: Tensor = self.conv(batch["image"]) * batch["mask"][:, None, None]
        return scaled * weights[0] + weights[1]


def several_inputs() -> Network:
    batch = {"mask": torch.ones(4), "image": torch.zeros(1, 3, 16, 16)}
    return Network(SeveralInputs(), example=(batch, [torch.tensor(2.0), torch.tensor(3.0)]))


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 4, batch_first=True)

    def forward(self, values: Tensor) -> Tensor:
        outputs: Tensor = self.lstm(values.reshape(1, 5, 2))[0]
        return outputs


def sequence() -> Network:
    return Network(Sequence(), example=SEQUENCE)


def from_timm() -> nn.Module:
    import timm

    module: nn.Module = timm.create_model("resnet10t", num_classes=5)
    return module


READY = three_classes()


def fails() -> nn.Module:
    raise RuntimeError("the weights are elsewhere")


def gives_a_list() -> Any:
    return [three_classes()]


def five_channels() -> nn.Module:
    return nn.Conv2d(5, 2, 3)


def prepare_fails() -> Network:
    return Network(three_classes(), prepare=lambda picture: torch.zeros(3, 8, 8) / (1 // 0))


def prepare_gives_a_list() -> Network:
    return Network(three_classes(), prepare=lambda picture: [picture])


def prepare_of_unknown_scale() -> Network:
    def prepare(picture: Image.Image) -> Tensor:
        pixels: Tensor = v2.functional.pil_to_tensor(picture.resize((8, 8)))
        return pixels.float() * 3 - 100

    return Network(three_classes(), prepare=prepare)
