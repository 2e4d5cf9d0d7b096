from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torchvision
from torch import nn
from torch.nn.utils import parametrizations, prune, spectral_norm, weight_norm

from hookviz.errors import LayoutError
from hookviz.hooks import ChannelKernel, channel_kernel
from hookviz.models import load_model
from tests.nets import fingerprint, same


def kernel_of(layer: nn.Module, channel: int) -> ChannelKernel:
    kernel = channel_kernel(nn.Sequential(layer), "0", channel)
    assert kernel is not None
    return kernel


TWO_AXES: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(6, 4, (3, 2)),
    "grouped": lambda: nn.Conv2d(6, 4, 3, groups=2),
    "depthwise": lambda: nn.Conv2d(6, 12, 3, groups=6),
    "transposed": lambda: nn.ConvTranspose2d(6, 4, 3),
    "transposed and grouped": lambda: nn.ConvTranspose2d(6, 4, 3, groups=2, bias=False),
    "half": lambda: nn.Conv2d(6, 4, 3).to(torch.bfloat16),
}


@pytest.mark.parametrize("kind", TWO_AXES)
def test_the_kernel_is_what_one_bright_pixel_leaves_in_the_channel(kind: str) -> None:
    """A unit impulse on one input channel comes out as that input's kernel, mirrored by a convolution."""
    torch.manual_seed(0)
    layer: Any = TWO_AXES[kind]()
    dtype = layer.weight.dtype
    plain = copy.deepcopy(layer)
    plain.bias = None
    for channel in range(plain(torch.zeros(1, 6, 7, 7, dtype=dtype)).shape[1]):
        kernel = kernel_of(layer, channel)
        read = {}
        for source in range(6):
            impulse = torch.zeros(1, 6, 5, 5, dtype=dtype)
            impulse[0, source, 2, 2] = 1
            answer = plain(impulse)[0, channel].float()
            if isinstance(layer, nn.ConvTranspose2d):
                answer = answer[2:5, 2:5]
            else:
                answer = answer.flip(0, 1)[-3:, -3:] if layer.kernel_size == (3, 3) else answer.flip(0, 1)[:3, 1:3]
            if answer.any():
                read[source] = answer.detach().numpy()
        assert kernel.inputs == tuple(read)
        np.testing.assert_array_equal(kernel.weights, np.stack(list(read.values())))
        assert kernel.weights.dtype == np.float32
        assert kernel.bias == (None if layer.bias is None else layer.bias[channel].item())


def test_kernels_of_sequences_volumes_and_vectors_are_pictures_too() -> None:
    """C28: one row; slices from top to bottom; a single number for each feature."""
    line, volume, linear = nn.Conv1d(2, 3, 5), nn.Conv3d(2, 3, (2, 3, 4)), nn.Linear(6, 2, bias=False)
    assert np.array_equal(kernel_of(line, 1).weights, line.weight[1].detach().numpy()[:, None, :])
    assert np.array_equal(kernel_of(volume, 2).weights, volume.weight[2].detach().numpy().reshape(2, 6, 4))
    assert np.array_equal(kernel_of(linear, 0).weights, linear.weight[0].detach().numpy()[:, None, None])
    assert kernel_of(linear, 0).bias is None


def test_the_strongest_inputs_come_first_and_equal_ones_in_their_order() -> None:
    layer = nn.Conv2d(4, 1, 1, bias=False)
    layer.weight = nn.Parameter(torch.tensor([1.0, -3.0, 0.0, 3.0]).reshape(1, 4, 1, 1))
    kernel = kernel_of(layer, 0)
    assert kernel.strongest(3) == (1, 3, 0)
    assert kernel.strongest(9) == (1, 3, 0, 2)
    assert kernel.strengths.tolist() == [1, 3, 0, 3]


def test_places_of_the_strongest_are_among_the_inputs_of_the_group() -> None:
    layer = nn.Conv2d(4, 2, 1, groups=2, bias=False)
    layer.weight = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 9.0]]).reshape(2, 2, 1, 1))
    kernel = kernel_of(layer, 1)
    assert (kernel.inputs, kernel.strongest(1)) == ((2, 3), (1,))


def test_only_a_first_convolution_of_three_channels_is_rgb() -> None:
    """C17: a later layer of three channels reads no colours."""
    net = nn.Sequential(nn.Conv2d(3, 3, 3), nn.Conv2d(3, 4, 3))
    assert [bool(kernel and kernel.is_rgb) for kernel in (channel_kernel(net, name, 0) for name in "01")] == [
        True,
        False,
    ]
    assert not kernel_of(nn.Conv2d(1, 4, 3), 0).is_rgb
    assert not kernel_of(nn.Conv2d(3, 3, 3, groups=3), 0).is_rgb
    assert not kernel_of(nn.Linear(3, 3), 0).is_rgb


