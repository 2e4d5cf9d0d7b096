from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image
from torch import nn
from torchvision.models import ResNet18_Weights, ResNet50_Weights

from hookviz.errors import ModelError, UnknownModelError
from hookviz.models import list_models, list_weights, load_model

CLASSIFIERS = sorted(torchvision.models.list_models(module=torchvision.models))
FAMILIES = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "efficientnet_b0",
    "googlenet",
    "inception_v3",
    "maxvit_t",
    "mnasnet0_5",
    "mobilenet_v3_small",
    "regnet_y_400mf",
    "resnet18",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "swin_v2_t",
    "vgg11",
    "vit_b_32",
]


def as_torchvision_builds_with_weights(name: str) -> nn.Module:
    """Seeded by hand; the options are read off the builders: what they set when they get weights."""
    special: dict[str, dict[str, object]] = {
        "googlenet": {"aux_logits": False, "transform_input": True, "init_weights": True},
        "inception_v3": {"aux_logits": True, "transform_input": True, "init_weights": True},
        "vit_h_14": {"image_size": 518},
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module: nn.Module = torchvision.models.get_model(name, weights=None, **special.get(name, {}))
    return module


def assert_equal_values(module: nn.Module, expected: nn.Module) -> None:
    found, wanted = module.state_dict(), expected.state_dict()
    assert list(found) == list(wanted)
    assert [key for key in wanted if not torch.equal(found[key], wanted[key])] == []


def assert_loads_untrained(name: str) -> None:
    model = load_model(name, weights=None, device="cpu")
    assert (model.weights, model.trained) == ("untrained", False)
    assert [one for one in model.module.modules() if one.training] == []
    assert_equal_values(model.module, as_torchvision_builds_with_weights(name))
    entry = torchvision.models.get_model_weights(name).DEFAULT
    assert model.categories == tuple(entry.meta["categories"])
    image = Image.new("RGB", (40, 30), (200, 100, 50))
    prepared = model.prepare(image)
    assert torch.equal(prepared, entry.transforms()(image).unsqueeze(0))
    with torch.no_grad():
        assert model.module(prepared).shape == (1, 1000)


def test_lists_bundled_models_first_then_those_of_torchvision() -> None:
    names = list_models()
    bundled_and_torchvision = ["efficientnet_lite0", "simple_cnn", *torchvision.models.list_models()]
    assert names[: names.index("timm/aimv2_1b_patch14_224")] == bundled_and_torchvision
    assert len(bundled_and_torchvision) == 123


def test_listing_imports_no_thousand_architectures_and_leaves_torch_classes_alone() -> None:
    """C78: torch.classes is as it was, and timm is imported only when its model is asked for."""
    script = (
        "import sys, torch; before = dict(vars(torch.classes)); import hookviz.models as m; m.list_models();"
        "m.load_model('simple_cnn'); assert dict(vars(torch.classes)) == before; print('timm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet18", ("IMAGENET1K_V1", "untrained")),
        ("resnet50", ("IMAGENET1K_V2", "IMAGENET1K_V1", "untrained")),
        (
            "regnet_y_16gf",
            ("IMAGENET1K_V2", "IMAGENET1K_V1", "IMAGENET1K_SWAG_E2E_V1", "IMAGENET1K_SWAG_LINEAR_V1", "untrained"),
        ),
        ("vgg16", ("IMAGENET1K_V1", "IMAGENET1K_FEATURES", "untrained")),
        ("efficientnet_lite0", ("bundled", "untrained")),
        ("simple_cnn", ("bundled", "untrained")),
    ],
)
def test_lists_the_default_weights_first_and_untrained_last(name: str, expected: tuple[str, ...]) -> None:
    assert list_weights(name) == expected


def test_every_entry_of_torchvision_is_listed() -> None:
    for name in torchvision.models.list_models():
        entries = {entry.name for entry in torchvision.models.get_model_weights(name)}
        assert set(list_weights(name)) == entries | {"untrained"}
        assert list_weights(name)[0] == torchvision.models.get_model_weights(name).DEFAULT.name


@pytest.mark.parametrize("name", FAMILIES)
def test_untrained_network_is_the_seeded_one_of_torchvision_with_the_default_recipe(name: str) -> None:
    """C63 among them: GoogLeNet and Inception have the layers of the pretrained networks."""
    assert_loads_untrained(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_loads_untrained(name: str) -> None:
    assert_loads_untrained(name)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "simple_cnn", "resnet18"])
