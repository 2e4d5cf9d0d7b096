from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from hookviz.errors import ModelError
from hookviz.models import load_model
from hookviz.models.simple_cnn import SimpleCNN


@pytest.fixture
def state() -> dict[str, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return dict(SimpleCNN().state_dict())


WRAPPINGS: list[tuple[str, Callable[[dict[str, Tensor]], Any]]] = [
    ("plain.pth", lambda state: state),
    ("wrapped.pt", lambda state: {"state_dict": state, "epoch": 3}),
    ("wrapped2.PTH", lambda state: {"model": state}),
    ("parallel.pth", lambda state: {"state_dict": {f"module.{name}": value for name, value in state.items()}}),
]


@pytest.mark.parametrize(("file_name", "wrap"), WRAPPINGS, ids=[name for name, _ in WRAPPINGS])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_checkpoint_fills_the_network(
    file_name: str, wrap: Callable[[dict[str, Tensor]], Any], kind: type, state: dict[str, Tensor], tmp_path: Path
) -> None:
    torch.save(wrap(state), tmp_path / file_name)
    model = load_model("simple_cnn", kind(tmp_path / file_name), "cpu")
    assert all(torch.equal(value, state[name]) for name, value in model.module.state_dict().items())
    assert (model.weights, model.trained, model.categories[3]) == (file_name, True, "3")
    assert model.source == f"hookviz simple_cnn, MIT, values of {file_name}"


@pytest.mark.parametrize("name", ["mnasnet0_5", "simple_cnn"])
def test_a_safetensors_checkpoint_fills_the_network(name: str, tmp_path: Path) -> None:
    """MNASNet refuses a state dict without its layers' versions, which safetensors does not keep."""
    expected = load_model(name, None, "cpu").module.state_dict()
    save_file(expected, tmp_path / "own.safetensors")
    loaded = load_model(name, tmp_path / "own.safetensors", "cpu").module.state_dict()
    assert all(torch.equal(value, expected[key]) for key, value in loaded.items())


def refuse(path: Path, sentence: str) -> None:
    with pytest.raises(ModelError, match=f"^{sentence}$"):
        load_model("simple_cnn", path)


def test_differences_are_counted_and_the_first_named(state: dict[str, Tensor], tmp_path: Path) -> None:
    state["fc2.weight"] = torch.zeros(7, 128)
    for name in ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"):
        state[f"features.{name}"] = state.pop(name)
    torch.save(state, tmp_path / "other.pth")
    refuse(
        tmp_path / "other.pth",
        re.escape(
            "The checkpoint other.pth does not fit: 4 missing (conv1.weight, conv1.bias, conv2.weight, ...); "
            "4 unexpected (features.conv1.weight, features.conv1.bias, features.conv2.weight, ...); "
            "1 of another shape (fc2.weight is (7, 128) instead of (10, 128))."
        ),
    )


class RunsCode:
    """What a hostile file would hold: unpickling it calls a function."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return (Path.write_text, (Path("ran"), "code"))  # type: ignore[return-value]  # never called


def test_a_file_that_could_run_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"model": RunsCode()}, tmp_path / "hostile.pth")
    refuse(
        tmp_path / "hostile.pth",
        r"The checkpoint hostile\.pth holds more than tensors, .*; save model\.state_dict\(\) instead\.",
    )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("file_name", ["broken.pth", "broken.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 50], ids=["empty", "zeros"])
def test_a_damaged_file_is_one_sentence(file_name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / file_name).write_bytes(content)
    refuse(tmp_path / file_name, rf"The checkpoint {file_name} (could not be read|holds more than tensors).*\.")


@pytest.mark.parametrize("file_name", ["absent.pth", "absent.safetensors"])
def test_a_file_that_is_not_there_is_one_sentence(file_name: str, tmp_path: Path) -> None:
    refuse(tmp_path / file_name, re.escape(f"There is no checkpoint {str(tmp_path / file_name)!r}."))


@pytest.mark.parametrize("stored", [torch.zeros(3), {"epoch": 3}, [1, 2]], ids=["tensor", "numbers", "list"])
def test_a_file_of_something_else_is_one_sentence(stored: object, tmp_path: Path) -> None:
    torch.save(stored, tmp_path / "else.pth")
    refuse(tmp_path / "else.pth", r"The checkpoint else\.pth is not a state dict; save model\.state_dict\(\)\.")
