"""A check that is interrupted, killed and taken up again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hookviz import cli
from hookviz.cli.patient_interrupt import PatientInterrupt
from hookviz.sanity import inspection
from tests.cli.checked import strict, write_digits, write_nets
from tests.cli.shell import ROOT, started

IMAGES = 40
COMMAND = ("check", "nets.py:slow", "digits", "--against", "none", "--json", "-")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with images, a slow network and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    write_nets(tmp_path)
    return tmp_path


def write_images(folder: Path, count: int) -> None:
    """Digits, and a file among them that is none."""
    write_digits(folder / "digits", count - 1)
    (folder / "digits" / "003b.png").write_bytes(b"")


def start(*more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "hookviz", *COMMAND, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(*more: str) -> tuple[Any, str]:
    """What a command that runs through prints, and what it says on stderr; one file could not be read."""
    process = start(*more)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 4, error
    return strict(out), error


def kept(folder: Path) -> list[Path]:
    return list((folder / "cache" / "hookviz" / "checks").glob("*.npz"))


def resumed_after(said: str) -> int:
    found = re.fullmatch(rf"hookviz: going on after (\d+) of {IMAGES} images\.\n", said)
    assert found, said
    return int(found[1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a check says that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    write_nets(folder)
    write_images(folder, IMAGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.chdir(folder)
        printed, said = finish()
    assert (said, kept(folder)) == ("", [])
    assert len(printed["images"]) == IMAGES - 1
    return printed


def test_a_check_that_was_killed_goes_on_where_it_was_and_ends_the_same(folder: Path, whole: Any) -> None:
    """kill -9, as by a machine that is short of memory; the second kill comes while the first one is made good."""
    write_images(folder, IMAGES)
    (folder / "be slow").touch()
    for _ in range(2):
        before = [path.stat().st_mtime_ns for path in kept(folder)]
        process = start()
        try:
            deadline = time.monotonic() + 60
            while [path.stat().st_mtime_ns for path in kept(folder)] == before and time.monotonic() < deadline:
                assert process.poll() is None, "it ended before it could be killed"
                time.sleep(0.01)
        finally:
            process.send_signal(signal.SIGKILL)
            out, _ = process.communicate()
        assert (process.returncode, out) == (-signal.SIGKILL, "")
        assert len(kept(folder)) == 1
    (folder / "be slow").unlink()
    again, said = finish()
    assert 2 <= resumed_after(said) < IMAGES
    assert again == whole
    assert kept(folder) == []


def test_ctrl_c_ends_with_130_and_keeps_what_was_done(folder: Path, whole: Any) -> None:
    """It comes in the middle of an image, and the image is finished first."""
    write_images(folder, IMAGES)
    (folder / "be slow").touch()
    command = [sys.executable, "-m", "hookviz", *COMMAND, "--progress"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while process.stderr.readline() != f"hookviz: {IMAGES // 10} of {IMAGES} images\n":
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert error.splitlines()[-1] == "hookviz: interrupted; the same command goes on from there."
    (folder / "be slow").unlink()
    again, said = finish()
    assert IMAGES // 10 < resumed_after(said) < IMAGES
    assert again == whole


class TestInOneProcess:
    """Three images; the interruption is planted behind the second one."""

    @pytest.fixture(autouse=True)
    def interrupted(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        write_digits(folder / "digits", 3)
        step = inspection.Inspection.step

        def interrupting(self: inspection.Inspection) -> None:
            step(self)
            if self.done == 2:
                signal.raise_signal(signal.SIGINT)

        with monkeypatch.context() as patch:
            patch.setattr(inspection.Inspection, "step", interrupting)
            assert cli.main(["check", "simple_cnn", "digits"]) == 130
        assert capsys.readouterr() == ("", "hookviz: interrupted; the same command goes on from there.\n")
        assert len(kept(folder)) == 1

    def said(self, capsys: pytest.CaptureFixture[str], *words: str) -> str:
        assert cli.main(["check", "simple_cnn", *words]) == 0
        said = capsys.readouterr()
        assert said.out.startswith("Nothing is wrong with simple_cnn, as far as 3 images can tell")
        return said.err

    GOES_ON = "hookviz: going on after 2 of 3 images.\n"

    def test_the_same_images_from_another_folder_go_on(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(folder / "digits")
        assert self.said(capsys, "../digits") == self.GOES_ON
        assert self.said(capsys, "../digits") == ""

    def test_fresh_begins_anew(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, "digits", "--fresh") == ""

    def test_quiet_goes_on_without_saying_so(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, "digits", "--quiet") == ""
        assert kept(folder) == []

    def test_other_thresholds_make_no_difference(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.said(capsys, "digits", "--threshold", "gain=60", "--fail-on", "warning") == self.GOES_ON

    def test_other_weights_labels_or_preparations_begin_anew(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "labels.csv").write_text("000.png,0\n001.png,1\n002.png,2\n")
        assert self.said(capsys, "digits", "--labels", "labels.csv") == ""
        assert self.said(capsys, "digits", "--prepare", "nets.py:teaching.prepare") == ""
        assert cli.main(["check", "simple_cnn", "digits", "--weights", "untrained"]) == 0
        assert capsys.readouterr().err == ""

    def test_an_image_that_changed_begins_anew(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        os.utime(folder / "digits" / "000.png", ns=(0, 0))
        assert self.said(capsys, "digits") == ""

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"\x93NUMPY", b"text"])
    def test_a_broken_progress_file_is_passed_over(
        self, content: bytes, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kept(folder)[0].write_bytes(content)
        assert self.said(capsys, "digits") == ""
        assert kept(folder) == []

    def test_one_that_was_cut_short_is_passed_over(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = kept(folder)[0]
        path.write_bytes(path.read_bytes()[:-100])
        assert self.said(capsys, "digits") == ""

    def test_one_of_another_version_is_passed_over(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("hookviz.sanity.progress_file._FORMAT", 0)
        assert self.said(capsys, "digits") == ""


def test_one_image_and_a_folder_that_cannot_be_written_keep_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check", "simple_cnn", "digit_3"]) == 0
    assert not (folder / "cache").exists()
    (folder / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "file"))
    assert cli.main(["check", "simple_cnn", "digit_3", "digit_8"]) == 0
    assert capsys.readouterr().err == (
        "hookviz: if this is interrupted, it begins anew, since nothing can be kept (Not a directory).\n"
    )


class TestPatientInterrupt:
    def test_waits_for_the_image_and_the_second_one_does_not(self) -> None:
        with PatientInterrupt() as patient:
            patient.at_image(0, 2)
            signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            with pytest.raises(KeyboardInterrupt):
                patient.at_image(1, 2)

    def test_does_not_wait_before_the_first_image_or_after_the_last(self) -> None:
        with PatientInterrupt() as patient:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            patient.at_image(1, 2)
            patient.at_image(2, 2)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)

    def test_leaves_the_signal_as_it_was(self) -> None:
        before = signal.getsignal(signal.SIGINT)
        with pytest.raises(OSError, match="planted"), PatientInterrupt():
            assert signal.getsignal(signal.SIGINT) is not before
            raise OSError("planted")
        assert signal.getsignal(signal.SIGINT) is before

    def test_leaves_a_signal_that_is_ignored_alone(self) -> None:
        """As behind nohup."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with PatientInterrupt():
                assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        finally:
            signal.signal(signal.SIGINT, before)
