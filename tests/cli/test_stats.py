from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from hookviz import cli
from hookviz.cli import measures
from tests.cli.shell import python_m_hookviz
from tests.cli.truth import network, returned


def rows_of(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert cli.main(["stats", *words, "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    return rows


def assert_as_numpy(row: dict[str, Any], tensor: torch.Tensor) -> None:
    """Whole numbers exactly; sums in float64 may be added up in another order."""
    values = tensor.double().numpy()
    assert row["shape"] == list(values.shape)
    assert row["count"] == values.size
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-12, abs=1e-15)
    assert row["std"] == pytest.approx(values.std(), rel=1e-12)
    assert (row["min"], row["max"]) == (values.min(), values.max())
    assert row["zeros"] == np.count_nonzero(values == 0)
    assert row["sparsity"] == np.count_nonzero(values == 0) / values.size
    assert (row["nan"], row["posinf"], row["neginf"]) == (0, 0, 0)


def test_every_layer_and_call_is_as_numpy_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    """C80: resnet18, whose ReLU writes in place over what was returned before, and runs twice in each block."""
    seen = returned("resnet18", "grace_hopper", None)
    rows = rows_of(capsys, "resnet18", "grace_hopper", "--weights", "untrained", "--device", "cpu")
    assert [(row["layer"], row["call"]) for row in rows] == [
        (name, number)
        for name, _ in network("resnet18", None).module.named_modules()
        for number in range(1, len(seen[name]) + 1)
    ]
    for row in rows:
        tensor = seen[row["layer"]][row["call"] - 1]
        assert_as_numpy(row, tensor)
        maps = tensor[0].flatten(1).numpy() if tensor.ndim == 4 and tensor[0, 0].numel() > 1 else None
        assert row["channels"] == tensor.shape[1]
        constant = None if maps is None else int((maps == maps[:, :1]).all(1).sum())
        assert row["constant_channels"] == constant
        assert row["dead_channels"] == (None if maps is None else int((maps == 0).all(1).sum()))


def test_chosen_layers_and_operations_come_in_the_order_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_of(capsys, "simple_cnn", "digit_3", "--layers", "relu", "conv2", "conv*")
    assert [(row["layer"], row["class"]) for row in rows] == [
        ("relu", "relu"),
        ("conv2", "Conv2d"),
        ("conv1", "Conv2d"),
    ]
    assert_as_numpy(rows[0], nn.functional.relu(returned("simple_cnn", "digit_3")["conv1"][0]))
    assert rows[0]["channels"] == 16
    assert rows[0]["dead_channels"] == 0


def test_values_that_are_not_finite_are_counted_and_null(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: the layers make NaN of everything, then 1/0, then two parts, of which one is empty."""
    (tmp_path / "broken_nets.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "class Nan(nn.Module):\n"
        "    def forward(self, x): return x * float('nan')\n"
        "class Infinite(nn.Module):\n"
        "    def forward(self, x): return torch.tensor([[1.0, -1, 0, 3]]) / torch.tensor([[0.0, 0, 2, 2]])\n"
        "class Parts(nn.Module):\n"
        "    def forward(self, x): return {'a': x.sum(), 'b': (x[:0], None)}\n"
        "def make():\n"
        "    return nn.Sequential(Nan(), Infinite(), Parts())\n"
    )
    monkeypatch.chdir(tmp_path)
    rows = rows_of(capsys, "broken_nets:make", "sample:digit_3", "--layers", "0", "1", "2", "--quiet")
    nan, infinite, *parts = rows
    assert nan["nan"] == nan["count"] > 0
    assert [nan[name] for name in ("mean", "std", "min", "max")] == [None] * 4
    assert [infinite[name] for name in ("count", "nan", "posinf", "neginf", "zeros")] == [4, 0, 1, 1, 1]
    assert [infinite[name] for name in ("mean", "std", "min", "max")] == [0.75, 0.75, 0.0, 1.5]
    assert [(row["part"], row["count"], row["sparsity"]) for row in parts] == [("a", 1, 0.0), ("b.0", 0, None)]


def test_a_smooth_activation_has_no_dead_channels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "smooth_nets.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.GELU(), nn.ReLU())\n"
    )
    monkeypatch.chdir(tmp_path)
    gelu, relu = rows_of(capsys, "smooth_nets:make", "digit_3", "--layers", "1", "2")
    assert (gelu["dead_channels"], relu["dead_channels"]) == (None, 0)


def test_csv_has_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    expected = rows_of(capsys, "simple_cnn", "digit_3")
    assert cli.main(["stats", "simple_cnn", "digit_3", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(expected) == 7
    for row, same in zip(rows, expected, strict=True):
        assert row.pop("shape") == "x".join(map(str, same.pop("shape")))
        assert row == {name: "" if value is None else str(value) for name, value in same.items()}


def test_the_table_has_a_line_for_each_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["stats", "simple_cnn", "digit_3", "--layers", "pool", "fc2"]) == 0
    heading, first, second, last = (" ".join(line.split()) for line in capsys.readouterr().out.splitlines())
    one, two = returned("simple_cnn", "digit_3")["pool"]
    assert heading == "layer class call output mean sd min max zeros NaN Inf constant dead"
    assert first.startswith("pool MaxPool2d 1 1 × 16 × 16 × 16 ")
    assert first.endswith(f" 0 0 0/16 {int((one[0].flatten(1) == 0).all(1).sum())}/16")
    assert second.startswith("pool MaxPool2d 2 1 × 32 × 8 × 8 ")
    assert second.endswith(f" 0 0 0/32 {int((two[0].flatten(1) == 0).all(1).sum())}/32")
    assert last.endswith(" 0 0 – –")


def test_outputs_are_not_held(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is kept while the network runs holds no tensor and no array as large as an output."""
    kept: list[Any] = []
    read = measures._read

    def noted(*given: Any) -> Any:
        kept.append(read(*given))
        return kept[-1]

    monkeypatch.setattr(measures, "_read", noted)
    assert rows_of(capsys, "simple_cnn", "digit_3")
    assert len(kept) == 7
    for one in kept:
        arrays = [getattr(one.statistics, name) for name in ("mean", "std", "min", "max", "zeros", "nan")]
        assert sum(array.size for array in arrays) == 6 * len(one.statistics.mean)
        assert len(one.summary.histogram.counts) == 1


def test_the_random_state_is_left_as_it_was_found() -> None:
    before = torch.get_rng_state()
    assert cli.main(["stats", "simple_cnn", "digit_3", "--quiet"]) == 0
    assert torch.equal(torch.get_rng_state(), before)


def test_json_and_csv_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["stats", "simple_cnn", "digit_3", "--json", "--csv"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "hookviz: argument --csv: not allowed with argument --json; see hookviz stats --help.\n"
    )


def test_a_shell_gets_results_on_stdout_alone() -> None:
    done = python_m_hookviz("stats", "simple_cnn", "digit_3", "--layers", "fc2", "--json", "--progress")
    assert done.returncode == 0
    assert [row["layer"] for row in json.loads(done.stdout)] == ["fc2"]
    assert done.stderr.splitlines() == [
        "hookviz: reading digit_3 …",
        "hookviz: loading simple_cnn …",
        "hookviz: running simple_cnn …",
    ]
