"""A person's own weights through the catalogue: values, classes, and what is said of them."""

from __future__ import annotations

import io

import pytest
import torch
from torchvision import models

from hookviz import ModelError, load_model, load_sample


def checkpoint(classes: int) -> bytes:
    torch.manual_seed(3)
    file = io.BytesIO()
    torch.save({"state_dict": models.resnet18(num_classes=classes).state_dict(), "epoch": 7}, file)
    return file.getvalue()


def test_a_head_of_ten_classes_gets_ten_names() -> None:
    model = load_model("resnet18", checkpoint(10), "cpu")
    assert model.module.get_submodule("fc").get_parameter("weight").shape == (10, 512)
    assert model.categories == tuple(f"class {number}" for number in range(10))
    named = load_model("resnet18", io.BytesIO(checkpoint(10)), "cpu", class_names=list("abcdefghij"))
    assert {one.label for one in named.predict(load_sample("grace_hopper"), k=10)} == set("abcdefghij")
    assert named.report is not None
    assert named.report.num_classes == 10


def test_a_thousand_classes_keep_imagenets_names_and_the_files_values() -> None:
    model = load_model("resnet18", checkpoint(1000), "cpu")
    torch.manual_seed(3)
    expected = models.resnet18()
    assert torch.equal(model.module.get_parameter("conv1.weight"), expected.conv1.weight)
    assert model.categories[652] == "military uniform"
    assert (model.trained, model.weights) == (True, "own weights")


def test_another_number_of_names_is_refused() -> None:
    with pytest.raises(ModelError, match="3 class names for a network of 10 classes"):
        load_model("resnet18", checkpoint(10), "cpu", class_names=["a", "b", "c"])


def test_a_file_of_another_network_is_refused_with_a_verdict() -> None:
    with pytest.raises(ModelError, match=r"does not fit|another network"):
        load_model("vgg11", checkpoint(10), "cpu")
