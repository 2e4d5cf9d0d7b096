"""How axes are read, on real networks, against reshapes written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import timm
import torch
from timm.models.mlp_mixer import MlpMixer
from torch import Tensor, nn
from torchvision import models
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.maxvit import MaxVit
from torchvision.models.swin_transformer import SwinTransformer
from torchvision.models.video.swin_transformer import SwinTransformer3d

from hookviz.hooks import list_layers, list_operations, record
from hookviz.hooks.structure import leaves
from hookviz.layout import channel_maps
from hookviz.models import load_model
from hookviz.types import LayerInfo, Layout
from tests.nets import Returning


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


def other_maps(net: nn.Module, arguments: tuple[Any, ...], layer: str, position: int, item: int = 0) -> tuple[Any, Any]:
    """The output of a layer's first call, and the maps of the tensor at ``position`` of it."""
    info = next(info for info in list_layers(net.eval(), *arguments) if info.name == layer)
    layout = [info.layouts[0], *info.other_layouts[0]][position]
    assert layout is not None
    with torch.no_grad(), record(net, layer) as rec:
        net(*arguments)
    output = rec[layer][0].output
    path = rec[layer][0].output_info[position].path
    tensor = dict(leaves(output, Tensor))[path]
    return output, (channel_maps(tensor, layout.name, layout.grid, item).maps, layout)


def test_maxvit_windows_are_rows_and_their_tokens_columns() -> None:
    net = MaxVit(
        input_size=(32, 32),
        stem_channels=8,
        partition_size=4,
        block_channels=[8],
        block_layers=[1],
        head_dim=4,
        stochastic_depth_prob=0.0,
    )
    layer = "blocks.0.layers.0.layers.window_attention.partition_op"
    x = torch.randn(1, 3, 32, 32)
    _, maps, layout = maps_of(net, x, layer)
    with torch.no_grad(), record(net.eval(), layer, inputs=True) as rec:
        net(x)
    image = rec[layer].input[0][0]
    assert image.shape == (8, 8, 8)
    expected = image.reshape(8, 2, 4, 2, 4).permute(0, 1, 3, 2, 4).reshape(8, 4, 16)
    assert np.array_equal(maps, expected.numpy())
    assert layout.note == "window partition: rows are 4 windows, columns their 16 tokens"
    output, maps, layout = maps_of(net, x, "blocks.0.layers.0")
    assert layout == Layout("NCHW")
    assert np.array_equal(maps, output[0].numpy())


def test_convnext_blocks_hold_the_same_image_in_both_orders() -> None:
    net = ConvNeXt([CNBlockConfig(8, None, 2)])
    x = torch.randn(1, 3, 32, 48)
    before, maps, _ = maps_of(net, x, "features.1.0.block.0")
    after, permuted, layout = maps_of(net, x, "features.1.0.block.1")
    assert (before.shape, after.shape) == ((1, 8, 8, 12), (1, 8, 12, 8))
    assert layout == Layout("NHWC")
    assert np.array_equal(maps, before[0].numpy())
    assert np.array_equal(permuted, before[0].numpy())
    hidden, maps, _ = maps_of(net, x, "features.1.0.block.3")
    assert np.array_equal(maps, np.stack([hidden[0, :, :, k].numpy() for k in range(32)]))


def test_every_slice_of_every_volume_has_its_place() -> None:
    """C28: a 3-D ResNet, slice d of channel c = out[0, c, d]."""
    output, maps, layout = maps_of(models.video.r3d_18(), torch.randn(1, 3, 4, 16, 24), "layer1")
    assert layout == Layout("NCDHW")
    channels, depth, height, width = output.shape[1:]
    assert maps.shape == (channels, depth * height, width)
    for c in range(channels):
        for d in range(depth):
            assert np.array_equal(maps[c, d * height : (d + 1) * height], output[0, c, d].numpy())


def test_volumes_of_a_video_transformer_keep_their_channels_last() -> None:
    """C12, C28."""
    net = SwinTransformer3d([1, 4, 4], 8, [2], [2], [2, 2, 2])
    output, maps, layout = maps_of(net, torch.randn(1, 3, 2, 16, 24), "features.0.0")
    assert layout == Layout("NDHWC")
    assert output.shape == (1, 2, 4, 6, 8)
    assert np.array_equal(maps, np.stack([output[0, :, :, :, k].reshape(8, 6).numpy() for k in range(8)]))


