from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import Tensor, nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

from hookviz.errors import GradientError, LayoutError, UnknownLayerError
from hookviz.hooks import ReceptiveField, receptive_field
from hookviz.models import load_model
from tests.nets import DictHeads, ResidualInplaceNet, ReusedReLUNet, fingerprint, same


class Step(NamedTuple):
    """A convolution or pooling along one axis; ``same`` is TensorFlow's padding."""

    kernel: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    same: bool = False


def seen_along(steps: Sequence[Step], place: int, length: int) -> tuple[int, int]:
    """By arithmetic: what output ``place`` sees of an axis, first and last + 1, inside every map on the way."""
    lengths, starts = [length], []
    for step in steps:
        reach = step.dilation * (step.kernel - 1) + 1
        if step.same:
            outputs = math.ceil(lengths[-1] / step.stride)
            starts.append(max((outputs - 1) * step.stride + reach - lengths[-1], 0) // 2)
        else:
            outputs = (lengths[-1] + 2 * step.padding - reach) // step.stride + 1
            starts.append(step.padding)
        lengths.append(outputs)
    low = high = place
    for step, before, extent in reversed(list(zip(steps, starts, lengths[:-1], strict=True))):
        low, high = low * step.stride - before, high * step.stride - before + step.dilation * (step.kernel - 1)
        low, high = max(low, 0), min(high, extent - 1)
    return low, high + 1


def box(field: ReceptiveField) -> tuple[int, int, int, int]:
    return field.top, field.bottom, field.left, field.right


def conv(kernel: int, **options: Any) -> nn.Module:
    torch.manual_seed(kernel)
    return nn.Conv2d(3, 3, kernel, **options)


CHAINS: list[list[tuple[nn.Module, Step, Step]]] = [
    [(conv(3, padding=1), Step(3, 1, 1), Step(3, 1, 1))] * 3,
    [
        (conv(7, stride=2, padding=3), Step(7, 2, 3), Step(7, 2, 3)),
        (nn.MaxPool2d(3, 2, 1), Step(3, 2, 1), Step(3, 2, 1)),
    ],
    [(conv(3, dilation=2), Step(3, 1, 0, 2), Step(3, 1, 0, 2)), (nn.AvgPool2d(2), Step(2, 2), Step(2, 2))],
    [(conv(1, stride=3), Step(1, 3), Step(1, 3)), (nn.MaxPool2d(2, 1, 0, 2), Step(2, 1, 0, 2), Step(2, 1, 0, 2))],
    [(conv(5, padding=2, groups=3, stride=2), Step(5, 2, 2), Step(5, 2, 2))] * 2,
    [
        (nn.Conv2d(3, 3, (1, 5), (2, 1), (0, 2)), Step(1, 2), Step(5, 1, 2)),
        (nn.MaxPool2d((3, 2), (1, 2)), Step(3), Step(2, 2)),
    ],
]


@pytest.mark.parametrize("chain", CHAINS, ids=range(len(CHAINS)))
def test_chains_of_convolutions_and_poolings_see_what_arithmetic_says(
    chain: list[tuple[nn.Module, Step, Step]],
) -> None:
    """C26: on 31×45, at every position of the borders and in the middle."""
    torch.manual_seed(0)
    parts = [part for layer, _, _ in chain for part in (layer, nn.BatchNorm2d(3), nn.ReLU(inplace=True))]
    net, image = nn.Sequential(*parts).eval(), torch.randn(1, 3, 31, 45)
    height, width = net(image).shape[2:]
    rows, columns = [step for _, step, _ in chain], [step for _, _, step in chain]
    for row in (0, height // 2, height - 1):
        for column in (0, width // 3, width - 1):
            field = receptive_field(net, (image,), str(len(net) - 1), (row, column))
            assert box(field) == (*seen_along(rows, row, 31), *seen_along(columns, column, 45))
            assert (field.exact, field.note, field.weights.shape) == (True, "", (31, 45))


def first(size: Any) -> int:
    return int(np.ravel(size)[0])


def steps_of(module: nn.Module, *, is_same: bool = False) -> list[Step]:
    """The convolutions and poolings of modules that run one after another, in that order."""
    kinds = (nn.Conv2d, nn.MaxPool2d)
    found = [layer for layer in module.modules() if isinstance(layer, kinds)]
    return [
        Step(first(one.kernel_size), first(one.stride), first(one.padding), first(one.dilation), is_same)
        for one in found
    ]


def check_by_arithmetic(net: nn.Module, layer: str, steps: Sequence[Step], size: tuple[int, int] = (96, 128)) -> None:
    torch.set_num_threads(1)  # on so small an image several would only wait for each other
    image = torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0))
    for position in ((0, 0), (1, 2), (2, 3)):
        field = receptive_field(net, (image,), layer, position)
        expected = (*seen_along(steps, position[0], size[0]), *seen_along(steps, position[1], size[1]))
        assert (layer, box(field)) == (layer, expected)
        assert field.exact


def test_resnet18_sees_what_arithmetic_says() -> None:
    """Behind a block, its two 3×3 convolutions see more than the shortcut."""
    net = torchvision.models.resnet18(weights=None).eval()
    stem = [Step(7, 2, 3), Step(3, 2, 1)]
    check_by_arithmetic(net, "conv1", stem[:1])
    check_by_arithmetic(net, "maxpool", stem)
    check_by_arithmetic(net, "layer1", stem + [Step(3, 1, 1)] * 4)
    check_by_arithmetic(net, "layer2.0.downsample", [*stem, *[Step(3, 1, 1)] * 4, Step(1, 2)])
    check_by_arithmetic(
        net,
        "layer3.0",
        [*stem, *[Step(3, 1, 1)] * 4, *([Step(3, 2, 1)] + [Step(3, 1, 1)] * 3), Step(3, 2, 1), Step(3, 1, 1)],
    )


def test_vgg16_sees_what_arithmetic_says() -> None:
    net: Any = torchvision.models.vgg16(weights=None).eval()
    for number in (0, 4, 14, 29):
        check_by_arithmetic(net, f"features.{number}", steps_of(net.features[: number + 1]))


def test_mobilenet_v2_sees_what_arithmetic_says() -> None:
    net: Any = torchvision.models.mobilenet_v2(weights=None).eval()
    for number in (0, 3, 10):
        check_by_arithmetic(net, f"features.{number}", steps_of(net.features[: number + 1]))


def test_efficientnet_lite0_sees_what_arithmetic_says() -> None:
    """Its padding is TensorFlow's, which is wider at the bottom and on the right."""
    net: Any = load_model("efficientnet_lite0", weights=None, device="cpu").module
    steps = steps_of(net.conv_stem, is_same=True)
    check_by_arithmetic(net, "conv_stem", steps)
    for number in range(4):
        steps += steps_of(net.blocks[number], is_same=True)
        check_by_arithmetic(net, f"blocks.{number}", steps)


def test_squeeze_and_excitation_sees_the_whole_image() -> None:
    net, image = torchvision.models.efficientnet_b0(weights=None).eval(), torch.rand(1, 3, 64, 96)
    before = receptive_field(net, (image,), "features.1.0.block.0", (5, 7))
    assert box(before) == (
        *seen_along([Step(3, 2, 1), Step(3, 1, 1)], 5, 64),
        *seen_along([Step(3, 2, 1), Step(3, 1, 1)], 7, 96),
    )
    for layer in ("features.1.0.block.1", "features.1.0.block.2", "features.3"):
        behind = receptive_field(net, (image,), layer, (5, 7))
        assert (behind.is_whole_image, behind.exact) == (True, True)


class Applied(nn.Module):
    """A convolution, and a function behind it."""

    def __init__(self, function: Callable[[Tensor], Tensor], channels: int = 4) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.function = function

    def forward(self, image: Tensor) -> Tensor:
        return self.function(self.conv(image))


def inplace(x: Tensor) -> Tensor:
    x *= 2
    x[:, :2] += x[:, 2:]
    x[..., 1:] = x[..., :-1].clone()
    return x


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "max pool, rounded up": lambda x: F.max_pool2d(x, 3, 2, ceil_mode=True),
    "max pool, dilated": lambda x: F.max_pool2d(x, 2, 1, 1, dilation=2),
    "adaptive max pool": lambda x: F.adaptive_max_pool2d(x, (5, 4)),
    "adaptive average pool": lambda x: F.adaptive_avg_pool2d(x, (5, 4)),
    "maximum of rows": lambda x: x.max(dim=3, keepdim=True)[0],
    "largest of all channels": lambda x: x.amax(1, keepdim=True),
    "upsampled": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(9, 31)),
    "pixel shuffle": lambda x: F.pixel_shuffle(x, 2),
    "reflected": lambda x: F.avg_pool2d(F.pad(x, (2, 3, 1, 2), mode="reflect"), 2),
    "cropped and rolled": lambda x: x[:, :, 2:-1, 3:].roll((1, 2), (2, 3)),
    "flipped": lambda x: x.flip(3),
    "transposed convolution": lambda x: F.conv_transpose2d(
        x, torch.ones(4, 2, 3, 3, dtype=x.dtype), stride=2, padding=1
    ),
    "unfolded": lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1),
    "concatenated": lambda x: torch.cat([x, F.avg_pool2d(x, 5, 1, 2)], 1),
    "in place": inplace,
    "clamped and swished": lambda x: F.hardswish(F.relu6(x.clamp(0.1))) * F.silu(x) + F.gelu(x).sqrt().nan_to_num(),
    "where": lambda x: torch.where(torch.ones_like(x) > 0, x * 2, x.new_zeros(())),
    "difference": lambda x: F.avg_pool2d(x, 3, 1, 1) - x.clone() * 0.5,
    "windows": lambda x: x.unfold(2, 3, 1).sum(-1),
    "local response": lambda x: F.local_response_norm(x, 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_lies_outside_the_box_changes_nothing_and_its_edges_do(name: str) -> None:
    """By trial on an image of 16×20: one pixel after the other made brighter, in a network of positive weights."""
    torch.set_num_threads(1)
    net = Applied(FUNCTIONS[name]).eval()
    with torch.no_grad():
        net.conv.weight.abs_()
    image = torch.rand(1, 3, 16, 20, dtype=torch.float64) + 1
    before = net.double()(image)
    positions = {(0, 0), (before.shape[2] // 2, before.shape[3] // 3), (before.shape[2] - 1, before.shape[3] - 1)}
    changed = torch.zeros(16, 20, *before.shape[2:], dtype=torch.bool)
    for row in range(16):
        for column in range(20):
            brighter = image.clone()
            brighter[..., row, column] += 100
            changed[row, column] = (net(brighter) != before).any(1)[0]
    for row, column in positions:
        field = receptive_field(net, (image,), "", (row, column))
        rows, columns = (np.flatnonzero(changed[..., row, column].any(axis).numpy()) for axis in (1, 0))
        assert box(field) == (rows[0], rows[-1] + 1, columns[0], columns[-1] + 1)
        assert field.exact


WHOLE: dict[str, nn.Module] = {
    "instance norm": nn.InstanceNorm2d(4),
    "group norm": nn.GroupNorm(2, 4),
    "global mean": nn.AdaptiveAvgPool2d(1),
    "global maximum": nn.AdaptiveMaxPool2d(1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_normalisation_over_positions_sees_the_whole_image(name: str) -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), WHOLE[name])
    field = receptive_field(net, (torch.rand(1, 3, 9, 13),), "1", (0, 0))
    assert (field.is_whole_image, field.exact) == (True, True)


def test_layer_norm_over_channels_sees_no_other_position() -> None:
    net = nn.Sequential(torchvision.ops.Permute([0, 2, 3, 1]), nn.LayerNorm(3), nn.Linear(3, 5), nn.Softmax(-1))
    field = receptive_field(net, (torch.rand(1, 3, 9, 13),), "3", (4, 6), layout="NHWC")
    assert (box(field), field.exact) == ((4, 5, 6, 7), True)


def test_zero_weights_and_silent_units_hide_nothing_of_the_box() -> None:
    """The gradient itself is zero throughout."""
    net: Any = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3))
    nn.init.constant_(net[0].bias, -1e6)
    nn.init.zeros_(net[2].weight)
    field = receptive_field(net, (torch.rand(1, 3, 12, 12),), "2", (2, 3))
    assert box(field) == (2, 7, 3, 8)
    assert not field.weights.any()


def test_a_position_that_sees_only_padding_says_so() -> None:
    net = nn.Conv2d(3, 1, 1, padding=2)
    field = receptive_field(net, (torch.rand(1, 3, 4, 5),), "", (0, 0))
    assert (box(field), field.note) == ((0, 0, 0, 0), "this position sees nothing of the image, padding alone")


def test_a_patch_is_a_position_until_attention_shows_it_everything() -> None:
    """ViT: 3×4 patches of 8×8 pixels on 24×32, behind a class token."""
    net = Patches()
    image = torch.rand(2, 3, 24, 32)
    for layer, expected in (("embed", (8, 16, 24, 32)), ("norm", (8, 16, 24, 32)), ("attention", (0, 24, 0, 32))):
        layout: dict[str, Any] = {} if layer == "embed" else {"layout": "NLC", "grid": (3, 4)}
        field = receptive_field(net, (image,), layer, (1, 3), item=1, **layout)
        assert (layer, box(field), field.exact) == (layer, expected, True)


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, image: Tensor) -> Tensor:
        tokens = self.embed(image).flatten(2).transpose(1, 2)
        tokens = self.norm(torch.cat([self.token.expand(len(tokens), -1, -1), tokens], 1))
        attended: Tensor = self.attention(tokens, tokens, tokens, need_weights=False)[0]
        return attended


def test_swin_sees_one_window_then_the_windows_moved_over_it() -> None:
    """C12: channels last, windows of 2×2 patches of 4×4 pixels on 48×32."""
    net = torchvision.models.SwinTransformer(
        patch_size=[4, 4], embed_dim=8, depths=[2, 1], num_heads=[2, 2], window_size=[2, 2]
    ).eval()
    image = torch.rand(1, 3, 48, 32)
    assert box(receptive_field(net, (image,), "features.1.0", (5, 2), layout="NHWC")) == (16, 24, 8, 16)
    # Moved by one patch, the window of patch (5, 2) holds rows 5 and 6, columns 1 and 2, each in a window of its own.
    assert box(receptive_field(net, (image,), "features.1.1", (5, 2), layout="NHWC")) == (16, 32, 0, 16)


def test_sequences_and_volumes_are_positions_as_their_maps_have_them() -> None:
    """C28: a sequence is one row; of a volume, the slices lie from top to bottom."""
    line = receptive_field(nn.Conv1d(3, 4, 5, 2), (torch.rand(1, 3, 30),), "", (0, 4), layout="NCL")
    assert (box(line), line.weights.shape) == ((0, 1, 8, 13), (1, 30))
    volume = nn.Conv3d(3, 4, (2, 3, 3))
    video = torch.rand(1, 3, 4, 9, 10)
    assert box(receptive_field(volume, (video,), "", (7 + 2, 4))) == (2, 5, 4, 7)
    assert box(receptive_field(volume, (video,), "", (2, 4), depth=1)) == (2, 5, 4, 7)


def test_a_vector_sees_the_whole_image() -> None:
    net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 7 * 9, 5))
    field = receptive_field(net, (torch.rand(1, 3, 9, 11),), "2", (0, 0), channel=3)
    assert (field.is_whole_image, field.exact, field.shares) == (True, True, (0.0, 0.0, 1.0, 1.0))


def test_shares_are_left_upper_right_lower() -> None:
    """C26."""
    field = receptive_field(nn.Conv2d(3, 1, 2, 2), (torch.rand(1, 3, 8, 16),), "", (1, 5))
    assert field.shares == (10 / 16, 2 / 8, 12 / 16, 4 / 8)


def test_weights_of_a_channel_are_the_gradient_of_its_value() -> None:
    """O2, with torch alone."""
    torch.manual_seed(0)
    net, image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Conv2d(4, 5, 3)), torch.randn(1, 3, 10, 12)
    leaf = image.clone().requires_grad_()
    (expected,) = torch.autograd.grad(net(leaf)[0, 2, 3, 4], leaf)
    field = receptive_field(net, (image,), "2", (3, 4), channel=2)
    np.testing.assert_allclose(field.weights, expected[0].abs().sum(0).numpy(), rtol=1e-5, atol=1e-7)
    assert field.weights.dtype == np.float32


def test_weights_of_all_channels_are_the_gradient_of_their_norm() -> None:
    torch.manual_seed(0)
    net, image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Conv2d(4, 5, 3)), torch.randn(1, 3, 10, 12)
    leaf = image.clone().requires_grad_()
    (expected,) = torch.autograd.grad(net(leaf)[0, :, 3, 4].norm(), leaf)
    field = receptive_field(net, (image,), "2", (3, 4))
    np.testing.assert_allclose(field.weights, expected[0].abs().sum(0).numpy(), rtol=1e-5, atol=1e-7)


def test_one_channel_of_a_grouped_layer_has_a_field_of_its_own() -> None:
    class Branches(nn.Module):
        def forward(self, image: Tensor) -> Tensor:
            return torch.cat([image, F.max_pool2d(image, 3, 1, 1)], 1)

    image = torch.rand(1, 3, 9, 9)
    assert box(receptive_field(Branches(), (image,), "", (4, 4), channel=2)) == (4, 5, 4, 5)
    assert box(receptive_field(Branches(), (image,), "", (4, 4), channel=3)) == (3, 6, 3, 6)


def test_each_call_of_a_layer_has_its_own_field() -> None:
    """C02."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, image: Tensor) -> Tensor:
            return self.conv(self.conv(image).relu_())  # type: ignore[no-any-return]

    image = torch.rand(1, 3, 12, 12)
    assert box(receptive_field(Twice(), (image,), "conv", (5, 5))) == (4, 7, 4, 7)
    assert box(receptive_field(Twice(), (image,), "conv", (5, 5), call=1)) == (3, 8, 3, 8)
    with pytest.raises(UnknownLayerError, match="layer 'conv' was called 2 times in this run; calls count from 0"):
        receptive_field(Twice(), (image,), "conv", (5, 5), call=2)


def test_functional_operations_are_layers_too() -> None:
    net = torchvision.models.resnet18(weights=None).eval()
    image = torch.rand(1, 3, 64, 64)
    steps = [Step(7, 2, 3), Step(3, 2, 1), Step(3, 1, 1), Step(3, 1, 1)]
    field = receptive_field(net, (image,), "layer1.0.add", (7, 9))
    assert box(field) == (*seen_along(steps, 7, 64), *seen_along(steps, 9, 64))
    with pytest.raises(UnknownLayerError, match=r"no layer 'layer1.0.adds' in ResNet; did you mean 'layer1.0.add'"):
        receptive_field(net, (image,), "layer1.0.adds", (0, 0))


def test_a_network_may_write_into_its_input() -> None:
    """C01."""
    image = torch.randn(1, 3, 8, 8)
    before = image.clone()
    for net in (nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 3, 3)), ResidualInplaceNet()):
        assert receptive_field(net, (image,), "", (1, 1)).exact
    assert torch.equal(image, before)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_network_and_the_mode_are_left_as_they_were(mode: Callable[[], Any]) -> None:
    """O5, C37: also with every parameter frozen, in train mode, and within inference mode."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(), nn.Conv2d(4, 2, 3))
    net[0].requires_grad_(False)
    before, state = fingerprint(net), torch.get_rng_state()
    with mode():
        image = torch.rand(1, 3, 9, 9)
        torch.set_rng_state(state)
        enabled = torch.is_grad_enabled()
        field = receptive_field(net, (image,), "4", (1, 2))
        assert torch.is_grad_enabled() is enabled
    assert box(field) == (1, 6, 2, 7)
    assert field.weights.any()
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_somebody_elses_anomaly_mode_changes_nothing() -> None:
    """C36: it is on for the whole process, and stays as it was."""
    net, image = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)), torch.rand(1, 3, 9, 9)
    alone = receptive_field(net, (image,), "2", (1, 1))
    with torch.autograd.detect_anomaly():
        field = receptive_field(net, (image,), "2", (1, 1))
        assert torch.is_anomaly_enabled()
    assert (box(field), field.exact) == (box(alone), True)
    assert np.array_equal(field.weights, alone.weights)
    assert not torch.is_anomaly_enabled()


