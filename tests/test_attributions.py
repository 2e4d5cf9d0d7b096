from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models

from hookviz.attributions import CaptumMissingError, input_attribution, layer_attribution
from hookviz.errors import GradientError, HookvizError, LayoutError, UnknownLayerError
from tests.hooks.networks import NETWORKS, network
from tests.nets import Returning, fingerprint, same


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def picture(size: int = 64) -> Tensor:
    return torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(1))


def value_and_gradient(net: nn.Module, layer: str, x: Tensor, target: int, call: int = -1) -> tuple[Tensor, Tensor]:
    """Torch alone: the layer's output, from a copy of which the rest of the network goes on, and its gradient."""
    twin, kept = copy.deepcopy(net).eval(), []

    def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        kept.append(output.clone())
        kept[-1].requires_grad_() if not kept[-1].requires_grad else None
        return kept[-1].clone()

    twin.get_submodule(layer).register_forward_hook(hook)
    (gradient,) = torch.autograd.grad(twin(x)[0, target], kept[call])
    return kept[call].detach()[0], gradient[0]


def grad_cam(value: Tensor, gradient: Tensor) -> Tensor:
    """Equations 1 and 2 of https://arxiv.org/abs/1610.02391, in float64."""
    weights = gradient.double().mean((1, 2))
    return F.relu(torch.einsum("c,chw->hw", weights, value.double()))


def close(found: Any, expected: Tensor) -> None:
    assert found.shape == tuple(expected.shape)
    assert found.dtype == np.float32
    assert float(expected.abs().max()) > 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * float(expected.abs().max()))


LAYERS = {
    "simple_cnn": "conv2",
    "resnet18": "layer1.0.bn2",  # += and a ReLU in place write over it
    "mobilenet_v2": "features.4.conv.0.1",  # so does a ReLU6
    "densenet121": "features.denseblock2",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_grad_cam_is_that_of_torch_alone_and_leaves_the_network_as_it_was(name: str) -> None:
    """C07: operations in place follow on the layer; C22: nothing of captum stays."""
    net, image = network(name), picture(32)
    before, state = fingerprint(net), torch.get_rng_state()
    target = int(net(image).argmax())
    found = layer_attribution(net, (image,), LAYERS[name], target)
    close(found, grad_cam(*value_and_gradient(net, LAYERS[name], image, target)))
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), state)
    assert not image.requires_grad


def test_the_most_probable_class_is_meant_where_none_is_named() -> None:
    net, image = network("simple_cnn"), picture(32)
    best = int(net(image).argmax())
    assert (
        layer_attribution(net, (image,), "conv1").tolist() == layer_attribution(net, (image,), "conv1", best).tolist()
    )
    assert input_attribution(net, (image,)).tolist() == input_attribution(net, (image,), best).tolist()


def test_tokens_are_maps_without_the_class_token() -> None:
    net = models.vision_transformer.VisionTransformer(32, 8, 3, 2, 24, 48, num_classes=7).eval()
    nn.init.normal_(net.heads.head.weight)
    layer = "encoder.layers.encoder_layer_1.ln_1"
    value, gradient = value_and_gradient(net, layer, picture(32), 2)
    maps, slopes = (one[1:].T.reshape(24, 4, 4) for one in (value, gradient))
    close(layer_attribution(net, (picture(32),), layer, 2), grad_cam(maps, slopes))


def test_channels_may_come_last() -> None:
    net = models.swin_transformer.SwinTransformer([4, 4], 8, [2], [2], [4, 4], num_classes=5).eval()
    nn.init.normal_(net.head.weight)
    value, gradient = value_and_gradient(net, "features.1.0", picture(32), 2)
    close(
        layer_attribution(net, (picture(32),), "features.1.0", 2),
        grad_cam(value.permute(2, 0, 1), gradient.permute(2, 0, 1)),
    )


def test_a_call_of_a_layer_that_runs_twice_can_be_chosen() -> None:
    net, image = network("resnet18"), picture(32)
    for call, meant in ((0, 0), (1, 1), (None, 1)):
        found = layer_attribution(net, (image,), "layer2.0.relu", 3, call=call)
        close(found, grad_cam(*value_and_gradient(net, "layer2.0.relu", image, 3, meant)))
    with pytest.raises(HookvizError, match=r"ran 2 times; choose call= from 0 to 1"):
        layer_attribution(net, (image,), "layer2.0.relu", 3, call=2)


def test_gradient_times_activation_keeps_its_signs() -> None:
    net, image = network("resnet18"), picture(32)
    value, gradient = value_and_gradient(net, "layer1.0.bn2", image, 3)
    found = layer_attribution(net, (image,), "layer1.0.bn2", 3, "GradientXActivation")
    close(found, (value.double() * gradient.double()).sum(0))
    assert found.min() < 0 < found.max()