def test_a_detector_shows_maps_in_its_backbone_and_tables_in_its_head() -> None:
    """C28: (1, anchors, 4) must not be read as an image of four positions."""
    net = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=5).eval()
    image = ([torch.rand(3, 60, 90)],)
    features, (maps, layout) = other_maps(net, image, "backbone", 1)
    assert layout == Layout("NCHW")
    assert np.array_equal(maps, features["1"][0].numpy())
    for position, name in enumerate(("bbox_regression", "cls_logits")):
        head, (maps, layout) = other_maps(net, image, "head", position)
        assert layout == Layout("NLC", note="one row for each anchor: not an image")
        assert np.array_equal(maps, head[name].numpy())
    assert head["cls_logits"].shape == (1, 3234, 5)


def test_segmentation_gives_one_map_per_class() -> None:
    net = models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)
    x = torch.randn(2, 3, 32, 48)
    output, (maps, layout) = other_maps(net, (x,), "", 0, item=1)
    assert layout.name == "NCHW"
    assert np.array_equal(maps, output["out"][1].numpy())
    low, (maps, layout) = other_maps(net, (x,), "backbone", 0, item=1)
    assert layout == Layout("NCHW")
    assert np.array_equal(maps, low["low"][1].numpy())


def test_optical_flow_reads_both_frames_as_one_batch() -> None:
    net = models.optical_flow.raft_small().eval()
    frames = torch.randn(1, 3, 128, 136), torch.randn(1, 3, 128, 136)
    features, (maps, layout) = other_maps(net, frames, "feature_encoder", 0, item=1)
    assert features.shape[0] == 2
    assert layout == Layout("NCHW")
    assert np.array_equal(maps, features[1].numpy())
    flows, (maps, layout) = other_maps(net, frames, "", 11)
    assert layout.name == "NCHW"
    assert np.array_equal(maps, flows[11][0].numpy())


def test_a_quantised_mobilenet_shows_its_real_numbers() -> None:
    """C30: scale × (stored integer - zero point), not the stored integers."""
    net = load_model("quantized_mobilenet_v2", None, "cpu").module
    output, maps, layout = maps_of(net, torch.rand(1, 3, 32, 48), "features.1.conv.0.0")
    assert layout == Layout("NCHW")
    stored = output[0].int_repr().numpy().astype(np.float32)
    assert np.array_equal(maps, (stored - output.q_zero_point()) * np.float32(output.q_scale()))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_layers_say_where_their_batch_is(kind: Any, batch_first: bool) -> None:
    """C28: (N, L, C) or, as torch has it by default, (L, N, C)."""
    net = nn.Sequential(kind(3, 4, num_layers=2, bidirectional=True, batch_first=batch_first))
    x = torch.randn(2, 5, 3) if batch_first else torch.randn(5, 2, 3)
    output, (maps, layout) = other_maps(net, (x,), "0", 0, item=1)
    assert layout == Layout("NLC" if batch_first else "LNC")
    assert np.array_equal(maps, (output[0][1] if batch_first else output[0][:, 1])[None].numpy())
    output, (maps, layout) = other_maps(net, (x,), "0", 1, item=1)
    state = output[1][0] if kind is nn.LSTM else output[1]
    assert layout.note == "last state: the first axis counts layers and directions, the second is the batch"
    assert np.array_equal(maps, state[:, 1][None].numpy())


def test_a_sequence_without_a_batch_is_a_table() -> None:
    """C28."""
    output, (maps, layout) = other_maps(nn.LSTM(3, 4), (torch.randn(5, 3),), "", 0)
    assert layout == Layout("HW", note="one sequence: rows are its positions, columns the features")
    assert np.array_equal(maps, output[0][None].numpy())
    output, (maps, layout) = other_maps(nn.LSTM(3, 4, 2), (torch.randn(5, 3),), "", 2)
    assert layout == Layout("HW", note="last state: rows are layers and directions, columns the features")
    assert np.array_equal(maps, output[1][1][None].numpy())


