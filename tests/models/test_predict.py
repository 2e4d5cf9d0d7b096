from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from hookviz.bundled import bundled_file
from hookviz.errors import ModelError
from hookviz.models import Model, load_model
from hookviz.models.simple_cnn import RECIPE


class FixedLogits(nn.Module):
    """Whatever the image, these logits."""

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([logits]))

    def forward(self, images: Tensor) -> Tensor:
        return self.logits


class BatchNormDropoutNet(nn.Module):
    """In train mode it changes its buffers, draws random numbers, and says something else."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout()

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.drop(self.norm(self.conv(images))).mean(dim=(2, 3))
        return features


class Outputs(NamedTuple):
    aux: Tensor
    logits: Tensor


class AuxiliaryHeadNet(nn.Module):
    """The auxiliary output comes first, as nothing promises it does not."""

    def forward(self, images: Tensor) -> Outputs:
        return Outputs(aux=torch.tensor([[9.0, 0.0]]), logits=torch.tensor([[0.0, 9.0]]))


def model_of(module: nn.Module, *categories: str) -> Model:
    return Model("tiny", module.eval(), RECIPE, categories, "bundled", torch.device("cpu"), "made here")


@pytest.fixture
def image() -> Image.Image:
    return Image.effect_noise((50, 40), 60).convert("RGB")


def test_grace_hopper_wears_a_military_uniform() -> None:
    model = load_model("efficientnet_lite0", device="cpu")
    with Image.open(bundled_file("grace_hopper.jpg")) as hopper:
        predictions = model.predict(hopper)
    assert [(one.index, one.label) for one in predictions] == [
        (400, "academic gown"),
        (667, "mortarboard"),
        (652, "military uniform"),
        (887, "vestment"),
        (906, "Windsor tie"),
    ]
    assert [round(one.probability, 3) for one in predictions] == [0.242, 0.209, 0.181, 0.048, 0.043]
    assert (model.weights, model.trained, len(model.categories)) == ("bundled", True, 1000)


def test_probabilities_are_the_softmax_over_all_classes(image: Image.Image) -> None:
    model = load_model("resnet18", None, "cpu")
    with torch.no_grad():
        expected = torch.softmax(model.module(model.prepare(image)), dim=1)[0]
    predictions = model.predict(image, k=1000)
    assert {one.index: one.probability for one in predictions} == dict(enumerate(expected.tolist()))
    assert [one.probability for one in predictions] == sorted(expected.tolist(), reverse=True)
    assert model.predict(model.prepare(image), k=3) == predictions[:3] == model.predict(image, k=3)
    assert len(model.predict(image, k=5000)) == 1000


def test_equal_probabilities_are_ordered_by_index(image: Image.Image) -> None:
    model = model_of(FixedLogits(1.0, 2.0, 1.0, 2.0, 1.0), *"abcde")
    assert [one.label for one in model.predict(image)] == ["b", "d", "a", "c", "e"]


def test_masked_classes_have_probability_zero(image: Image.Image) -> None:
    model = model_of(FixedLogits(float("-inf"), 0.0, 0.0), *"abc")
    assert [(one.label, one.probability) for one in model.predict(image)] == [("b", 0.5), ("c", 0.5), ("a", 0.0)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_output_that_is_not_finite_is_one_sentence(bad: float, image: Image.Image) -> None:
    with pytest.raises(
        ModelError, match=r"^The output of tiny is not finite for this image, so its classes have no order"
    ):
        model_of(FixedLogits(1.0, bad), *"ab").predict(image)


def test_prediction_comes_from_the_field_called_logits(image: Image.Image) -> None:
    """C63: the order of auxiliary outputs does not matter."""
    assert model_of(AuxiliaryHeadNet(), "aux", "main").predict(image, k=1)[0].label == "main"


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_auxiliary_heads_in_train_mode_do_not_reach_the_prediction(name: str, image: Image.Image) -> None:
    """C63, C20: the same five, whatever mode the user left the network in, and that mode stays."""
    model = load_model(name, None, "cpu")
    before = model.predict(image)
    model.module.train()
    assert model.predict(image) == before
    assert [one for one in model.module.modules() if not one.training] == []


def test_predicting_leaves_the_network_as_it_was(image: Image.Image) -> None:
    """C20: flags per module, buffers, gradients, requires_grad; C84: the random state; C37: the grad mode."""
    module = BatchNormDropoutNet()
    model = model_of(module, *"abcd")
    expected = model.predict(image)
    module.train()
    module.drop.eval()
    module.conv.weight.requires_grad_(False)
    module.norm.weight.grad = gradient = torch.ones(4)
    state, random_state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    assert model.predict(image) == expected
    assert {name: one.training for name, one in module.named_modules()} == {
        "": True,
        "conv": True,
        "norm": True,
        "drop": False,
    }
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    assert module.norm.weight.grad is gradient
    assert not module.conv.weight.requires_grad
    assert torch.equal(torch.get_rng_state(), random_state)
    assert torch.is_grad_enabled()


def test_predicting_builds_no_graph(image: Image.Image) -> None:
    """C37: seen from inside the network, also when the caller has gradients enabled."""
    seen: list[bool] = []

    class Watcher(FixedLogits):
        def forward(self, images: Tensor) -> Tensor:
            seen.append((self.logits * images.sum()).requires_grad)
            return super().forward(images)

    model_of(Watcher(1.0, 2.0), *"ab").predict(image)
    assert seen == [False]


def test_a_failing_network_is_left_as_it_was(image: Image.Image) -> None:
    class Failing(BatchNormDropoutNet):
        def forward(self, images: Tensor) -> Tensor:
            super().forward(images)
            raise ZeroDivisionError

    module = Failing()
    model = model_of(module, *"ab")
    module.train()
    with pytest.raises(ZeroDivisionError):
        model.predict(image)
    assert [one for one in module.modules() if not one.training] == []
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("shape", [(3, 32, 32), (2, 3, 32, 32), (0, 3, 32, 32)])
def test_a_tensor_that_is_not_one_prepared_image_is_one_sentence(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"^A prepared input has shape \(1, 3, height, width\), not \("):
        load_model("simple_cnn", None, "cpu").predict(torch.zeros(shape))


def test_asking_for_no_prediction_is_one_sentence(image: Image.Image) -> None:
    with pytest.raises(ModelError, match=r"^Ask for at least one prediction, not 0\.$"):
        load_model("simple_cnn", None, "cpu").predict(image, k=0)


def test_weights_without_a_classifier_predict_nothing(image: Image.Image, torch_home: Path) -> None:
    """vgg16's IMAGENET1K_FEATURES are for its features only, which torchvision says by having no class names."""
    torch_home.mkdir(parents=True)
    state = load_model("vgg16", None, "cpu").module.state_dict()
    torch.save(
        {name: value.half() for name, value in state.items()}, torch_home / "vgg16_features-amdegroot-88682ab5.pth"
    )
    model = load_model("vgg16", "imagenet1k_features", "cpu")
    assert (model.categories, model.weights) == ((), "IMAGENET1K_FEATURES")
    assert model.normalization == ((0.48235, 0.45882, 0.40784), (1 / 255, 1 / 255, 1 / 255))
    with pytest.raises(ModelError, match=r"^The weights IMAGENET1K_FEATURES of vgg16 have no classifier"):
        model.predict(image)


def test_a_model_does_not_change() -> None:
    model = load_model("simple_cnn", None, "cpu")
    with pytest.raises(FrozenInstanceError):
        model.weights = "bundled"  # type: ignore[misc]  # that is what is tested
    assert replace(model, weights="bundled").trained
