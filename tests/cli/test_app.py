from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hookviz import cli
from hookviz.cli import app
from hookviz.errors import HookvizError
from tests.cli.shell import ROOT


@pytest.fixture
def streamlit_words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words that streamlit was started with; it is not really started."""
    words: list[str] = []

    def run_module(name: str, **_: object) -> None:
        words.extend([name, *sys.argv])

    monkeypatch.setattr(sys, "argv", ["hookviz"])
    monkeypatch.setattr("runpy.run_module", run_module)
    return words


def test_app_runs_streamlit_on_the_start_file_with_the_settings(streamlit_words: list[str]) -> None:
    assert cli.main(["app"]) == 0
    assert streamlit_words == [
        *("streamlit", "streamlit", "run", str(ROOT / "hookviz" / "ui" / "start.py")),
        *app.settings_flags(),
    ]


def test_port_and_streamlit_options_come_last_so_that_they_win(streamlit_words: list[str]) -> None:
    assert cli.main(["app", "--port", "8600", "--", "--server.headless", "true", "--", "more"]) == 0
    assert streamlit_words[-6:] == ["--server.port", "8600", "--server.headless", "true", "--", "more"]


def test_models_of_ones_own_are_handed_to_the_page_behind_streamlits_options(streamlit_words: list[str]) -> None:
    assert cli.main(["app", "--model", "nets:small", "--model", "nets:big"]) == 0
    assert streamlit_words[-5:] == ["--", "--model", "nets:small", "--model", "nets:big"]
    streamlit_words.clear()
    assert cli.main(["app", "--model", "nets:small", "--", "--server.headless", "true", "--", "more"]) == 0
    assert streamlit_words[-6:] == ["--server.headless", "true", "--", "--model", "nets:small", "more"]


def test_hooks_of_ones_own_follow_the_models(streamlit_words: list[str]) -> None:
    assert cli.main(["app", "--hook", "hooks:look", "--model", "nets:small", "--hook", "hooks:halve"]) == 0
    assert streamlit_words[-7:] == ["--", "--model", "nets:small", "--hook", "hooks:look", "--hook", "hooks:halve"]


def test_folders_follow_as_whole_paths(streamlit_words: list[str], tmp_path: Path) -> None:
    assert cli.main(["app", "--folder", f"{tmp_path}/../{tmp_path.name}", "--hook", "hooks:look"]) == 0
    assert streamlit_words[-5:] == ["--", "--hook", "hooks:look", "--folder", str(tmp_path)]


def test_a_folder_that_is_not_there_is_said(streamlit_words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["app", "--folder", "no such folder"]) == 2
    assert capsys.readouterr().err == "hookviz: There is no folder 'no such folder'; check the path behind --folder.\n"
    assert streamlit_words == []


def test_every_setting_of_the_file_is_passed_on() -> None:
    """Counted in the text of the file; a table in a table has a dotted name."""
    lines = (ROOT / ".streamlit" / "config.toml").read_text("utf-8").splitlines()
    flags = app.settings_flags()
    assert len(flags) == 2 * sum("=" in line and not line.startswith("#") for line in lines)
    passed = dict(zip(flags[::2], flags[1::2], strict=True))
    assert passed["--server.fileWatcherType"] == "none"
    assert passed["--server.maxUploadSize"] == "50"
    assert passed["--browser.gatherUsageStats"] == "false"
    assert passed["--theme.dark.backgroundColor"] == "#0e1117"


def test_streamlit_takes_every_flag() -> None:
    """Streamlit ends with code 2 on an option that it does not know; after the flags, --help ends it with 0."""
    command = [sys.executable, "-m", "streamlit", "run", *app.settings_flags(), "--help"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 0
    command[-1:] = ["--theme.dark.noSuchOption", "1", "--help"]
    assert subprocess.run(command, capture_output=True, check=False, timeout=120).returncode == 2


def test_missing_settings_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, streamlit_words: list[str]) -> None:
    monkeypatch.setattr(app, "_SETTINGS", (tmp_path / "config.toml",))
    with pytest.raises(HookvizError, match=r"config\.toml are missing; reinstall hookviz"):
        app.settings_flags()
    assert cli.main(["app"]) == 2
    assert streamlit_words == []
