"""The promise on real networks: every layer and call of torchvision's classifiers."""

from __future__ import annotations

import pytest
import torch
from torchvision import models

from hookviz.hooks import record
from tests.nets import clones_at_hook_time, fingerprint, same

FAMILIES = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "efficientnet_v2_s",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_0",
    "swin_v2_t",
    "vit_b_32",
]
ALL = models.list_models(module=models)
SIZES = {"inception_v3": 96, "vit_h_14": 224}


def is_recorded_exactly(name: str) -> None:
    torch.manual_seed(0)
    options = {"init_weights": False} if name in {"googlenet", "inception_v3"} else {}
    net = models.get_model(name, weights=None, **options).eval()
    size = SIZES.get(name, 224 if name.startswith(("vit", "maxvit")) else 96)
    x = torch.randn(1, 3, size, size)
    before = fingerprint(net)
    with torch.no_grad():
        plain = net(x)
        _, expected = clones_at_hook_time(net, x)
        with record(net) as rec:
            out = net(x)
    assert torch.equal(out, plain)
    assert list(rec) == list(expected)
    wrong = [layer for layer in expected if not same([call.output for call in rec[layer]], expected[layer])]
    assert wrong == []
    assert same(fingerprint(net), before)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_and_call_of_sixteen_families(name: str) -> None:
    is_recorded_exactly(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_every_layer_and_call_of_all_classifiers(name: str) -> None:
    is_recorded_exactly(name)


def test_there_are_eighty_classifiers() -> None:
    assert len(ALL) == 80
    assert set(FAMILIES) <= set(ALL)
