from __future__ import annotations

import json
from fnmatch import fnmatchcase

import pytest

from hookviz import cli
from hookviz.models import list_models


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert cli.main(["models", *words]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out.splitlines()


def test_all_names_are_listed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys) == list_models()


@pytest.mark.parametrize("pattern", ["*resnet*", "timm/convnext*", "resnet1?", "vgg1[36]"])
def test_a_glob_stands_for_whole_names(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys, pattern) == [name for name in list_models() if fnmatchcase(name, pattern)] != []


@pytest.mark.parametrize("pattern", ["resnet18", "RESNET18", "timm/ResNet18"])
def test_anything_else_is_part_of_a_name_in_any_case(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(capsys, pattern) == [name for name in list_models() if pattern.lower() in name] != []


def test_json_is_a_list_of_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "simple*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ["simple_cnn"]


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("resnt18", "hookviz: no model matches 'resnt18'; did you mean 'resnet18' or"),
        ("*resnt18*", "hookviz: no model matches '*resnt18*'; did you mean 'resnet18' or"),
        ("quite unlike", "hookviz: no model matches 'quite unlike'; hookviz models lists them all.\n"),
    ],
)
def test_no_match_is_exit_code_1_with_near_names_on_stderr(
    pattern: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["models", pattern]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(sentence)
    assert told.err.count("\n") == 1


def test_no_match_is_an_empty_list_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models", "quite unlike", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == []
