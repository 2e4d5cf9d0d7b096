"""Weights of one's own, from the file to the picture: what fits, what does not, and what is refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import expect
from safetensors.torch import save
from torch import nn
from torchvision import models

from scripts import train_digits_resnet as digits
from tests.browser import expected
from tests.browser.visitor import Visitor

WEIGHTS, NAMES = "own-weights-of-resnet18", "class-names-of-resnet18"
CLASS_NAMES = tuple(digits.CLASS_NAMES)


def saved(value: object) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def ten_classes() -> nn.Module:
    return digits.untrained()


@pytest.fixture
def looking(visitor: Visitor) -> Visitor:
    visitor.open(model="resnet18", weights="untrained", layer="conv1")
    visitor.page.get_by_text("Your own weights").click()
    return visitor


def trained() -> nn.Module:
    inputs, targets = digits.digit_inputs()
    network = digits.untrained()
    digits.train(network, inputs[torch.arange(len(inputs)) % 5 > 0], targets[torch.arange(len(inputs)) % 5 > 0])
    return network


@pytest.mark.parametrize(
    "make", [pytest.param(ten_classes, id="untrained"), pytest.param(trained, id="trained", marks=pytest.mark.slow)]
)
def test_ten_digits_are_seen_by_their_names(looking: Visitor, make: Any) -> None:
    network = make().eval()
    looking.upload("digits_resnet18.pth", saved(network.state_dict()), to=WEIGHTS)
    assert all(name.startswith("class ") for name in looking.predictions())
    looking.upload("digits_classes.txt", "\n".join(CLASS_NAMES).encode(), to=NAMES)
    with torch.no_grad():
        batch = expected.network("resnet18").prepare(expected.hopper())
        order = network(batch)[0].argsort(descending=True, stable=True)
        first = network.get_submodule("conv1")(batch)
    assert looking.predictions() == [CLASS_NAMES[index] for index in order[:5]]
    assert looking.mosaic(0) == expected.picture(first)
    assert looking.sentences() == []
    expect(looking.page.get_by_text("the head fc gets 10 classes instead of 1000")).to_have_count(1)


@pytest.mark.parametrize("wrapping", ["DataParallel", "EMA", "compiled"])
def test_wrapped_checkpoints_show_what_they_hold(looking: Visitor, wrapping: str) -> None:
    torch.manual_seed(4)
    network = models.resnet18().eval()
    state = network.state_dict()
    content = {
        "DataParallel": {"state_dict": {f"module.{name}": value for name, value in state.items()}, "epoch": 3},
        "EMA": {"ema": state, "updates": 12},
        "compiled": {"model_state_dict": {f"_orig_mod.{name}": value for name, value in state.items()}},
    }[wrapping]
    looking.upload("checkpoint.pt", saved(content), to=WEIGHTS)
    assert looking.sentences() == []
    with torch.no_grad():
        value = network.conv1(expected.network("resnet18").prepare(expected.hopper()))
    assert looking.mosaic(0) == expected.picture(value)


class _Command:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


def bomb() -> bytes:
    """A checkpoint whose archive unpacks to 64 GB by its own word."""
    stream = io.BytesIO(saved({"w": torch.zeros(1000)}))
    packed = io.BytesIO()
    with zipfile.ZipFile(stream) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            content = source.read(entry)
            target.writestr(entry.filename, bytes(2**26) if entry.filename.endswith("data/0") else content)
    return packed.getvalue()


def test_files_that_cannot_be_used_give_one_sentence_each(looking: Visitor, tmp_path: Path) -> None:
    state = models.resnet18().state_dict()
    whole = saved(state)
    marker = tmp_path / "ran"
    wrong = {name: value for name, value in state.items() if not name.startswith("layer1.0.conv1")}
    wrong["layer1.0.conv1.weight"] = torch.zeros(64, 32, 3, 3)
    files = {
        "malicious.pt": (pickle.dumps({"state_dict": _Command(marker)}), "mkdir"),
        "bomb.pt": (bomb(), "compress"),
        "truncated.pth": (whole[: len(whole) // 2], "damaged"),
        "wrong.safetensors": (
            save({name: value.contiguous() for name, value in wrong.items()}),
            "layer1.0.conv1.weight",
        ),
        "other.pt": (saved(models.squeezenet1_1().state_dict()), "another network"),
        "text.pt": (b"not a checkpoint at all", "checkpoint"),
    }
    said = {}
    for name, (content, word) in files.items():
        looking.upload(name, content, to=WEIGHTS)
        (said[name],) = looking.sentences()
        assert word in said[name], said
        assert looking.titles() == []
    assert len(set(said.values())) == len(files)
    assert not marker.exists()
    looking.upload("good.pt", whole, to=WEIGHTS)
    assert looking.sentences() == []


def test_names_that_differ_are_listed(looking: Visitor) -> None:
    state = {name: value for name, value in models.resnet18().state_dict().items() if name != "bn1.weight"}
    state["conv1.weight"] = torch.zeros(64, 3, 5, 5)
    looking.upload("mine.pt", saved(state), to=WEIGHTS)
    table = looking.page.get_by_test_id("stDataFrame")
    cells = [one.text_content() for one in table.locator("td[role=gridcell]").all()]
    assert cells == [
        "conv1.weight",
        "another shape",
        "64 × 3 × 7 × 7",
        "64 × 3 × 5 × 5",
        "bn1.weight",
        "missing",
        "yes",
        "no",
    ]
