from __future__ import annotations

import pytest
import timm
import torch
import torchvision
from torch import nn

from hookviz.errors import ModelError
from hookviz.models.checkpoints import fit_head
from hookviz.models.checkpoints.heads import head_names
from hookviz.models.initialization import skipped_initialization

HEADS = {
    "alexnet": ("classifier.6",),
    "convnext_tiny": ("classifier.2",),
    "densenet121": ("classifier",),
    "efficientnet_b0": ("classifier.1",),
    "googlenet": ("fc", "aux1.fc2", "aux2.fc2"),
    "inception_v3": ("fc", "AuxLogits.fc"),
    "maxvit_t": ("classifier.5",),
    "mnasnet0_5": ("classifier.1",),
    "mobilenet_v2": ("classifier.1",),
    "mobilenet_v3_small": ("classifier.3",),
    "regnet_y_400mf": ("fc",),
    "resnet18": ("fc",),
    "shufflenet_v2_x0_5": ("fc",),
    "squeezenet1_1": ("classifier.1",),
    "swin_t": ("head",),
    "vgg11": ("classifier.6",),
    "vit_b_32": ("heads.head",),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_resized_to_what_the_constructor_would_have_built(name: str) -> None:
    options = {"init_weights": False} if name in {"googlenet", "inception_v3"} else {}
    with skipped_initialization():
        network = torchvision.models.get_model(name, weights=None, **options)
        built = torchvision.models.get_model(name, weights=None, num_classes=7, **options)
    assert head_names(network) == HEADS[name]
    assert fit_head(network, 7) is network
    expected = {key: value.shape for key, value in built.state_dict().items()}
    assert {key: value.shape for key, value in network.state_dict().items()} == expected
    assert str(network.get_submodule(HEADS[name][0])) == str(built.get_submodule(HEADS[name][0]))


@pytest.mark.parametrize(
    "name", ["resnet10t", "test_vit", "deit_tiny_distilled_patch16_224", "levit_128s", "test_nfnet"]
)
def test_a_head_of_timm_is_resized_to_what_timm_would_have_built(name: str) -> None:
    with skipped_initialization():
        network, built = timm.create_model(name), timm.create_model(name, num_classes=7)
    fit_head(network, 7)
    expected = {key: value.shape for key, value in built.state_dict().items()}
    assert {key: value.shape for key, value in network.state_dict().items()} == expected
    assert network.num_classes == 7


def test_what_belongs_to_the_head_stays_and_random_states_too() -> None:
    head = nn.Linear(4, 5, dtype=torch.float64)
    head.weight.requires_grad = False
    head.register_forward_hook(lambda *_: None)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), head).eval()
    before = torch.random.get_rng_state()
    fit_head(network, 2)
    assert network[1] is head
    assert (head.weight.dtype, head.weight.requires_grad, head.bias.requires_grad) == (torch.float64, False, True)
    assert (len(head._forward_hooks), head.training, head.out_features) == (1, False, 2)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_new_values_are_the_same_every_time() -> None:
    first, second = (fit_head(nn.Sequential(nn.Linear(4, 5)), 3).state_dict()["0.weight"] for _ in range(2))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = nn.Linear(4, 3).weight
    assert torch.equal(first, expected)
    assert torch.equal(second, expected)


@pytest.mark.parametrize(("network", "classes"), [(nn.ReLU(), 3), (nn.Conv2d(3, 4, 3), 3), (nn.Linear(2, 2), 0)])
def test_what_has_no_head_is_one_sentence(network: nn.Module, classes: int) -> None:
    with pytest.raises(ModelError, match=rf"^No head with {classes} classes can be had here; .*\.$"):
        fit_head(network, classes)
