"""A person's own networks: found by a target, described by their factory, and loaded as any other."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import nn
from torchvision.transforms import v2

from hookviz import ImageError, ModelError, list_layers, list_models, list_weights, load_model, load_sample
from hookviz.models import own
from tests.models import own_networks

NETS = "tests.models.own_networks"


@pytest.fixture(autouse=True)
def nothing_offered_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "_offered", {})


@pytest.fixture
def photo() -> Image.Image:
    return load_sample("grace_hopper")


def test_bare_module_takes_a_picture_cut_to_its_middle_and_normalised_as_for_imagenet(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:three_classes")
    fitted = np.asarray(ImageOps.fit(photo, (224, 224), Image.Resampling.BILINEAR), np.float32) / 255
    expected = (fitted - np.array([0.485, 0.456, 0.406])) / np.array([0.229, 0.224, 0.225])
    assert np.allclose(model.prepare(photo)[0].permute(1, 2, 0).numpy(), expected, atol=1e-6)
    assert not model.module.training
    assert (model.weights, model.trained) == ("as built", True)
    assert "normalised as for ImageNet" in model.input_note(photo)
    assert np.abs(np.asarray(model.view(photo), int) - (fitted * 255).round()).max() <= 1


def test_classes_without_names_are_numbered_by_the_output(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:three_classes")
    with torch.no_grad():
        logits = own_networks.three_classes_by_hand(model.module, model.prepare(photo))
    expected = sorted(enumerate(logits.softmax(1)[0].tolist()), key=lambda pair: -pair[1])
    found = model.predict(photo)
    assert [(one.label, pytest.approx(one.probability)) for one in found] == [
        (f"class {index}", share) for index, share in expected
    ]


def test_network_says_how_it_is_fed_and_what_its_classes_are_called(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:described")
    scaled = v2.functional.to_dtype(v2.functional.pil_to_tensor(photo.resize((16, 16))), torch.float32, scale=True)
    assert torch.equal(model.prepare(photo), (scaled[None] - 0.5) / 0.25)
    assert model.normalization == ((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    assert {one.label for one in model.predict(photo)} == {"cat", "dog", "bird"}
    assert model.input_note(photo) == ""


def test_size_and_channels_follow_the_example(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:grey_digits")
    prepared = model.prepare(photo)
    expected = np.asarray(ImageOps.fit(photo, (20, 28), Image.Resampling.BILINEAR).convert("L"), np.float32) / 255
    assert prepared.shape == (1, 1, 28, 20)
    assert np.array_equal(prepared[0, 0].numpy(), expected)
    assert model.module(*model.inputs(photo)).shape == (1, 3)


def test_picture_takes_its_place_among_several_arguments(photo: Image.Image) -> None:
    """C83: a dictionary is one argument, a list stays one, and what is no picture stays as the example has it."""
    model = load_model(f"{NETS}:several_inputs")
    (batch, weights) = model.inputs(photo)
    assert list(batch) == ["mask", "image"]
    assert torch.equal(batch["mask"], torch.ones(4))
    assert torch.equal(batch["image"], model.prepare(photo))
    assert [one.item() for one in weights] == [2.0, 3.0]
    layers = {info.name: info for info in list_layers(model.module, *model.inputs(photo))}
    assert layers["conv"].output_shapes == ((1, 4, 12, 12),)


def test_network_without_pictures_is_fed_its_example(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:sequence")
    assert torch.equal(model.prepare(photo), own_networks.SEQUENCE)
    assert model.input_note(photo) == "This network takes no picture, so its example input is used."
    with pytest.raises(ModelError, match=r"gives a tensor of shape \(1, 5, 4\), which is no list of classes"):
        model.predict(photo)


def test_fine_tuned_timm_network_is_fed_as_timm_says(photo: Image.Image) -> None:
    import timm
    from timm.data import create_transform, resolve_data_config

    model = load_model(f"{NETS}:from_timm")
    config = resolve_data_config(pretrained_cfg=timm.create_model("resnet10t").pretrained_cfg)
    assert torch.equal(model.prepare(photo)[0], create_transform(**config)(photo))


def test_own_values_are_the_same_in_every_load_and_random_states_stay() -> None:
    state = torch.get_rng_state()
    first, second = (load_model(f"{NETS}:three_classes").module for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert first is not second
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)


def test_module_that_is_there_already_keeps_its_mode() -> None:
    model = load_model(f"{NETS}:READY")
    assert not model.module.training
    assert own_networks.READY.training
    assert model.module is not own_networks.READY


def test_checkpoint_fills_an_own_network(tmp_path: Path) -> None:
    torch.manual_seed(5)
    trained = own_networks.three_classes()
    torch.save({"model": trained.state_dict()}, tmp_path / "mine.pt")
    model = load_model(f"{NETS}:three_classes", tmp_path / "mine.pt", class_names=["a", "b", "c"])
    assert torch.equal(model.module.get_parameter("0.weight"), trained.get_parameter("0.weight"))
    assert model.weights == "mine.pt"
    assert {one.label for one in model.predict(load_sample("digit_3"))} == {"a", "b", "c"}


def test_own_networks_stand_behind_all_others_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKVIZ_MODEL", f"{NETS}:three_classes, small={NETS}:described")
    assert own.offer([f"{NETS}:grey_digits"]) == [f"{NETS}:grey_digits"]
    assert list_models()[-3:] == [f"{NETS}:three_classes", "small", f"{NETS}:grey_digits"]
    assert list_weights("small") == ("as built",)
    assert load_model("small").source == f"your own network, {NETS}:described"


def test_installed_packages_offer_networks_but_take_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"mine": f"{NETS}:described", "resnet18": f"{NETS}:described"}
    monkeypatch.setattr(
        own, "_installed", lambda: {name: EntryPoint(name, value, own.GROUP).value for name, value in points.items()}
    )
    assert list_models().count("resnet18") == 1
    assert list_models()[-1] == "mine"
    assert load_model("mine").categories == ("cat", "dog", "bird")
    assert len(load_model("resnet18", None, "cpu").categories) == 1000


def test_entry_points_are_read_from_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "digits-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: digits\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(f"[hookviz.models]\ndigits = {NETS}:described\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    own._installed.cache_clear()
    try:
        assert "digits" in list_models()
    finally:
        own._installed.cache_clear()


def test_file_is_a_place_too(tmp_path: Path) -> None:
    path = tmp_path / "last_night.py"
    path.write_text("from torch import nn\ndef make():\n    return nn.Sequential(nn.Conv2d(3, 2, 3))\n")
    assert load_model(f"{path}:make").module[0].out_channels == 2  # type: ignore[index]


def test_module_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nets_of_today.py").write_text("from torch import nn\ndef make():\n    return nn.Conv2d(3, 2, 3)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert type(load_model("nets_of_today:make").module) is nn.Conv2d


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("no_such_package.nets:make", "no_such_package.nets cannot be imported (ModuleNotFoundError: No module named"),
        ("no_such_file.py:make", "there is no file no_such_file.py"),
        (f"{NETS}:no_such_factory", f"{NETS} has no no_such_factory; name a function"),
        (f"{NETS}:SEQUENCE", "is a Tensor; name a function"),
        (f"{NETS}:fails", "fails failed with RuntimeError: the weights are elsewhere; the traceback"),
        (f"{NETS}:gives_a_list", "gives_a_list gives a list; let it return an nn.Module"),
        (f"{NETS}:", "names no network; write package.module:factory"),
        (":make", "names no network; write package.module:factory"),
        (f"{NETS}:five_channels", "takes 5 channels; give it a prepare"),
    ],
)
def test_what_is_no_network_is_said_in_one_sentence(target: str, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(target)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_no_factory_has_are_refused() -> None:
    with pytest.raises(ModelError, match="comes with the values that its factory gives it"):
        load_model(f"{NETS}:three_classes", weights=None)


def test_another_number_of_class_names_is_refused(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:three_classes", class_names=None)
    named = load_model(f"{NETS}:misnamed")
    assert len(model.predict(photo)) == 3
    with pytest.raises(ModelError, match="has 2 class names for 3 classes"):
        named.predict(photo)


def test_prepare_that_fails_or_gives_no_tensor_is_named(photo: Image.Image) -> None:
    with pytest.raises(ModelError, match="prepare failed with ZeroDivisionError"):
        load_model(f"{NETS}:prepare_fails").prepare(photo)
    with pytest.raises(ModelError, match="prepare gives list; let it return a tensor"):
        load_model(f"{NETS}:prepare_gives_a_list").prepare(photo)
    with pytest.raises(ImageError, match="Expected a PIL image"):
        load_model(f"{NETS}:three_classes").prepare("photo.jpg")  # type: ignore[arg-type]


def test_values_beyond_black_and_white_are_stretched_where_nothing_says_how_they_were_made(photo: Image.Image) -> None:
    model = load_model(f"{NETS}:prepare_of_unknown_scale")
    pixels = np.asarray(model.view(photo))
    assert (pixels.min(), pixels.max()) == (0, 255)
