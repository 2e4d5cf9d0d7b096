from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import prune

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.prune import pruning_report
from hookviz.hooks.prune_preview import maps_before_and_after
from tests.hooks.networks import NETWORKS, example, network
from tests.hooks.uses import USES, nothing
from tests.nets import fingerprint, same


def by_hand(weight: Tensor, amount: float) -> Tensor:
    """The mask that keeps all but the smallest absolute values."""
    gone = weight.abs().flatten().argsort()[: round(amount * weight.numel())]
    mask = torch.ones(weight.numel())
    mask[gone] = 0
    return mask.view_as(weight)


CONVOLUTIONS = {
    "simple_cnn": "conv2",
    "resnet18": "layer1.0.conv2",
    "densenet121": "features.denseblock1.denselayer2.conv2",
    "mobilenet_v2": "features.3.conv.2",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_maps_before_and_after_pruning_are_those_of_the_masked_weight(name: str) -> None:
    """C50: on a private copy; equal to torch's convolution with the weight times its mask, to the last bit."""
    net, images = network(name), example(name)
    layer: Any = net.get_submodule(CONVOLUTIONS[name])
    inputs: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0].clone()))
    net(images)
    handle.remove()
    before = fingerprint(net)
    maps = maps_before_and_after(net, CONVOLUTIONS[name], images, amount=0.3)
    assert same(fingerprint(net), before)

    def convolved(weight: Tensor) -> Tensor:
        return F.conv2d(inputs[0], weight, layer.bias, layer.stride, layer.padding, layer.dilation, layer.groups)

    with torch.no_grad():
        mask = by_hand(layer.weight, 0.3)
        assert torch.equal(maps.before.output, convolved(layer.weight))
        assert torch.equal(maps.after.output, convolved(layer.weight * mask))
    assert maps.pruned.zeros == round(0.3 * layer.weight.numel())
    assert (maps.pruned.state, maps.pruned.layer) == ("mask", CONVOLUTIONS[name])


def test_pruned_channels_are_empty_but_for_their_bias() -> None:
    """C50: the channels with the smallest sums of absolute weights; others stay as they were."""
    net, images = network("simple_cnn"), example("simple_cnn")
    weight, bias = net.get_parameter("conv1.weight"), net.get_parameter("conv1.bias")
    gone = weight.abs().sum((1, 2, 3)).argsort()[:4].sort().values.tolist()
    maps = maps_before_and_after(net, "conv1", images, amount=0.25, by="channels")
    assert list(maps.pruned.outputs_gone) == gone
    for channel in range(16):
        expected = bias[channel].expand(2, 32, 32) if channel in gone else maps.before.output[:, channel]
        assert torch.equal(maps.after.output[:, channel], expected)


def test_pruning_twice_takes_a_share_of_what_is_left() -> None:
    """C50: 50 %, then half of the rest; the network keeps its own mask."""
    net = nn.Sequential(nn.Linear(4, 2))
    prune.l1_unstructured(net[0], "weight", 0.5)
    net(torch.rand(1, 4))
    before = fingerprint(net)
    assert maps_before_and_after(net, "0", torch.rand(1, 4), amount=0.5).pruned.sparsity == 0.75
    assert pruning_report(net)["0.weight"].sparsity == 0.5
    assert same(fingerprint(net), before)


@pytest.mark.parametrize("amount", [0, 0.0, 1, 1.0])
def test_nothing_and_everything_can_be_pruned(amount: float) -> None:
    """C50: torch reads a whole number as a count, where a share is meant."""
    layer, inputs = nn.Linear(4, 2), torch.rand(1, 4)
    net = nn.Sequential(layer)
    maps = maps_before_and_after(net, "0", inputs, amount=amount)
    assert maps.pruned.sparsity == amount
    assert torch.equal(maps.after.output, layer.bias[None].detach() if amount else maps.before.output)


def test_what_cannot_be_pruned_is_one_sentence() -> None:
    net, inputs = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.BatchNorm1d(2)), torch.rand(1, 4)
    with pytest.raises(HookvizError, match="from 0 to 1, not 30"):
        maps_before_and_after(net, "0", inputs, amount=30)
    with pytest.raises(HookvizError, match=r"layer '1' \(ReLU\) has no weight"):
        maps_before_and_after(net, "1", inputs, amount=0.5)
    with pytest.raises(HookvizError, match="has one axis"):
        maps_before_and_after(net, "2", inputs, amount=0.5, by="channels")
    with pytest.raises(HookvizError, match="not by 'rows'"):
        maps_before_and_after(net, "0", inputs, amount=0.5, by="rows")  # type: ignore[arg-type]  # the error
    with pytest.raises(UnknownLayerError, match="no layer '9'"):
        maps_before_and_after(net, "9", inputs, amount=0.5)


def test_a_layer_whose_mask_is_never_applied_does_not_run() -> None:
    """C50: attention reads the weight of ``out_proj`` and never calls the layer."""
    attention = nn.MultiheadAttention(4, 1)
    inputs = torch.rand(2, 1, 4)
    with pytest.raises(UnknownLayerError, match="'out_proj' did not run"):
        maps_before_and_after(attention, "out_proj", inputs, inputs, inputs, amount=0.5)


@pytest.mark.parametrize("use", sorted(set(USES) - {"remove_hooks"}))
def test_pruning_survives_every_function(use: str) -> None:
    """C50, C51: masks and the hooks that apply them stay, and what is computed is what a masked weight computes."""
    net, images = network("simple_cnn"), example("simple_cnn")
    for layer in ("conv1", "conv2", "fc1"):
        prune.l1_unstructured(net.get_submodule(layer), "weight", 0.5)
    wanted = net(images).detach()
    before = fingerprint(net)
    baked = network("simple_cnn")
    for name in ("conv1", "conv2", "fc1"):
        masked: Any = net.get_submodule(name)
        baked.get_parameter(f"{name}.weight").data.copy_(masked.weight)
    found, expected = USES[use](net, images, nothing), USES[use](baked, images, nothing)
    net.zero_grad()
    assert same(fingerprint(net), before)
    assert pruning_report(net)["conv2.weight"].sparsity == 0.5
    assert torch.equal(net(images), wanted)
    if use in SAME_WITH_A_MASK:
        assert same(found, expected)


SAME_WITH_A_MASK = {
    "record", "attach_forward", "attach_forward_pre", "attach_global", "edit", "watch_overwrites", "hook_cost",
}  # fmt: skip
"""What does not speak of parameters, or of their gradients, which belong to ``weight_orig``."""
