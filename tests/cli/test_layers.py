from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from torch import nn

from hookviz import cli
from hookviz.cli.layers import cells
from hookviz.cli.table import table_lines
from hookviz.types import LayerInfo, TensorInfo
from tests.cli.truth import network, returned


def test_layers_are_listed_with_class_outputs_parameters_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: a convolution has out x in x 9 + out parameters, and the one pool runs after both convolutions."""
    assert cli.main(["layers", "simple_cnn"]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        "name class output parameters calls",
        "(whole network) SimpleCNN 1 × 10 268,650 1",
        "conv1 Conv2d 1 × 16 × 32 × 32 448 1",
        "pool MaxPool2d 1 × 16 × 16 × 16 | 1 × 32 × 8 × 8 0 2",
        "conv2 Conv2d 1 × 32 × 16 × 16 4,640 1",
        "fc1 Linear 1 × 128 262,272 1",
        "fc2 Linear 1 × 10 1,290 1",
    ]


def test_columns_line_up() -> None:
    rows = [["(whole network)", "1 × 8", "1,234"], ["a.long.name", "1 × 8", "72"]]
    assert table_lines(["name", "output", "parameters"], rows, numbers={"parameters"}) == [
        "name             output  parameters",
        "(whole network)  1 × 8        1,234",
        "a.long.name      1 × 8           72",
    ]


@pytest.mark.parametrize(
    ("calls", "outputs", "text"),
    [
        (0, (), "not called"),
        (1, ((),), "no tensor"),
        (1, ((TensorInfo("", (), "float32"),),), "scalar"),
        (2, ((TensorInfo("", (1, 4), "float32"),),) * 2, "1 × 4"),
    ],
)
def test_what_a_layer_returned_is_said_once(calls: int, outputs: tuple[tuple[TensorInfo, ...], ...], text: str) -> None:
    assert cells(LayerInfo("layer", "Class", 1, 0, calls, outputs)) == ("layer", "Class", text, "0", str(calls))


def test_an_unknown_model_is_one_sentence_on_stderr_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layers", "simple_cn"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "hookviz: There is no model 'simple_cn'; did you mean 'simple_cnn'?\n"


def test_operations_come_on_request_behind_their_module(capsys: pytest.CaptureFixture[str]) -> None:
    """simple_cnn's forward has three F.relu and a flatten, which belong to no module but the network."""
    assert cli.main(["layers", "simple_cnn", "--operations"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert names == ["conv1", "pool", "conv2", "fc1", "fc2", "relu", "relu_1", "flatten", "relu_2"]


def test_json_has_every_call_with_what_it_returned(capsys: pytest.CaptureFixture[str]) -> None:
    """Names, classes and parameters from torch; shapes from its own hooks."""
    assert cli.main(["layers", "simple_cnn", "--json", "--operations"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    listed = {layer["name"]: layer for layer in json.loads(told.out)}
    module, seen = network("simple_cnn").module, returned("simple_cnn", "grace_hopper")
    for name, layer in module.named_modules():
        row = listed.pop(name)
        assert (row["class"], row["is_operation"]) == (type(layer).__name__, False)
        assert row["parameters"] == sum(parameter.numel() for parameter in layer.parameters())
        assert row["depth"] == (1 if name else 0)
        assert row["calls"] == len(seen[name])
        assert row["outputs"] == [[{"path": "", "shape": list(one.shape), "dtype": "float32"}] for one in seen[name]]
        maps = {"name": "NCHW", "grid": None, "known": True, "note": ""}
        assert row["layouts"] == [maps | {"name": "NCHW" if one.ndim == 4 else "NC"} for one in seen[name]]
    assert [row["class"] for row in listed.values()] == ["relu", "relu", "flatten", "relu"]
    assert all(row["is_operation"] and row["parameters"] == 0 for row in listed.values())


def test_shapes_are_those_of_the_image_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network takes the picture as it is, and a 3×3 convolution takes a pixel off each side."""
    (tmp_path / "any_size.py").write_text(
        "from hookviz import Network\n"
        "from torch import nn\n"
        "from torchvision.transforms.functional import to_tensor\n"
        "def make():\n"
        "    return Network(nn.Sequential(nn.Conv2d(3, 4, 3)), prepare=to_tensor)\n"
    )
    Image.new("RGB", (20, 10)).save(tmp_path / "small.png")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["layers", "any_size:make", "--image", "small.png", "--json"]) == 0
    (_, convolution) = json.loads(capsys.readouterr().out)
    assert convolution["outputs"] == [[{"path": "", "shape": [1, 4, 8, 18], "dtype": "float32"}]]


def test_a_network_of_ones_own_is_listed_with_the_values_it_was_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small_nets.py").write_text(
        "from torch import nn\n\ndef make():\n    print('making')\n    return nn.Sequential(nn.Conv2d(3, 4, 3))\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.main(["layers", "small_nets:make", "--json", "--quiet"]) == 0
    told = capsys.readouterr()
    assert [layer["class"] for layer in json.loads(told.out)] == ["Sequential", "Conv2d"]
    assert "making" in told.err


def test_a_forward_that_fails_names_the_layer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ValueError("the stripes are too thin")

    monkeypatch.setattr(nn.MaxPool2d, "forward", fails)
    assert cli.main(["layers", "simple_cnn"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        "hookviz: simple_cnn cannot run on this image: layer 'pool' (MaxPool2d) failed on an input of shape "
        "(1, 16, 32, 32): ValueError: the stripes are too thin.\n"
    )