def test_the_stems_of_known_networks_are_rgb() -> None:
    for name, layer in (("resnet18", "conv1"), ("vit_b_16", "conv_proj")):
        net = torchvision.models.get_model(name, weights=None)
        kernel = channel_kernel(net, layer, 7)
        assert kernel is not None
        assert kernel.is_rgb
    lite = load_model("efficientnet_lite0", weights=None, device="cpu").module
    stem, later = channel_kernel(lite, "conv_stem", 0), channel_kernel(lite, "blocks.1.0.conv_dw", 5)
    assert stem is not None
    assert later is not None
    assert (stem.is_rgb, stem.weights.shape, later.is_rgb, later.inputs) == (True, (3, 3, 3), False, (5,))


COMPUTED: dict[str, Callable[[nn.Conv2d], Any]] = {
    "pruned": lambda layer: prune.l1_unstructured(layer, "weight", 0.5),
    "weight norm": weight_norm,
    "spectral norm": spectral_norm,
    "weight norm as parametrization": parametrizations.weight_norm,
    "spectral norm as parametrization": parametrizations.spectral_norm,
}


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning", "ignore:.*spectral_norm.*:FutureWarning")
@pytest.mark.parametrize("kind", COMPUTED)
def test_computed_weights_are_those_the_next_forward_uses(kind: str) -> None:
    """C50: after an optimizer's step, before any forward; the answer is read off the layer's own output."""
    torch.manual_seed(0)
    layer: Any = nn.Conv2d(2, 3, 3)
    COMPUTED[kind](layer)
    with torch.no_grad():
        next(layer.parameters()).mul_(2)
        for parameter in layer.parameters():
            parameter.mul_(1.5)
    before, state = fingerprint(layer), torch.get_rng_state()
    kernel = kernel_of(layer, 1)
    assert same(fingerprint(layer), before)
    assert torch.equal(torch.get_rng_state(), state)
    answers = []
    eager = layer.eval()
    for source in range(2):
        impulse = torch.zeros(1, 2, 5, 5)
        impulse[0, source, 2, 2] = 1
        answers.append((eager(impulse) - eager(torch.zeros(1, 2, 5, 5)))[0, 1].flip(0, 1).detach().numpy())
    np.testing.assert_allclose(kernel.weights, np.stack(answers), atol=1e-6)
    if kind == "pruned":
        assert (kernel.weights == 0).any()


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_int8_weights_are_dequantized() -> None:
    """C30."""
    layer: Any = torch.ao.nn.quantized.Conv2d(3, 4, 3)
    weight = torch.quantize_per_tensor(torch.randn(4, 3, 3, 3), 0.1, 0, torch.qint8)
    layer.set_weight_bias(weight, torch.arange(4.0))
    kernel = kernel_of(layer, 2)
    assert np.array_equal(kernel.weights, weight.dequantize()[2].numpy())
    assert (kernel.bias, kernel.is_rgb, kernel.note) == (2.0, True, "dequantized from int8")


def test_complex_weights_are_shown_by_magnitude() -> None:
    """C30."""
    layer = nn.Linear(2, 1, dtype=torch.complex64)
    kernel = kernel_of(layer, 0)
    np.testing.assert_allclose(kernel.weights[:, 0, 0], np.abs(layer.weight[0].detach().numpy()), rtol=1e-6)
    assert kernel.note == "magnitude of complex weights"


@pytest.mark.parametrize(
    "layer",
    [nn.ReLU(), nn.BatchNorm2d(3), nn.LayerNorm(3), nn.Embedding(3, 4), nn.LazyConv2d(3, 3), nn.PReLU(), nn.LSTM(2, 2)],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_without_kernels_have_none(layer: nn.Module) -> None:
    assert channel_kernel(nn.Sequential(layer), "0", 0) is None


def test_operations_and_containers_have_none() -> None:
    net = torchvision.models.resnet18(weights=None)
    assert channel_kernel(net, "layer1", 0) is None
    assert channel_kernel(net, "layer1.0.add", 0) is None


def test_a_channel_that_is_not_there_is_refused_in_a_sentence() -> None:
    with pytest.raises(LayoutError, match="There is no channel 4 of 4: choose from 0 to 3"):
        channel_kernel(nn.Sequential(nn.Conv2d(3, 4, 3)), "0", 4)
