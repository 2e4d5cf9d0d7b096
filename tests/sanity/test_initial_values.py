from __future__ import annotations

import pytest
import torch
from torch import nn

from hookviz import Thresholds, load_model
from hookviz.sanity.initial_values import initial_distribution

USUAL = Thresholds()


def seeded(make: object, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()  # type: ignore[no-any-return,operator]


@pytest.mark.parametrize("seed", range(4))  # one in a thousand may be missed
@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.Conv2d(16, 32, 3),
        lambda: nn.Conv2d(64, 64, 3, groups=64),
        lambda: nn.Linear(512, 10),
        lambda: nn.Linear(2048, 128),
        lambda: nn.ConvTranspose2d(16, 8, 3),
    ],
)
def test_a_layer_as_torch_builds_it_is_found(make: object, seed: int) -> None:
    layer = seeded(make, seed)
    assert initial_distribution(layer, None, USUAL) == "uniform, 1/√fan-in (torch's default)"


def test_an_architecture_s_own_distribution_is_found_through_its_twin() -> None:
    """torchvision's resnet has He's normal distribution by fan-out, not torch's default."""
    layer = seeded(lambda: nn.Conv2d(64, 64, 3, bias=False), 1)
    twin = seeded(lambda: nn.Conv2d(64, 64, 3, bias=False), 2)
    for number, one in enumerate((layer, twin)):
        with torch.random.fork_rng():
            torch.manual_seed(number)
            nn.init.kaiming_normal_(one.weight, mode="fan_out", nonlinearity="relu")  # type: ignore[arg-type]
    assert initial_distribution(layer, twin, USUAL) == "normal, √(2/fan-out) (He)"
    assert initial_distribution(layer, None, USUAL) == ""


def test_a_few_steps_of_training_show() -> None:
    """The distribution hardly changes, but gradients of low rank stand out of what was drawn one by one."""
    layer = seeded(lambda: nn.Linear(256, 64))
    assert initial_distribution(layer, None, USUAL)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        weight = layer.weight
        assert isinstance(weight, nn.Parameter)
        weight.data += 0.009 * torch.outer(torch.randn(64), torch.randn(256))
        weight.data.clamp_(-1 / 16, 1 / 16)
    assert initial_distribution(layer, None, USUAL) == ""


@pytest.mark.parametrize("name", ["efficientnet_lite0", "simple_cnn"])
def test_no_trained_layer_is_called_initial(name: str) -> None:
    untrained = dict(load_model(name, None, "cpu").module.named_modules())
    for layer, module in load_model(name, device="cpu").module.named_modules():
        assert initial_distribution(module, untrained[layer], USUAL) == "", layer


def test_norms_as_they_are_built_are_found_and_trained_ones_not() -> None:
    norm = nn.BatchNorm2d(8)
    assert initial_distribution(norm, None, USUAL) == "mean 0, variance 1, scale 1, shift 0"
    norm.running_mean.data[3] = 0.01  # type: ignore[union-attr]
    assert initial_distribution(norm, None, USUAL) == ""
    assert initial_distribution(nn.LayerNorm(8), None, USUAL) == "scale 1, shift 0"
    assert initial_distribution(nn.LayerNorm(8, elementwise_affine=False), None, USUAL) == ""


def test_few_equal_or_broken_values_say_nothing() -> None:
    assert initial_distribution(nn.Linear(5, 5), None, USUAL) == ""
    layer = nn.Linear(64, 64)
    layer.weight.data.fill_(0.1)
    assert initial_distribution(layer, None, USUAL) == ""
    layer.weight.data.fill_(float("nan"))
    assert initial_distribution(layer, None, USUAL) == ""
    assert initial_distribution(nn.ReLU(), None, USUAL) == ""
