"""How axes are read, on real networks, against reshapes written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn
from torchvision import models
from torchvision.models.swin_transformer import SwinTransformer

from hookviz.hooks import list_layers, record
from hookviz.layout import channel_maps
from hookviz.types import LayerInfo, Layout


def listed(net: nn.Module, x: Tensor) -> dict[str, LayerInfo]:
    return {info.name: info for info in list_layers(net.eval(), x)}


def maps_of(net: nn.Module, x: Tensor, layer: str) -> tuple[Tensor, np.ndarray[Any, Any], Layout]:
    layout = listed(net, x)[layer].layouts[0]
    assert layout is not None
    with torch.no_grad(), record(net, layer) as rec:
        net(x)
    output = rec[layer][0].output
    return output, channel_maps(output, layout.name, layout.grid).maps, layout


@pytest.mark.parametrize(("layer", "shape"), [("features.1.0", (8, 12, 8)), ("features.3.0", (16, 6, 4))])
def test_swin_blocks_are_channels_last(layer: str, shape: tuple[int, int, int]) -> None:
    """C12: (1, 12, 8, 8) is H12, W8, C8, which no shape can tell."""
    net = SwinTransformer([4, 4], 8, [1, 1], [2, 2], [2, 2])
    output, maps, layout = maps_of(net, torch.randn(1, 3, 48, 32), layer)
    assert (layout.name, layout.known) == ("NHWC", True)
    assert maps.shape == shape
    assert all(np.array_equal(maps[k], output[0, :, :, k].numpy()) for k in range(shape[0]))


def test_channels_last_memory_stays_channels_first() -> None:
    """C12: memory_format changes strides only."""
    net = models.resnet18().to(memory_format=torch.channels_last)
    output, maps, layout = maps_of(net, torch.randn(1, 3, 64, 64), "layer1")
    assert layout == Layout("NCHW")
    assert np.array_equal(maps, output[0].numpy())


def test_vit_tokens_lie_on_the_grid_of_the_patch_embedding() -> None:
    net = models.vit_b_32()
    output, maps, layout = maps_of(net, torch.randn(1, 3, 224, 224), "encoder.layers.encoder_layer_3")
    assert (layout.name, layout.grid) == ("NLC", (7, 7))
    assert np.array_equal(maps, output[0, 1:].reshape(7, 7, 768).permute(2, 0, 1).numpy())


def test_register_and_class_tokens_are_left_out_on_a_grid_that_is_not_square() -> None:
    net = timm.create_model("vit_small_patch14_reg4_dinov2", img_size=(56, 112), depth=2)
    output, maps, layout = maps_of(net, torch.randn(1, 3, 56, 112), "blocks.1")
    assert layout.grid == (4, 8)
    assert output.shape == (1, 5 + 32, 384)
    assert np.array_equal(maps, output[0, 5:].reshape(4, 8, 384).permute(2, 0, 1).numpy())


def test_convnext_blocks_change_the_order_twice() -> None:
    layers = listed(models.convnext_tiny(), torch.randn(1, 3, 64, 64))
    names = {name: layers[f"features.1.0.block.{name}"].layouts[0] for name in range(7)}
    assert [layout.name for layout in names.values() if layout] == ["NCHW", *["NHWC"] * 5, "NCHW"]
    assert layers["features.1.0"].layouts[0] == Layout("NCHW")


def test_maxvit_partitions_are_named_as_such() -> None:
    layers = listed(models.maxvit_t(), torch.randn(1, 3, 224, 224))
    layer = next(name for name in layers if name.endswith("window_attention.partition_op"))
    layout = layers[layer].layouts[0]
    assert layout is not None
    assert layout.note == "window partition: rows are 64 windows, columns their 49 tokens"
    assert layers["blocks.0.layers.0"].layouts[0] == Layout("NCHW")


def test_windows_of_timms_swin_are_named_as_such() -> None:
    layers = listed(timm.create_model("swin_tiny_patch4_window7_224"), torch.randn(1, 3, 224, 224))
    layout = layers["layers.0.blocks.0.attn.qkv"].layouts[0]
    assert layout is not None
    assert layout.grid == (7, 7)
    assert layout.note == "window partition: the first axis counts 64 windows of 49 tokens"
    assert layers["layers.0.blocks.0"].layouts[0] == Layout("NHWC")


def test_a_three_dimensional_resnet_gives_volumes() -> None:
    output, maps, layout = maps_of(models.video.r3d_18(), torch.randn(1, 3, 4, 32, 32), "layer2")
    assert layout == Layout("NCDHW")
    depth, height = output.shape[2:4]
    assert np.array_equal(maps[5, height : 2 * height], output[0, 5, 1].numpy())
    assert maps.shape[1] == depth * height


def test_sequences_vectors_and_recurrent_outputs() -> None:
    """C28."""
    net = nn.Sequential(nn.Conv1d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32, 2))
    layers = listed(net, torch.randn(1, 3, 10))
    assert [layers[str(k)].layouts[0] for k in range(4)] == [Layout("NCL"), Layout("NCL"), Layout("NC"), Layout("NC")]
    lstm = listed(nn.LSTM(3, 4, batch_first=True), torch.randn(2, 5, 3))
    assert lstm[""].layouts[0] == Layout("NLC")


def test_what_nothing_speaks_for_is_said_to_be_assumed() -> None:
    layers = listed(nn.Sequential(nn.ReLU()), torch.randn(1, 3, 4, 5))
    assert layers["0"].layouts[0] == Layout("NCHW", known=False)
    layers = listed(nn.Sequential(nn.ReLU()), torch.randn(1, 3, 4))
    assert layers["0"].layouts[0] == Layout("NLC", known=False)