class Patches(nn.Module):
    """A small vision transformer whose tokens come first and whose batch comes second, as CLIP has it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 4, stride=4)
        self.norm = nn.LayerNorm(8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.norm(self.embed(x).flatten(2).permute(2, 0, 1)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("batch", [1, 2])
def test_tokens_before_the_batch_are_no_windows(batch: int) -> None:
    net, x = Patches(), torch.randn(batch, 3, 8, 12)
    layers = listed(net, x)
    assert {layers[name].layouts[0] for name in ("norm", "block", "block.self_attn", "block.linear1")} == {
        Layout("LNC", (2, 3))
    }
    output, (maps, _) = other_maps(net, (x,), "block", 0, item=batch - 1)
    assert np.array_equal(maps, output[:, batch - 1].reshape(2, 3, 8).permute(2, 0, 1).numpy())


class Attending(nn.Module):
    def __init__(self, *, heads_apart: bool, **options: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, **options)
        self.heads_apart = heads_apart

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        output, self.weights = self.attention(queries, keys, keys, average_attn_weights=not self.heads_apart)
        return output  # type: ignore[no-any-return]


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(("heads_apart", "name"), [(False, "NHW"), (True, "NCHW")])
def test_attention_weights_are_maps_of_queries_by_keys(batch_first: bool, heads_apart: bool, name: str) -> None:
    """(N, L, S) and (N, heads, L, S) are neither tokens × features nor channels of an image."""
    net = Attending(heads_apart=heads_apart, batch_first=batch_first)
    queries, keys = torch.randn(2, 5, 8), torch.randn(2, 8, 8)  # as many keys as features
    given = (queries, keys) if batch_first else (queries.transpose(0, 1), keys.transpose(0, 1))
    (_, weights), (maps, layout) = other_maps(net, given, "attention", 1, item=1)
    per_head = " per head" if heads_apart else ""
    assert layout == Layout(name, note=f"attention: one map of query tokens × key tokens{per_head}")
    assert maps.shape == ((2 if heads_apart else 1), 5, 8)
    assert np.array_equal(maps, weights[1].reshape(maps.shape).numpy())


def test_attention_without_a_batch_and_without_weights() -> None:
    net = Attending(heads_apart=True)
    (_, weights), (maps, layout) = other_maps(net, (torch.randn(5, 8), torch.randn(3, 8)), "attention", 1)
    assert layout == Layout("CHW", note="attention: one map of query tokens × key tokens per head")
    assert np.array_equal(maps, weights.numpy())
    vit = listed(models.VisionTransformer(32, 8, 1, 2, 16, 32), torch.randn(1, 3, 32, 32))
    assert vit["encoder.layers.encoder_layer_0.self_attention"].other_layouts == ((),)


def test_attention_that_a_module_emits_is_named_and_what_else_has_heads_too() -> None:
    """timm's own attention shows its weights where its fused code is off."""
    net = timm.create_model("test_vit", qk_norm=True).eval()
    for module in net.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
    x = torch.randn(1, 3, 160, 160)
    output, maps, layout = maps_of(net, x, "blocks.0.attn.attn_drop")
    assert output.shape == (1, 2, 101, 101)
    assert layout == Layout("NCHW", note="attention: one map of query tokens × key tokens per head")
    assert np.array_equal(maps, output[0].numpy())
    assert np.allclose(maps.sum(2), 1)
    _, _, layout = maps_of(net, x, "blocks.0.attn.q_norm")
    assert layout == Layout("NCHW", note="attention: one map of tokens × features per head")
    named = {info.name: info.layouts[0] for info in list_operations(net, x)}
    assert named["blocks.0.attn.softmax"] == Layout(
        "NCHW", note="attention: one map of query tokens × key tokens per head"
    )


def test_windows_that_joined_the_batch_are_named_as_such() -> None:
    layers = listed(timm.create_model("test_maxvit"), torch.randn(1, 3, 160, 160))
    layout = layers["stages.0.blocks.0.attn_block.attn.qkv"].layouts[0]
    assert layout == Layout("NHWC", note="window partition: the first axis counts 64 windows of 5 × 5 tokens")
    assert layers["stages.0.blocks.0.attn_block"].layouts[0] == Layout("NHWC")


def test_a_mixers_tokens_are_columns_while_it_mixes_them() -> None:
    net = MlpMixer(img_size=96, patch_size=32, num_blocks=1, embed_dim=32)
    output, maps, layout = maps_of(net, torch.randn(1, 3, 96, 96), "blocks.0.mlp_tokens")
    assert layout == Layout("NCL", note="channels first, the image's rows one after the other")
    assert output.shape == (1, 32, 9)
    assert np.array_equal(maps, output[0][:, None].numpy())


def test_scalars_vectors_and_batches() -> None:
    """C28."""
    net = nn.Sequential(nn.Linear(4, 3), Returning(torch.sum))
    layers = listed(net, torch.randn(2, 4))
    assert layers["0"].layouts[0] == Layout("NC")
    assert layers["1"].layouts[0] == Layout("scalar")
    output, (maps, _) = other_maps(net, (torch.randn(2, 4),), "0", 0, item=1)
    assert np.array_equal(maps, output[1].reshape(3, 1, 1).numpy())
    output, (maps, _) = other_maps(net, (torch.randn(2, 4),), "1", 0)
    assert maps.tolist() == [[[output.item()]]]
