from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hookviz import cli
from hookviz.cli import layers, models
from hookviz.cli.console import Console
from hookviz.cli.run import command_parser
from tests.cli.shell import ROOT, python_m_hookviz, started

COMMANDS = ["models", "layers", "grid", "stats", "predict", "check", "app"]


def ended(words: list[str]) -> Any:
    """The exit code of words that argparse answers itself."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    return stopped.value.code


def understood(line: str) -> str:
    """The command of a line as typed into a shell; it is parsed, and not run."""
    words = shlex.split((line.partition("| ")[2] or line).partition(" > ")[0])
    assert words.pop(0) == "hookviz"
    ours = words[: words.index("--")] if "--" in words else words
    return str(command_parser().parse_args(ours).command)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--"], "hookviz: the following arguments are required: COMMAND; see hookviz --help.\n"),
        (["layers"], "hookviz: the following arguments are required: MODEL; see hookviz layers --help.\n"),
        (
            ["grid", "simple_cnn", "digit_3"],
            "hookviz: the following arguments are required: --layers, -o/--output; see hookviz grid --help.\n",
        ),
        (
            ["app", "--port", "0"],
            "hookviz: argument --port: a port is a number from 1 to 65535, not '0'; see hookviz app --help.\n",
        ),
        (
            ["app", "--port", "65536"],
            "hookviz: argument --port: a port is a number from 1 to 65535, not '65536'; see hookviz app --help.\n",
        ),
        (
            ["predict", "simple_cnn", "digit_3", "-k", "0"],
            "hookviz: argument -k: a whole number from 1 is needed, not '0'; see hookviz predict --help.\n",
        ),
        (["app", "--colour"], "hookviz: unrecognized arguments: --colour; see hookviz --help.\n"),
        (["models", "--js"], "hookviz: unrecognized arguments: --js; see hookviz --help.\n"),
        (
            ["layers", "simple_cnn", "--", "--server.port", "1"],
            "hookviz: only hookviz app takes options after --, not hookviz layers; see hookviz --help.\n",
        ),
    ],
)
def test_wrong_words_are_one_sentence_on_stderr_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(words) == 2
    assert capsys.readouterr() == ("", sentence)


def test_hookviz_alone_prints_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 0
    alone = capsys.readouterr()
    assert ended(["--help"]) == 0
    assert capsys.readouterr() == alone
    assert alone.err == ""
    assert all(f"\n    {command} " in alone.out for command in COMMANDS)
    assert "exit codes: 0 done, 1 nothing found, 2 an error or a misuse, 130 interrupted" in alone.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_examples_that_are_right_words(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each is parsed; none is run."""
    assert ended([command, "--help"]) == 0
    _, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    lines = examples.strip().splitlines()
    assert len(lines) >= 3
    assert [understood(line) for line in lines] == [command] * len(lines)


def test_the_readme_s_commands_are_right_words() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## On the command line")[2].partition("\n## ")[0]
    assert sorted({understood(line) for line in section.split("```")[1].strip().splitlines()}) == sorted(COMMANDS)


def test_the_version_is_that_of_the_source_tree(capsys: pytest.CaptureFixture[str]) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert ended(["--version"]) == 0
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
        done = python_m_hookviz("layers", "simple_cnn", stdout=pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's own")
def test_results_that_do_not_fit_on_the_disk_are_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = python_m_hookviz("models", "simple", stdout=full)
    assert done.returncode == 2
    assert done.stderr == "hookviz: the results could not be written: No space left on device.\n"


def test_results_go_nowhere_but_to_stdout_when_stderr_is_closed() -> None:
    """Python prints to stdout where stderr is None."""
    command = f"{sys.executable} -m hookviz models 'nothing like it' 2>&-"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)  # noqa: S602 - only a shell closes a stream
    assert (done.returncode, done.stdout) == (1, "")


def test_an_interruption_ends_quietly_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "list_models", interrupted)
    assert cli.main(["models"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_real_interrupt_ends_quietly_with_130(tmp_path: Path) -> None:
    """The command waits for an image on stdin when the signal comes."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "hookviz", "predict", "simple_cnn", "-", "--progress"]
    with (
        os.fdopen(writing, "wb"),
        started(command, cwd=ROOT, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        os.close(reading)
        assert process.stderr is not None
        assert process.stderr.readline() == "hookviz: reading - …\n".encode()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (130, b"", b"")


def test_a_traceback_is_there_for_the_asking(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layers", "simple_cn", "--traceback"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "hookviz: There is no model 'simple_cn'; did you mean 'simple_cnn'?"


def test_a_mistake_of_our_own_is_no_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python ends with 1 after a traceback, which here would mean that nothing was found."""
    monkeypatch.setattr(layers, "table_lines", None)
    assert cli.main(["layers", "simple_cnn"]) == 2
    assert "TypeError: 'NoneType' object is not callable" in capsys.readouterr().err


def test_what_networks_print_is_no_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def talkative() -> list[str]:
        print("loading the catalogue")  # noqa: T201 - the case
        return ["simple_cnn"]

    monkeypatch.setattr(models, "list_models", talkative)
    assert cli.main(["models"]) == 0
    assert capsys.readouterr() == ("simple_cnn\n", "loading the catalogue\n")


def test_letters_that_the_terminal_lacks_become_question_marks() -> None:
    done = python_m_hookviz("layers", "simple_cnn", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "1 ? 16 ? 32 ? 32" in done.stdout


class TestConsole:
    def test_progress_is_shown_on_request_and_on_terminals(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Console().progress("loading resnet18")
        assert capsys.readouterr() == ("", "")
        Console(progress=True).progress("loading resnet18")
        assert capsys.readouterr() == ("", "hookviz: loading resnet18 …\n")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        Console().progress("loading resnet18")
        assert capsys.readouterr() == ("", "hookviz: loading resnet18 …\n")
        Console(quiet=True).progress("loading resnet18")
        assert capsys.readouterr() == ("", "")

    def test_a_download_is_told_in_tenths_where_lines_stay(self, capsys: pytest.CaptureFixture[str]) -> None:
        tell = Console(progress=True).download("resnet18")
        for done in range(101):
            tell(done * 2**19, 100 * 2**19)
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 11
        assert lines[0] == "hookviz: downloading the weights of resnet18: 0 of 50 MB"
        assert lines[-1] == "hookviz: downloading the weights of resnet18: 50 of 50 MB"

    def test_a_download_has_one_line_on_a_terminal(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        tell = Console().download("net")
        for done in (0, 2**20, 2**21):
            tell(done, 2**21)
        start = "hookviz: downloading the weights of net: "
        assert capsys.readouterr().err == f"{start}0 of 2 MB\r{start}1 of 2 MB\r{start}2 of 2 MB\n"

    def test_a_download_of_unknown_length_is_told_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        tell = Console(progress=True).download("net")
        for done in (0, 2**20, 11 * 2**20):
            tell(done, 0)
        start = "hookviz: downloading the weights of net: "
        assert capsys.readouterr().err == f"{start}0 MB\n{start}11 MB\n"

    def test_numbers_that_are_none_become_null(self, capsys: pytest.CaptureFixture[str]) -> None:
        Console().json({"a": [float("nan"), 1.5, (float("inf"), 2)], "b": -float("inf")})
        assert "".join(capsys.readouterr().out.split()) == '{"a":[null,1.5,[null,2]],"b":null}'

    def test_quiet_keeps_errors(self, capsys: pytest.CaptureFixture[str]) -> None:
        console = Console(quiet=True)
        console.note("a note")
        console.error("two\nlines")
        assert capsys.readouterr().err == "hookviz: two lines.\n"
