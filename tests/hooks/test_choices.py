"""Quick choices, against answers given by hand for networks that everybody knows."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import Tensor, nn

from hookviz.hooks import list_layers, record
from hookviz.hooks.choices import first_middle_last, grad_cam_layer
from hookviz.hooks.stages import Stage, stages
from hookviz.models import load_model
from hookviz.types import LayerInfo

pytestmark = pytest.mark.usefixtures("one_thread")

PICTURE = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))


@cache
def network(name: str) -> nn.Module:
    bundled = name in {"efficientnet_lite0", "simple_cnn"}
    return load_model(name, "default" if bundled else None, "cpu").module


@cache
def layers_of(name: str) -> list[LayerInfo]:
    return list_layers(network(name), picture(name))


def picture(name: str) -> Tensor:
    return torch.ones(1, 3, 32, 32) if name == "simple_cnn" else PICTURE


GRAD_CAM = {
    "resnet18": ("layer4", "layer4.1"),
    "vgg16": ("features.29", "features.29"),
    "densenet121": ("features", "features.norm5"),
    "mobilenet_v2": ("features", "features.18"),
    "mobilenet_v3_small": ("features", "features.12"),
    "efficientnet_b0": ("features", "features.8"),
    "convnext_tiny": ("features", "features.7.2"),
    "squeezenet1_1": ("features", "features.12"),
    "vit_b_16": ("encoder.layers.encoder_layer_11.ln_1", "encoder.layers.encoder_layer_11.ln_1"),
    "swin_t": ("features.7.1.norm1", "features.7.1.norm1"),
    "timm/vit_tiny_patch16_224": ("blocks.11.norm1", "blocks.11.norm1"),
    "timm/swin_tiny_patch4_window7_224": ("layers.3.blocks.1.norm1", "layers.3.blocks.1.norm1"),
    "efficientnet_lite0": ("bn2", "bn2.act"),
    "simple_cnn": ("conv2", "conv2"),
}
"""What is chosen, and what the README of pytorch-grad-cam or the network's source gives as the last maps."""


@pytest.mark.parametrize("name", list(GRAD_CAM))
def test_grad_cam_layer_holds_the_maps_that_its_users_choose_by_hand(name: str) -> None:
    chosen, by_hand = GRAD_CAM[name]
    assert grad_cam_layer(network(name), layers_of(name)) == chosen
    with torch.no_grad(), record(network(name), [chosen, by_hand]) as rec:
        network(name)(picture(name))
    assert torch.equal(rec[chosen].output, rec[by_hand].output)


def gradient_of_maps(net: nn.Module, layer: str) -> Tensor:
    with record(net, layer, gradients=True) as rec:
        scores: Tensor = net(PICTURE.clone().requires_grad_())
        scores[0, scores.argmax()].backward()
    gradient: Tensor = rec[layer].grad_output
    return gradient


def test_tokens_chosen_have_a_gradient_and_those_behind_the_last_attention_have_none() -> None:
    """Why a transformer's last layer will not do: the class token alone leads to the scores."""
    net = network("timm/vit_tiny_patch16_224")
    assert float(gradient_of_maps(net, "blocks.11")[:, 1:].abs().max()) == 0.0
    assert float(gradient_of_maps(net, "blocks.11.norm1")[:, 1:].abs().max()) > 0.0


def test_no_grad_cam_layer_without_scores_or_without_maps() -> None:
    pixelwise = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 2, 1))
    assert grad_cam_layer(pixelwise, list_layers(pixelwise, PICTURE)) is None
    flat = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
    assert grad_cam_layer(flat, list_layers(flat, torch.ones(1, 3, 2, 2))) is None
    assert grad_cam_layer(flat, list_layers(flat)) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", [112, 56, 28, 14, 7]),
        ("vgg16", [224, 112, 56, 28, 14, 7]),
        ("densenet121", [112, 56, 28, 14, 7]),
        ("efficientnet_b0", [112, 56, 28, 14, 7]),
        ("convnext_tiny", [56, 28, 14, 7]),
        ("regnet_y_400mf", [112, 56, 28, 14, 7]),
        ("swin_t", [56, 28, 14, 7]),
        ("timm/swin_tiny_patch4_window7_224", [56, 28, 14, 7]),
        ("vit_b_16", [14]),
        ("simple_cnn", [32, 16]),
    ],
)
def test_stages_are_the_resolutions_in_order(name: str, expected: list[int]) -> None:
    """Channels first, channels last and tokens; RegNet lists 28, 56, 28 in a block; simple_cnn's pool runs at two."""
    assert [(stage.height, stage.width) for stage in stages(layers_of(name))] == [(side, side) for side in expected]


def test_first_middle_and_last_of_a_stage_are_convolutions_where_it_has_three() -> None:
    second = stages(layers_of("resnet18"))[1]
    assert second.layers == ("layer1.0.conv1", "layer1.0.conv2", "layer1.1.conv1", "layer1.1.conv2")
    assert first_middle_last(second.layers) == ["layer1.0.conv1", "layer1.1.conv1", "layer1.1.conv2"]


def test_stage_of_tokens_goes_from_the_patches_to_the_last_normalisation() -> None:
    (only,) = stages(layers_of("vit_b_16"))
    assert (only.height, only.width) == (14, 14)
    assert (only.layers[0], only.layers[-1]) == ("conv_proj", "encoder.ln")


def test_stages_keep_height_and_width_apart() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, stride=(1, 2), padding=1))
    found = stages(list_layers(net, torch.ones(1, 3, 8, 12)))
    assert found == [Stage(8, 12, ("0",)), Stage(8, 6, ("1",))]


def test_decoder_that_comes_back_to_a_resolution_is_a_stage_of_its_own() -> None:
    down, up = nn.Conv2d(3, 4, 2, stride=2), nn.ConvTranspose2d(4, 3, 2, stride=2)
    net = nn.Sequential(nn.Conv2d(3, 3, 1), down, up, nn.Sequential(nn.Conv2d(3, 3, 1)))
    found = stages(list_layers(net, torch.ones(1, 3, 8, 8)))
    assert found == [Stage(8, 8, ("0",)), Stage(4, 4, ("1",)), Stage(8, 8, ("2", "3.0"))]


def test_layers_that_never_ran_or_keep_one_position_are_in_no_stage() -> None:
    class Skips(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.unused, self.squeeze = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 1), nn.AdaptiveAvgPool2d(1)

        def forward(self, x: Tensor) -> Tensor:
            squeezed: Tensor = self.squeeze(self.conv(x))
            return squeezed

    assert stages(list_layers(Skips(), torch.ones(1, 3, 8, 8))) == [Stage(8, 8, ("conv",))]
