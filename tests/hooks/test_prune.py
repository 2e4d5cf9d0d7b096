from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torchvision import models

import hookviz
from hookviz.hooks import list_layers, private_copy, record
from hookviz.hooks.prune import pruning_report
from tests.nets import AliasNet, fingerprint, same


def ramp() -> nn.Linear:
    """Weights 1 to 8, so that what pruning by size takes is known."""
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(1.0, 9.0).view(2, 4))
        layer.bias.fill_(1.0)
    return layer


def test_half_then_half_again_then_made_permanent() -> None:
    """C50: 50, 75 and 75 %, a mask twice and then baked in."""
    layer = ramp()
    seen = []
    acts: list[Any] = [prune.l1_unstructured, prune.l1_unstructured, prune.remove]
    for act in acts:
        act(layer, "weight", *[0.5] * (act is not prune.remove))
        row = pruning_report(layer)["weight"]
        seen.append((row.sparsity, row.state))
    assert seen == [(0.5, "mask"), (0.75, "mask"), (0.75, "baked in")]


def test_each_element_is_counted_once() -> None:
    """C50: weight, weight_orig and weight_mask are one parameter of eight elements."""
    layer = ramp()
    prune.l1_unstructured(layer, "weight", 0.5)
    report = pruning_report(layer)
    assert [(one.name, one.count, one.zeros) for one in report.parameters] == [("bias", 2, 0), ("weight", 8, 4)]
    assert (report.count, report.zeros, report.sparsity) == (10, 4, 0.4)


def test_norms_before_masked_and_effective() -> None:
    layer = ramp()
    prune.l1_unstructured(layer, "weight", 0.5)
    with torch.no_grad():
        layer.weight_orig.mul_(2)  # type: ignore[operator]  # what an optimizer's step does between two forwards
    row = pruning_report(layer)["weight"]
    assert row.norm_before == 2 * math.sqrt(sum(n * n for n in range(1, 9)))
    assert row.norm_masked == 2 * math.sqrt(sum(n * n for n in range(5, 9)))
    assert row.norm_effective == math.sqrt(sum(n * n for n in range(5, 9)))
    layer(torch.ones(1, 4))
    assert pruning_report(layer)["weight"].norm_effective == row.norm_masked


def test_structured_channels_gone() -> None:
    conv = nn.Conv2d(3, 4, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.arange(1.0, 49.0).view(4, 3, 2, 2))
    prune.ln_structured(conv, "weight", amount=2, n=2, dim=0)
    row = pruning_report(conv)["weight"]
    assert (row.outputs_gone, row.inputs_gone, row.sparsity) == ((0, 1), (), 0.5)
    prune.remove(conv, "weight")
    assert pruning_report(conv)["weight"].outputs_gone == (0, 1)


def test_a_transposed_convolution_has_its_outputs_second() -> None:
    conv = nn.ConvTranspose2d(3, 2, 1)
    mask = torch.ones(3, 2, 1, 1)
    mask[:, 1] = 0
    prune.custom_from_mask(conv, "weight", mask)
    row = pruning_report(conv)["weight"]
    assert (row.outputs_gone, row.inputs_gone) == ((1,), ())


def test_a_bias_initialized_with_zeros_loses_no_channel() -> None:
    layer = ramp()
    nn.init.zeros_(layer.bias)
    row = pruning_report(layer)["bias"]
    assert (row.state, row.sparsity, row.outputs_gone) == ("baked in", 1.0, ())


def test_a_shared_layer_is_listed_once() -> None:
    net = AliasNet()
    assert [one.name for one in pruning_report(net).parameters] == ["encoder.0.weight", "encoder.0.bias"]


def test_masks_of_attention_that_are_never_applied_show_in_the_norms() -> None:
    """C50: attention uses out_proj.weight without calling out_proj, so its mask stays as it was applied."""
    attention = nn.MultiheadAttention(4, 1)
    prune.l1_unstructured(attention.out_proj, "weight", 0.5)
    with torch.no_grad():
        attention.out_proj.weight_orig.mul_(2)  # type: ignore[operator]
    attention(*[torch.ones(1, 1, 4)] * 3)
    row = pruning_report(attention)["out_proj.weight"]
    assert row.norm_effective == pytest.approx(row.norm_masked / 2, rel=1e-7)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "mobilenet_v2"])
def test_global_pruning_agrees_with_numpy_and_the_network_stays(name: str) -> None:
    net = models.get_model(name, weights=None)
    convolutions = [(one, "weight") for one in net.modules() if isinstance(one, nn.Conv2d)]
    prune.global_unstructured(convolutions, pruning_method=prune.RandomUnstructured, amount=0.3)
    before = fingerprint(net)
    report = pruning_report(net)
    assert same(before, fingerprint(net))
    masked = [one for one in report.parameters if one.state == "mask"]
    masks = [mask.numpy() for key, mask in net.state_dict().items() if key.endswith("_mask")]
    assert sum(one.zeros for one in masked) == sum(int(np.count_nonzero(mask == 0)) for mask in masks)
    assert report.count == sum(parameter.numel() for parameter in net.parameters())


def test_pruning_hooks_survive_looking() -> None:
    """C50, C51: a mask is part of the model; recording, listing and copying leave it on."""
    net = hookviz.load_model("simple_cnn").module
    conv: Any = net.get_submodule("conv1")
    prune.l1_unstructured(conv, "weight", 0.5)
    before = fingerprint(net)
    x = torch.zeros(1, 3, 32, 32)
    with record(net) as rec:
        net(x)
    list_layers(net, x)
    assert prune.is_pruned(private_copy(net))
    assert same(before, fingerprint(net))
    assert prune.is_pruned(net)
    expected = torch.nn.functional.conv2d(x, conv.weight_orig * conv.weight_mask, conv.bias, padding=1)
    assert torch.equal(rec["conv1"].output, expected.detach())