@pytest.mark.parametrize("method", ["IntegratedGradients", "Conductance"])
def test_what_is_integrated_along_the_way_adds_up_to_what_the_logit_gained(method: Any) -> None:
    """Completeness, https://arxiv.org/abs/1703.01365: over a whole layer, the logit minus that of an input of zeros."""
    net, image = network("simple_cnn"), picture(32)
    gained = (net(image)[0, 3] - net(image * 0)[0, 3]).item()
    found = layer_attribution(net, (image,), "conv2", 3, method)
    assert found.shape == (16, 16)
    assert float(found.astype(np.float64).sum()) == pytest.approx(gained, rel=0.02)


def test_attributions_of_the_input_are_those_of_torch_alone() -> None:
    net, image = network("resnet18"), picture()
    own = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(net(own)[0, 3], own)
    before = fingerprint(net)
    close(input_attribution(net, (image,), 3), gradient[0].abs())
    close(input_attribution(net, (image,), 3, "InputXGradient"), (gradient * image)[0])
    gained = (net(image)[0, 3] - net(image * 0)[0, 3]).item()
    integrated = input_attribution(net, (image,), 3, "IntegratedGradients")
    assert integrated.shape == (3, 64, 64)
    assert float(integrated.astype(np.float64).sum()) == pytest.approx(gained, rel=0.05)
    assert same(fingerprint(net), before)


class Weighted(nn.Module):
    """A picture by keyword, beside a tensor that does not grow with a batch of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, factor: Tensor, *, image: Tensor) -> dict[str, Tensor]:
        return {"logits": self.head(self.conv(image).mean((2, 3)) * factor)}


def test_the_picture_may_stand_beside_other_arguments() -> None:
    net, image, factor = Weighted(), picture(8), torch.tensor([[2.0, 3.0, 4.0, 5.0]])
    own = image.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(net(factor, image=own)["logits"][0, 1], own)
    close(input_attribution(net, (factor,), 1, "InputXGradient", kwargs={"image": image}), (gradient * image)[0])
    # Linear: integrated gradients are the input times the gradient.
    close(input_attribution(net, (factor,), 1, "IntegratedGradients", kwargs={"image": image}), (gradient * image)[0])


def test_works_where_gradients_are_off_and_everything_is_frozen() -> None:
    net, image = network("resnet18"), picture(32)
    expected = layer_attribution(net, (image,), "layer2", 3).tolist()
    net.requires_grad_(False)
    with torch.inference_mode():
        assert layer_attribution(net, (image,), "layer2", 3).tolist() == expected
    with torch.no_grad():
        assert layer_attribution(net, (image,), "layer2", 3).tolist() == expected


def test_without_captum_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum", None)
    monkeypatch.delitem(sys.modules, "captum.attr", raising=False)
    with pytest.raises(CaptumMissingError) as missing:
        layer_attribution(network("simple_cnn"), (picture(32),), "conv1", 3)
    assert str(missing.value) == 'attributions need captum: pip install "hookviz[attributions]".'
    with pytest.raises(CaptumMissingError):
        input_attribution(network("simple_cnn"), (picture(32),), 3)


def test_what_cannot_be_attributed_is_said_in_a_sentence() -> None:
    net, image = network("simple_cnn"), picture(32)
    with pytest.raises(HookvizError, match="no method 'Guess'; choose from GradCAM, GradientXActivation"):
        layer_attribution(net, (image,), "conv1", 3, "Guess")  # type: ignore[arg-type]
    with pytest.raises(HookvizError, match="no method 'GradCAM'; choose from Saliency"):
        input_attribution(net, (image,), 3, "GradCAM")  # type: ignore[arg-type]
    with pytest.raises(LayoutError, match="layer 'fc1' returns no maps of height and width"):
        layer_attribution(net, (image,), "fc1", 3)
    with pytest.raises(UnknownLayerError, match="no layer 'conv9'"):
        layer_attribution(net, (image,), "conv9", 3)
    with pytest.raises(HookvizError, match="no class 10 among 10"):
        layer_attribution(net, (image,), "conv1", 10)
    with pytest.raises(HookvizError, match="none of the arguments is a picture"):
        input_attribution(nn.Linear(2, 2), (torch.ones(1, 2),), 0)
    detached = nn.Sequential(nn.Conv2d(3, 2, 3), Returning(lambda maps: maps.detach().mean((2, 3))))
    with pytest.raises(GradientError, match="torch has no gradient of class 0 to attribute"):
        layer_attribution(detached, (image,), "0", 0)
    unused = Returning(lambda x: x.mean((2, 3)))
    unused.add_module("aside", nn.Conv2d(3, 2, 1))
    with pytest.raises(UnknownLayerError, match="layer 'aside' did not run"):
        layer_attribution(unused, (image,), "aside", 0)