def test_lazy_and_compiled_and_pruned_networks_have_fields() -> None:
    """C25, C50: a lazy one stays without a shape, a compiled one goes by its eager layers."""
    image = torch.rand(1, 3, 9, 9)
    lazy: Any = nn.Sequential(nn.LazyConv2d(4, 3), nn.ReLU())
    assert box(receptive_field(lazy, (image,), "1", (1, 2))) == (1, 4, 2, 5)
    assert nn.parameter.is_lazy(lazy[0].weight)
    compiled: Any = torch.compile(nn.Sequential(nn.Conv2d(3, 4, 3)), backend="eager")
    compiled(image)
    assert box(receptive_field(compiled, (image,), "0", (1, 2))) == (1, 4, 2, 5)
    pruned = nn.Sequential(nn.Conv2d(3, 4, 3))
    prune.l1_unstructured(pruned[0], "weight", 0.9)
    pruned(image)
    assert box(receptive_field(pruned, (image,), "0", (1, 2))) == (1, 4, 2, 5)


def test_an_int8_network_is_refused_in_a_sentence() -> None:
    """C30."""
    model = load_model("quantized_resnet18", weights=None, device="cpu")
    with pytest.raises(GradientError, match="the output of 'conv1' is quint8, through which no gradient flows"):
        receptive_field(model.module, (torch.rand(1, 3, 64, 64),), "conv1", (1, 1))


def test_a_nan_in_the_image_leaves_the_box_alone() -> None:
    """C14."""
    image = torch.rand(1, 3, 9, 9)
    image[0, 0, 3, 3] = torch.nan
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 2))
    assert box(receptive_field(net, (image,), "3", (1, 1))) == (2, 8, 2, 8)


def test_a_network_made_in_inference_mode_has_fields() -> None:
    """C60."""
    with torch.inference_mode():
        net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
        image = torch.rand(1, 3, 9, 9)
    assert box(receptive_field(net, (image,), "1", (1, 2))) == (1, 4, 2, 5)


def test_arguments_may_be_lists_and_keywords() -> None:
    """C83, C57: the first floating tensor with height and width is the image."""

    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 2, 3)

        def forward(self, scale: Tensor, *, images: list[Tensor]) -> dict[str, Tensor]:
            return {"out": self.conv(torch.stack(images)) * scale}

    image = torch.rand(3, 9, 12)
    field = receptive_field(Listed(), (torch.tensor(2.0),), "", (3, 4), kwargs={"images": [image]}, path="out")
    assert (box(field), field.weights.shape) == ((3, 6, 4, 7), (9, 12))


def test_what_gradients_cannot_follow_is_said() -> None:
    """A threshold at the mean of the whole image; the position depends on all of it, and the box cannot know."""
    net = Applied(lambda x: torch.where(x > x.mean(), x, x * 0))
    field = receptive_field(net, (torch.rand(1, 3, 9, 9),), "", (4, 4))
    assert (box(field), field.exact) == ((3, 6, 3, 6), False)
    assert field.note == "it may reach further, since no gradient passes gt"
    rounded = receptive_field(Applied(torch.round), (torch.rand(1, 3, 9, 9),), "", (4, 4))
    assert (rounded.exact, rounded.note) == (False, "it may reach further, since no gradient passes round")
    detached = receptive_field(Applied(lambda x: x + x.detach().mean()), (torch.rand(1, 3, 9, 9),), "", (4, 4))
    assert detached.note == "it may reach further, since no gradient passes detach"