def test_loading_touches_no_random_state(name: str) -> None:
    """C84: the caller's torch, numpy and Python generators are where they were, and one seed gives one network."""
    torch.manual_seed(5)
    before = torch.get_rng_state(), pickle.dumps(np.random.get_state()), random.getstate()  # noqa: NPY002 - the global one
    one, other = (load_model(name, weights=None, device="cpu") for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert pickle.dumps(np.random.get_state()) == before[1]  # noqa: NPY002 - the global one
    assert random.getstate() == before[2]
    assert_equal_values(one.module, other.module)


def test_untrained_values_are_the_same_in_another_process() -> None:
    script = (
        "import torch; torch.manual_seed(99); from hookviz.models import load_model;"
        "print(load_model('simple_cnn', weights=None).module.fc2.weight.sum().item())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    module = load_model("simple_cnn", weights=None, device="cpu").module
    assert float(done.stdout) == module.get_parameter("fc2.weight").sum().item()


def test_threads_that_load_while_others_draw_get_the_seeded_values() -> None:
    expected = as_torchvision_builds_with_weights("shufflenet_v2_x0_5")

    def load(_: int) -> nn.Module:
        torch.rand(1000)
        return load_model("shufflenet_v2_x0_5", weights=None, device="cpu").module

    with ThreadPoolExecutor(8) as pool:
        for module in pool.map(load, range(24)):
            assert_equal_values(module, expected)


def test_defaults_set_by_the_caller_do_not_reach_the_network() -> None:
    """C37: parameters built in inference mode could never give gradients again."""
    expected = as_torchvision_builds_with_weights("squeezenet1_1")
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode(), torch.device("meta"):
            module = load_model("squeezenet1_1", weights=None, device="cpu").module
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert_equal_values(module, expected)
    assert [p for p in module.parameters() if p.is_inference() or not p.requires_grad] == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("resnet81", "There is no model 'resnet81'; did you mean 'resnet18' or 'resnet152' or 'resnet101'?"),
        ("ResNet50", "There is no model 'ResNet50'; did you mean 'resnet50'"),
        ("efficientnet_lite", "There is no model 'efficientnet_lite'; did you mean 'efficientnet_lite0'"),
        ("zzz", "There is no model 'zzz'; list_models() has all names."),
    ],
)
def test_unknown_model_is_one_sentence_with_the_nearest_names(name: str, sentence: str) -> None:
    with pytest.raises(UnknownModelError, match="^" + re.escape(sentence)):
        load_model(name)
    with pytest.raises(KeyError):
        list_weights(name)


@pytest.mark.parametrize("weights", ["IMAGENET1K_V9", ResNet18_Weights.IMAGENET1K_V1, "ResNet18_Weights.IMAGENET1K_V1"])
def test_unknown_weights_are_one_sentence_with_the_valid_ones(weights: object) -> None:
    with pytest.raises(ModelError, match=r"choose one of IMAGENET1K_V2, IMAGENET1K_V1, untrained\.$"):
        load_model("resnet50", weights)


@pytest.mark.parametrize("weights", [None, "untrained", "UNTRAINED"])
def test_untrained_is_asked_for_by_none_or_by_name(weights: str | None) -> None:
    model = load_model("simple_cnn", weights, "cpu")
    assert (model.weights, model.trained) == ("untrained", False)
    assert model.source == "hookviz simple_cnn, MIT, untrained"


def test_googlenet_and_inception_have_the_layers_of_the_pretrained_networks() -> None:
    """C63: the pretrained GoogLeNet loses its auxiliary heads, Inception keeps its own, both rescale their input."""
    google = load_model("googlenet", None, "cpu").module
    inception = load_model("inception_v3", None, "cpu").module
    assert [name for name, _ in google.named_modules() if "aux" in name] == []
    assert [name for name, _ in inception.named_modules() if name.startswith("AuxLogits")][:2] == [
        "AuxLogits",
        "AuxLogits.conv0",
    ]
    assert all(vars(network)["transform_input"] is True for network in (google, inception))


def test_default_is_imagenet_v2_for_resnet50() -> None:
    assert ResNet50_Weights.DEFAULT.name == list_weights("resnet50")[0]
