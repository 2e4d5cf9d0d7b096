from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from hookviz import cli
from hookviz.errors import HookvizError
from hookviz.types import LayerInfo, TensorInfo

ROOT = Path(__file__).parent.parent


def python_m_hookviz(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookviz", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture
def streamlit_words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that streamlit was started with; it is not really started."""
    words: list[str] = []

    def run_module(name: str, **_: object) -> None:
        words.extend([name, *sys.argv])

    monkeypatch.setattr(sys, "argv", ["hookviz"])
    monkeypatch.setattr("runpy.run_module", run_module)
    return words


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
    shape = TensorInfo("", (1, 8), "float32")
    layers = [LayerInfo("", "Net", 0, 1234, 1, ((shape,),)), LayerInfo("a.long.name", "Linear", 3, 72, 12, ((shape,),))]
    assert cli.table_lines(layers) == [
        "name             class   output  parameters  calls",
        "(whole network)  Net     1 × 8        1,234      1",
        "a.long.name      Linear  1 × 8           72     12",
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
    line = cli.table_lines([LayerInfo("layer", "Class", 1, 0, calls, outputs)])[1]
    assert line.split() == f"layer Class {text} 0 {calls}".split()


def test_an_unknown_model_is_one_sentence_on_stderr_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layers", "simple_cn"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "hookviz: There is no model 'simple_cn'; did you mean 'simple_cnn'?\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "hookviz: the following arguments are required: COMMAND; see hookviz --help.\n"),
        (["layers"], "hookviz: the following arguments are required: MODEL; see hookviz layers --help.\n"),
        (
            ["app", "--port", "0"],
            "hookviz: argument --port: a port is a number from 1 to 65535, not '0'; see hookviz app --help.\n",
        ),
        (
            ["app", "--port", "65536"],
            "hookviz: argument --port: a port is a number from 1 to 65535, not '65536'; see hookviz app --help.\n",
        ),
        (["app", "--colour"], "hookviz: unrecognized arguments: --colour; see hookviz --help.\n"),
        (
            ["layers", "simple_cnn", "--", "--server.port", "1"],
            "hookviz: only hookviz app takes options after --, not hookviz layers; see hookviz --help.\n",
        ),
    ],
)
def test_wrong_words_are_one_sentence_on_stderr_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str], streamlit_words: list[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert capsys.readouterr().err == sentence
    assert streamlit_words == []


def test_app_runs_streamlit_on_the_start_file_with_the_settings(streamlit_words: list[str]) -> None:
    assert cli.main(["app"]) == 0
    assert streamlit_words == [
        *("streamlit", "streamlit", "run", str(ROOT / "hookviz" / "ui" / "start.py")),
        *cli.settings_flags(),
    ]


def test_port_and_streamlit_options_come_last_so_that_they_win(streamlit_words: list[str]) -> None:
    assert cli.main(["app", "--port", "8600", "--", "--server.headless", "true", "--", "more"]) == 0
    assert streamlit_words[-6:] == ["--server.port", "8600", "--server.headless", "true", "--", "more"]


def test_every_setting_of_the_file_is_passed_on() -> None:
    """Counted in the text of the file; a table in a table has a dotted name."""
    lines = (ROOT / ".streamlit" / "config.toml").read_text("utf-8").splitlines()
    flags = cli.settings_flags()
    assert len(flags) == 2 * sum("=" in line and not line.startswith("#") for line in lines)
    passed = dict(zip(flags[::2], flags[1::2], strict=True))
    assert passed["--server.fileWatcherType"] == "none"
    assert passed["--server.maxUploadSize"] == "50"
    assert passed["--browser.gatherUsageStats"] == "false"
    assert passed["--theme.dark.backgroundColor"] == "#0e1117"


def test_streamlit_takes_every_flag() -> None:
    """Streamlit ends with code 2 on an option that it does not know; after the flags, --help ends it with 0."""
    command = [sys.executable, "-m", "streamlit", "run", *cli.settings_flags(), "--help"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    command[-1:] = ["--theme.dark.noSuchOption", "1", "--help"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 2


def test_missing_settings_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, streamlit_words: list[str]) -> None:
    monkeypatch.setattr(cli, "_SETTINGS", (tmp_path / "config.toml",))
    with pytest.raises(HookvizError, match=r"config\.toml are missing; reinstall hookviz"):
        cli.settings_flags()
    assert cli.main(["app"]) == 2
    assert streamlit_words == []


def test_the_version_is_that_of_the_source_tree(capsys: pytest.CaptureFixture[str]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"hookviz {declared}\n"


def test_python_m_hookviz_is_the_command_line() -> None:
    wrong = python_m_hookviz("layers", "no such model")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("hookviz: There is no model 'no such model';")
    assert wrong.stderr.count("\n") == 1


def test_a_reader_who_stops_early_sees_no_traceback() -> None:
    """As in ``hookviz layers resnet18 | head -1``: the pipe is closed before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "hookviz", "layers", "simple_cnn"],
            cwd=ROOT,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (0, "")