def test_a_field_of_the_whole_image_is_exact_whatever_gradients_cannot_follow() -> None:
    net = nn.Sequential(Applied(lambda x: torch.where(x > x.mean(), x, x * 0)), nn.AdaptiveAvgPool2d(1))
    field = receptive_field(net, (torch.rand(1, 3, 9, 9),), "1", (0, 0))
    assert (field.is_whole_image, field.exact, field.note) == (True, True, "")


def test_an_index_that_nobody_uses_is_no_reason_to_doubt() -> None:
    net = Applied(lambda x: x.max(dim=1, keepdim=True)[0])
    assert receptive_field(net, (torch.rand(1, 3, 9, 9),), "", (4, 4)).exact


def test_operations_that_nothing_is_known_of_are_taken_to_see_everything() -> None:
    flow = F.affine_grid(torch.eye(2, 3)[None], [1, 4, 9, 9], align_corners=False)
    net = Applied(lambda x: F.grid_sample(x, flow, align_corners=False))
    field = receptive_field(net, (torch.rand(1, 3, 9, 9),), "", (4, 4))
    assert (field.is_whole_image, field.exact) == (True, False)
    assert field.note == (
        "it may be smaller, since through grid_sampler_2d_backward everything is taken to see everything"
    )


def test_checkpointed_blocks_are_seen_through() -> None:
    """C45."""

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3)

        def forward(self, image: Tensor) -> Tensor:
            return self.conv(checkpoint(self.conv, image, use_reentrant=False))  # type: ignore[no-any-return]

    assert box(receptive_field(Checkpointed(), (torch.rand(1, 3, 9, 9),), "", (2, 2))) == (2, 7, 2, 7)


def test_half_precision_networks_have_the_same_box() -> None:
    """C29."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(2)).to(torch.bfloat16)
    field = receptive_field(net, (torch.rand(1, 3, 12, 12).bfloat16(),), "2", (1, 2))
    assert (box(field), field.weights.dtype.name) == ((2, 6, 4, 8), "float32")


def test_what_has_no_gradient_is_refused_in_a_sentence() -> None:
    """C31."""
    image = torch.rand(1, 3, 9, 9)
    with pytest.raises(GradientError, match="the output of '' is int64, through which no gradient flows"):
        receptive_field(Applied(lambda x: x.argmax(1, keepdim=True)), (image,), "", (0, 0))
    with pytest.raises(GradientError, match="no gradient leads from the output of '' to the image"):
        receptive_field(Applied(torch.detach), (image,), "", (0, 0))
    with pytest.raises(GradientError, match="the network was given no floating-point tensor"):
        receptive_field(nn.Embedding(3, 4), (torch.tensor([1]),), "", (0, 0))


def test_what_does_not_exist_is_refused_in_a_sentence() -> None:
    net, image = nn.Sequential(nn.Conv2d(3, 4, 3)), torch.rand(1, 3, 9, 11)
    with pytest.raises(
        LayoutError, match=r"There is no position \(7, 0\) in maps of 7×9: rows and columns count from 0"
    ):
        receptive_field(net, (image,), "0", (7, 0))
    with pytest.raises(LayoutError, match="There is no channel 4 of 4: choose from 0 to 3"):
        receptive_field(net, (image,), "0", (0, 0), channel=4)
    with pytest.raises(UnknownLayerError, match="no layer 'conv' in Sequential"):
        receptive_field(net, (image,), "conv", (0, 0))
    with pytest.raises(LayoutError, match=r"The output of '' has no tensor at 'x'; there are 'a', 'b.0'"):
        receptive_field(DictHeads(), (torch.rand(1, 3),), "", (0, 0), path="x")
    with pytest.raises(UnknownLayerError, match="layer '1' did not run"):
        unused = nn.ModuleList([nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)])
        unused.forward = unused[0].forward  # a network that leaves a part out
        receptive_field(unused, (image,), "1", (0, 0))


def test_a_network_without_images_has_fields_of_numbers() -> None:
    field = receptive_field(ReusedReLUNet(), (torch.rand(2, 4),), "relu", (0, 0), call=1, item=1)
    assert (box(field), field.weights.shape) == ((1, 2, 0, 4), (2, 4))
