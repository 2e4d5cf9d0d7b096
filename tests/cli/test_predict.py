from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookviz import cli
from hookviz.models import ClassMap, Detections, Flow, Model
from hookviz.samples import load_sample
from tests.cli.shell import python_m_hookviz
from tests.cli.truth import network

BOXES = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], np.float32)


def probabilities() -> list[tuple[int, float]]:
    """The softmax over simple_cnn's classes for the three, largest first, by torch alone."""
    model = network("simple_cnn")
    with torch.no_grad():
        values = torch.softmax(model.module(model.prepare(load_sample("digit_3"))), 1)[0]
    return sorted(enumerate(values.tolist()), key=lambda pair: -pair[1])


def said(monkeypatch: pytest.MonkeyPatch, result: Any) -> None:
    monkeypatch.setattr(Model, "predict", lambda *_, **__: result)


def test_classes_are_printed_most_probable_first() -> None:
    done = python_m_hookviz("predict", "simple_cnn", "digit_3", "-k", "3")
    expected = [f"{100 * share:5.1f} %  {index}" for index, share in probabilities()[:3]]
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, expected, "")


def test_json_says_whose_words_these_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", "simple_cnn", "digit_3", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    expected = [{"index": index, "label": str(index), "probability": share} for index, share in probabilities()[:5]]
    assert told == {
        "model": "simple_cnn",
        "weights": "bundled",
        "trained": True,
        "task": "classification",
        "predictions": expected,
    }


def test_class_names_are_the_reader_s(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    (tmp_path / "names.txt").write_text("\n".join(names))
    assert cli.main(["predict", "simple_cnn", "digit_3", "-k", "1", "--class-names", str(tmp_path / "names.txt")]) == 0
    assert capsys.readouterr().out == "100.0 %  three\n"


def test_untrained_network_is_said_to_mean_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["predict", "simple_cnn", "digit_3", "--weights", "untrained"]) == 0
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 5
    assert told.err == "hookviz: simple_cnn is untrained: what it says means nothing.\n"


def test_detector_gives_labels_and_scores(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = Detections(BOXES, np.array([1, 18]), ("person", "dog"), np.array([0.75, 0.25], np.float32))
    said(monkeypatch, found)
    assert cli.main(["predict", "simple_cnn", "digit_3"]) == 0
    assert capsys.readouterr().out == "0.75  person\n"
    assert cli.main(["predict", "simple_cnn", "digit_3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["predictions"] == [
        {"index": 1, "label": "person", "score": 0.75, "box": [1, 2, 3, 4]},
        {"index": 18, "label": "dog", "score": 0.25, "box": [5, 6, 7, 8]},
    ]
    said(monkeypatch, found.above(0.9))
    assert cli.main(["predict", "simple_cnn", "digit_3"]) == 0
    assert capsys.readouterr().out == "nothing with a score of 0.5 or more, among 0 guesses\n"


def test_segmentation_gives_shares_and_flow_lengths(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: one pixel in four, and steps of 3 right and 4 down, which are 5 long."""
    said(monkeypatch, ClassMap(np.array([[0, 0], [0, 1]]), ("background", "cat")))
    assert cli.main(["predict", "simple_cnn", "digit_3"]) == 0
    assert capsys.readouterr().out == " 75.0 %  background\n 25.0 %  cat\n"
    said(monkeypatch, Flow(np.array([[[3.0, 0.0]], [[4.0, 0.0]]], np.float32)))
    assert cli.main(["predict", "simple_cnn", "digit_3"]) == 0
    assert capsys.readouterr().out == "motion of 2.5 pixels on average, 5.0 at most\n"


def test_network_without_classes_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plain_nets.py").write_text("from torch import nn\ndef make(): return nn.Conv2d(3, 4, 3)\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["predict", "plain_nets:make", "sample:digit_3", "--quiet"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("hookviz: plain_nets:make gives a tensor of shape (1, 4, ")


def test_weights_that_cannot_be_had_are_one_sentence(
    torch_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("hookviz.models.download.urlopen", unreachable)
    assert cli.main(["predict", "resnet18", "digit_3"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("hookviz: ")
    assert "could not be downloaded" in told.err
    assert not list(torch_home.glob("*"))
