"""What a forward takes, against counting by hand and against real recordings."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode
from torchvision import models

from hookviz import estimate, load_model, load_sample, record
from hookviz.hooks.structure import leaves
from tests.nets import fingerprint, same


def test_teaching_net_by_hand() -> None:
    """Multiplications and additions as two: out pixels x out channels x in channels x 9, and in x out for a Linear."""
    model = load_model("simple_cnn")
    found = estimate(model.module, torch.zeros(1, 3, 32, 32))
    assert found.parameters == 268_650
    assert found.parameter_bytes == 4 * 268_650
    assert found.flops == 2 * (32 * 32 * 16 * 27 + 16 * 16 * 32 * 144 + 2048 * 128 + 128 * 10)
    assert found.kept_by(["conv1"]) == 4 * 16 * 32 * 32
    assert found.kept_by(["pool"]) == 4 * (16 * 16 * 16 + 32 * 8 * 8)
    assert found.kept_by(["relu", "flatten"]) == 4 * (16 * 32 * 32 + 2048)
    assert not found.ran


@pytest.mark.parametrize(
    "name", ["resnet18", "densenet121", "regnet_y_400mf", pytest.param("vit_b_16", marks=pytest.mark.slow), "swin_t"]
)
def test_bytes_are_those_a_recording_holds_and_operations_those_published(name: str) -> None:
    """torchvision states billions of multiply-adds; ViT's fused attention, which torch's counter leaves out, too."""
    model = load_model(name, None, "cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    found = estimate(model.module, batch)
    with torch.no_grad(), record(model.module) as rec:
        model.module(batch)
    held = {
        layer: sum(tensor.nbytes for call in calls for _, tensor in leaves(call.output, Tensor))
        for layer, calls in rec.items()
    }
    assert {layer: found.outputs[layer] for layer in held} == held
    published = models.get_model_weights(name).DEFAULT.meta
    assert found.flops is not None
    assert found.flops / 2e9 == pytest.approx(published["_ops"], rel=0.01)
    assert found.parameters == published["num_params"]
    assert not found.ran


def test_operations_are_those_of_torchs_own_counter() -> None:
    model = load_model("mobilenet_v3_small", None, "cpu")
    batch = model.prepare(load_sample("digit_3"))
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model.module(batch)
    assert estimate(model.module, batch).flops == counter.get_total_flops()


def test_integer_networks_have_no_floating_point_operations_to_count() -> None:
    model = load_model("quantized_mobilenet_v2", None, "cpu")
    assert estimate(model.module, *model.inputs(load_sample("digit_3"))).flops is None


def test_half_precision_takes_half() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3)).to(torch.bfloat16)
    found = estimate(net, torch.zeros(1, 3, 10, 10, dtype=torch.bfloat16))
    assert found.kept_by(["0"]) == 2 * 4 * 8 * 8
    assert found.parameter_bytes == 2 * found.parameters


def test_tied_weights_count_once() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    net[1].weight = net[0].weight
    assert estimate(net, torch.zeros(1, 4)).parameters == 16 + 4 + 4


class AsksForValues(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values * 2 if values.sum().item() > 0 else values


def test_network_that_looks_at_its_values_is_run_for_real_and_left_alone() -> None:
    net = nn.Sequential(nn.BatchNorm1d(3), AsksForValues(), nn.Dropout()).train()
    fired: list[str] = []
    net[0].register_forward_hook(lambda *_: fired.append("hook"))
    before, state = fingerprint(net), torch.get_rng_state()
    values = torch.arange(6.0).reshape(2, 3)
    found = estimate(net, values)
    assert found.ran
    assert found.kept_by(["1"]) == 24
    assert same(fingerprint(net), before)
    assert fired == []
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(values, torch.arange(6.0).reshape(2, 3))


def test_failing_forward_names_the_layer() -> None:
    with pytest.raises(RuntimeError) as caught:
        estimate(nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 4)), torch.zeros(1, 3))
    assert any("'1'" in note or "1" in note for note in caught.value.__notes__)
