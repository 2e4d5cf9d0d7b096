from __future__ import annotations

import io
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hookviz import cli
from hookviz.cli.check import exit_code
from hookviz.cli.report_text import report_lines
from hookviz.cli.run import command_parser
from hookviz.samples import load_sample, sample_bytes
from hookviz.sanity import Finding, Report, Severity, Unreadable, check
from tests.cli.checked import copy_sample, strict, write_digits, write_nets
from tests.cli.shell import ROOT, python_m_hookviz
from tests.cli.truth import network, returned


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    write_nets(tmp_path)
    return tmp_path


def numbers(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    """What is printed as JSON."""
    assert cli.main(["check", *words, "--json", "-"]) == code
    printed: dict[str, Any] = strict(capsys.readouterr().out)
    return printed


@cache
def digit_report() -> Report:
    return check(network("simple_cnn"), str(ROOT / "assets" / "digit_3.png"), against=None)


def finding(severity: Severity) -> Finding:
    return Finding(severity, "layers", "planted", f"What is {severity}.", "Why it is.", "Try this.")


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one sentence that ends a command with exit code 2."""
    try:
        code: Any = cli.main(["check", *words])
    except SystemExit as stopped:
        code = stopped.code
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    return said.err.removeprefix("hookviz: ").removesuffix("\n")


def in_a_shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)  # noqa: S602 - only a shell has pipes


class TestExitCode:
    @pytest.mark.parametrize("unreadable", [False, True])
    @pytest.mark.parametrize(
        ("severity", "failing"),
        [(None, ""), ("note", "note"), ("warning", "note warning"), ("error", "note warning error")],
    )
    @pytest.mark.parametrize("fail_on", ["note", "warning", "error", None])
    def test_is_1_for_findings_as_bad_as_asked_and_4_more_for_unreadable_images(
        self, severity: Severity | None, failing: str, fail_on: Severity | None, unreadable: bool
    ) -> None:
        report = replace(
            digit_report(),
            findings=() if severity is None else (finding(severity),),
            unreadable=(Unreadable("a.png", "It is broken."),) if unreadable else (),
        )
        assert exit_code(report, fail_on) == (1 if fail_on in failing.split() else 0) + (4 if unreadable else 0)

    @pytest.mark.parametrize(
        ("words", "code"),
        [
            (["simple_cnn", "digit_3", "--fail-on", "note"], 0),
            (["nets.py:broken", "digit_3"], 1),
            (["nets.py:broken", "digit_3", "--fail-on", "never"], 0),
            (["simple_cnn", "digit_3", "--prepare", "nets.py:unnormalised"], 0),
            (["simple_cnn", "digit_3", "--prepare", "nets.py:unnormalised", "--fail-on", "warning"], 1),
            (["simple_cnn", "digit_3", "empty.jpg"], 4),
            (["simple_cnn", "empty.jpg"], 4),
            (["nets.py:broken", "digit_3", "empty.jpg"], 5),
            (["simple_cnn", "nowhere.png"], 2),
            (["no_such_model", "digit_3"], 2),
        ],
    )
    def test_of_a_command(self, words: list[str], code: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """An error is what fails unless told otherwise."""
        (folder / "empty.jpg").touch()
        assert cli.main(["check", *words]) == code
        assert (capsys.readouterr().out == "") == (code == 2)

    def test_is_the_process_s_own(self, folder: Path) -> None:
        (folder / "empty.jpg").touch()
        done = python_m_hookviz(
            "check",
            "nets.py:broken",
            "sample:digit_3",
            "empty.jpg",
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        assert (done.returncode, done.stderr) == (5, "")


class TestText:
    def test_a_network_that_is_all_right_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["check", "simple_cnn", "digit_3"]) == 0
        assert capsys.readouterr() == ("Nothing is wrong with simple_cnn, as far as 1 image can tell.\n", "")

    def test_findings_come_with_reason_and_advice_and_the_worst_first(self) -> None:
        report = replace(
            digit_report(),
            findings=(finding("error"), finding("note")),
            unreadable=(Unreadable("a.png", "It is broken."), Unreadable("b/c.jpg", "It is empty.")),
        )
        assert "\n".join(report_lines(report, None)) == (
            "simple_cnn on 1 image: 1 error, 1 note.\n"
            "\n"
            "error: What is error.\n"
            "    why: Why it is.\n"
            "    try: Try this.\n"
            "\n"
            "note: What is note.\n"
            "    why: Why it is.\n"
            "    try: Try this.\n"
            "\n"
            "2 images could not be read:\n"
            "    a.png: It is broken.\n"
            "    b/c.jpg: It is empty."
        )

    def test_lines_fit_a_terminal_and_cut_no_name(self) -> None:
        long = replace(finding("error"), what="`" + "x" * 50 + "` is a name, and " + "more " * 10, why="word " * 20)
        lines = report_lines(replace(digit_report(), findings=(long,)), 40)
        assert [line for line in lines if len(line) > 40] == [f"    `{'x' * 50}`"]
        assert (
            lines[lines.index("    why: word word word word word word") + 1] == "        word word word word word word"
        )
        assert " ".join(" ".join(lines).split()).count("word") == 20

    def test_the_files_written_are_named_last(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["check", "simple_cnn", "digit_3", "--json", "out.json"]) == 0
        assert capsys.readouterr().out.splitlines()[1:] == ["", "numbers: out.json"]
        assert strict((folder / "out.json").read_text("utf-8"))["worst"] is None

    def test_a_report_to_look_at_is_written(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert cli.main(["check", "simple_cnn", "digit_3", "--json", "-", "--report", "out.html"]) == 0
        verdict = strict(capsys.readouterr().out)["verdict"]
        page = (folder / "out.html").read_text("utf-8")
        assert page.lower().startswith("<!doctype html>")
        assert verdict in page
        assert cli.main(["check", "simple_cnn", "digit_3", "--report", "out.html"]) == 0
        assert capsys.readouterr().out == f"{verdict}\n\nreport: out.html\n"

    def test_nothing_is_called_right_where_no_image_could_be_used(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "empty.jpg").touch()
        assert cli.main(["check", "simple_cnn", "empty.jpg"]) == 4
        assert capsys.readouterr().out.splitlines()[0] == (
            "simple_cnn on 0 images: its weights show nothing wrong, and more cannot be told."
        )

    def test_progress_and_notes_go_to_stderr(self, folder: Path) -> None:
        write_digits(folder / "digits", 3)
        done = python_m_hookviz("check", "simple_cnn", str(folder / "digits"), "--progress")
        assert done.stdout == "Nothing is wrong with simple_cnn, as far as 3 images can tell.\n"
        assert done.stderr.splitlines() == [
            "hookviz: loading simple_cnn …",
            "hookviz: 1 of 3 images",
            "hookviz: 2 of 3 images",
            "hookviz: 3 of 3 images",
        ]

    def test_what_is_assumed_of_a_network_that_says_nothing_is_said(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "plain.py").write_text("from torch import nn\ndef make():\n    return nn.Conv2d(3, 2, 3)\n")
        sentence = (
            "hookviz: The network has no prepare of its own, so the picture is cut to 224 × 224 and normalised as"
        )
        assert cli.main(["check", "plain.py:make", "digit_3"]) == 0
        assert capsys.readouterr().err == f"{sentence} for ImageNet.\n"
        assert cli.main(["check", "plain.py:make", "digit_3", "--quiet"]) == 0
        assert capsys.readouterr().err == ""


class TestImages:
    def test_a_folder_with_broken_files_is_gone_through_and_they_are_named(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also a folder that is named like a picture, and what is in it; a text beside pictures is meant to be one."""
        photos = folder / "photos"
        write_digits(photos, 2)
        copy_sample("digit_3", photos / "x.png" / "in.png")
        whole = (photos / "000.png").read_bytes()
        (photos / "empty.jpg").touch()
        (photos / "truncated.png").write_bytes(whole[: len(whole) // 2])
        (photos / "renamed.jpg").write_text("hello\n")
        (photos / "zeros.gif").write_bytes(bytes(1000))
        (photos / "link.webp").symlink_to("nowhere")
        (photos / "notes.txt").write_text("passed over")
        assert cli.main(["check", "simple_cnn", "photos", "--fail-on", "never"]) == 4
        text = capsys.readouterr().out
        verdict, _, listed = text.partition("5 images could not be read:\n")
        assert " 3 images" in verdict.splitlines()[0]
        names = [line.strip().partition(": ")[0] for line in listed.splitlines()]
        assert names == ["empty.jpg", "link.webp", "renamed.jpg", "truncated.png", "zeros.gif"]
        assert "This file is empty (0 bytes)" in listed
        assert "No such file or directory" in listed

    def test_several_words_name_their_images(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        copy_sample("digit_3", folder / "a" / "1.png")
        copy_sample("digit_8", folder / "b" / "1.png")
        given = numbers(
            capsys, "simple_cnn", "a", "b/1.png", "digit_3", "sample:digit_8", "b/1.png", "--against", "none"
        )
        assert [one["name"] for one in given["images"]] == ["a/1.png", "b/1.png", "digit_3", "digit_8", "b/1.png (2)"]
        assert [one["index"] for one in given["answers"]] == [3, 8, 3, 8, 8]

    def test_a_folder_wins_over_a_sample_of_its_name(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        copy_sample("digit_8", folder / "digit_3" / "eight.png")
        assert [one["index"] for one in numbers(capsys, "simple_cnn", "digit_3")["answers"]] == [8]
        assert [one["index"] for one in numbers(capsys, "simple_cnn", "sample:digit_3")["answers"]] == [3]

    def test_an_image_on_stdin(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(sample_bytes("digit_8"))))
        given = numbers(capsys, "simple_cnn", "-")
        assert [(one["image"], one["index"]) for one in given["answers"]] == [("stdin", 8)]

    def test_a_pipe_is_read_once(self, folder: Path) -> None:
        command = f"cat {ROOT}/assets/digit_8.png | {sys.executable} -m hookviz check simple_cnn /dev/stdin"
        done = in_a_shell(command)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == "Nothing is wrong with simple_cnn, as far as 1 image can tell.\n"

    @pytest.mark.parametrize(
        ("word", "sentence"),
        [
            ("fotos", "There is no file, folder or sample 'fotos'; check the path."),
            ("digit3", "There is no file, folder or sample 'digit3'; did you mean 'digit_3'?"),
            ("sample:digit_4", "There is no sample 'digit_4'; did you mean 'digit_8' or 'digit_3'?"),
            ("nothing", "There are no images in nothing; name a folder that holds some, or pass pictures."),
        ],
    )
    def test_words_that_name_no_image_are_one_sentence(
        self, word: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (folder / "nothing").mkdir()
        assert refused(capsys, "simple_cnn", word) == sentence


class TestNumbers:
    def test_are_as_torch_alone_has_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        given = numbers(capsys, "simple_cnn", "digit_3", "digit_8")
        seen = [returned("simple_cnn", name) for name in ("digit_3", "digit_8")]
        rows = {(row["layer"], row["call"]): row["summary"] for row in given["layers"] if row["layer"] in seen[0]}
        assert set(rows) == {(name, call) for name in ("conv1", "conv2", "fc1", "fc2") for call in [1]} | {
            ("pool", 1),
            ("pool", 2),
        }
        for (layer, call), row in rows.items():
            values = torch.cat([one[layer][call - 1].flatten() for one in seen]).double().numpy()
            assert row["count"] == values.size
            assert row["mean"] == pytest.approx(values.mean(), rel=1e-12)
            assert row["std"] == pytest.approx(values.std(), rel=1e-12)
            assert (row["min"], row["max"]) == (values.min(), values.max())
            assert row["zeros"] == np.count_nonzero(values == 0)
            assert sum(row["histogram"]["counts"]) == values.size
        shares = [one["fc2"][0].double().softmax(1)[0].numpy() for one in seen]
        assert [one["probability"] for one in given["answers"]] == pytest.approx([one.max() for one in shares])

    def test_that_are_not_finite_are_null(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Of NaN alone there is neither a mean nor a largest value; ``numbers`` takes no ``NaN`` for a number."""
        given = numbers(capsys, "nets.py:broken", "digit_3", code=1)
        assert given["worst"] == "error"
        fc2 = next(row for row in given["layers"] if row["layer"] == "fc2")
        assert (fc2["summary"]["nan"], fc2["summary"]["mean"], fc2["summary"]["max"]) == (10, None, None)

    def test_a_threshold_that_is_infinite_is_null_too(self, capsys: pytest.CaptureFixture[str]) -> None:
        given = numbers(capsys, "simple_cnn", "digit_3", "--threshold", "gain=inf", "--threshold", "entropy=0.5")
        assert (given["thresholds"]["gain"], given["thresholds"]["entropy"]) == (None, 0.5)

    def test_a_file_has_what_would_be_printed(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        printed = numbers(capsys, "simple_cnn", "digit_3")
        assert cli.main(["check", "simple_cnn", "digit_3", "--json", "out.json", "--quiet"]) == 0
        assert strict((folder / "out.json").read_text("utf-8")) == printed


class TestOptions:
    def test_untrained_weights_are_checked_as_such(self, capsys: pytest.CaptureFixture[str]) -> None:
        given = numbers(capsys, "simple_cnn", "digit_3", "--weights", "untrained")
        assert given["network"]["weights"] == "untrained"

    def test_a_checkpoint_is_checked_as_it_is_in_the_file(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        values = dict(network("simple_cnn").module.state_dict())
        values["conv1.weight"] = torch.full_like(values["conv1.weight"], 0.25)
        torch.save(values, folder / "own.pth")
        (folder / "names.txt").write_text("".join(f"number {digit}\n" for digit in range(10)))
        given = numbers(capsys, "simple_cnn", "digit_3", "--weights", "own.pth", "--class-names", "names.txt")
        conv1 = next(row for row in given["layers"] if row["layer"] == "conv1")
        batch = network("simple_cnn").prepare(load_sample("digit_3"))
        mean = (
            torch.nn.functional.conv2d(batch, values["conv1.weight"], values["conv1.bias"], padding=1).double().mean()
        )
        assert conv1["summary"]["mean"] == pytest.approx(float(mean), rel=1e-6)
        assert given["categories"] == [f"number {digit}" for digit in range(10)]

    def test_layers_are_compared_with_whom_is_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        def compared(*words: str) -> Any:
            return numbers(capsys, "simple_cnn", "digit_3", *words)["compared"]

        assert compared()["other"] == compared("--against", "untrained")["other"] == "the same network untrained"
        assert compared("--against", "none") is None
        itself = compared("--against", "simple_cnn")
        assert itself["other"] == "simple_cnn (bundled)"
        assert {one["layer"] for one in itself["layers"] if one["cka"] == pytest.approx(1)} >= {
            "conv1",
            "conv2",
            "pool",
        }

    def test_a_network_that_takes_other_inputs_is_no_comparison(self, capsys: pytest.CaptureFixture[str]) -> None:
        said = refused(capsys, "efficientnet_lite0", "digit_3", "--against", "simple_cnn")
        assert said == (
            "SimpleCNN cannot run on what EfficientNet is given, so their layers cannot be compared: layer 'fc1' "
            "(Linear) failed on an input of shape (1, 100352): RuntimeError: mat1 and mat2 shapes cannot be multiplied "
            "(1x100352 and 2048x128)."
        )

    def test_what_is_fed_is_what_ones_own_function_makes(self, capsys: pytest.CaptureFixture[str]) -> None:
        given = numbers(capsys, "simple_cnn", "digit_3", "--prepare", "nets.py:unnormalised")
        first = next(row for row in given["layers"] if row["layer"] == "conv1")
        batch = (network("simple_cnn").prepare(load_sample("digit_3")) + 1) / 2
        with torch.no_grad():
            mean = network("simple_cnn").module.get_submodule("conv1")(batch).double().mean()
        assert first["summary"]["mean"] == pytest.approx(float(mean), rel=1e-6)
        assert [one["kind"] for one in given["findings"] if one["area"] == "input"] == ["input_not_normalised"]

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (
                ["--prepare", "nets"],
                "'nets' names no function; write package.module:function, or file.py:function.",
            ),
            (
                ["--prepare", "nets.py:nothing"],
                "nets.py has no nothing; name a function of it that makes the network's input of an image.",
            ),
            (
                ["--prepare", "nets.py:NETWORKS"],
                "nets.py has no NETWORKS; name a function of it that makes the network's input of an image.",
            ),
            (
                ["--prepare", "nets.py:teaching"],
                "nets.py:teaching cannot be called; name a function that makes the network's input of an image.",
            ),
            (["--threshold", "gain=0"], "The threshold gain must be above 0, not 0.0."),
            (["--threshold", "gain=nan"], "The threshold gain must be above 0, not nan."),
            (
                ["--threshold", "gian=1"],
                "argument --threshold: there is no threshold 'gian'; did you mean 'gain'?; see hookviz check --help.",
            ),
            (
                ["--threshold", "gain"],
                "argument --threshold: NAME=VALUE is needed, for instance gain=50, not 'gain'; see hookviz check "
                "--help.",
            ),
            (
                ["--threshold", "fewest_images_for_dead=1.5"],
                "argument --threshold: fewest_images_for_dead is a whole number, not '1.5'; see hookviz check --help.",
            ),
            (["--report", "out.json"], "'out.json' is no file to write; let its name end in .html, .htm."),
            (["--json", "no/out.json"], "There is no folder 'no'; make it first, or choose another."),
            (["--report", "no/out.html"], "There is no folder 'no'; make it first, or choose another."),
            (["--labels", "no.csv"], "The labels 'no.csv' cannot be read: No such file or directory."),
        ],
    )
    def test_wrong_ones_are_one_sentence(
        self, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert refused(capsys, "simple_cnn", "digit_3", *words) == sentence

    def test_a_report_that_cannot_be_written_does_not_lose_the_verdict(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("a device that is always full is Linux's own")
        assert cli.main(["check", "simple_cnn", "digit_3", "--json", "/dev/full"]) == 2
        said = capsys.readouterr()
        assert said.out == "Nothing is wrong with simple_cnn, as far as 1 image can tell.\n"
        assert (
            said.err == "hookviz: '/dev/full' could not be written (No space left on device); choose another place.\n"
        )

    def test_the_help_tells_exit_codes_and_thresholds_and_its_examples_are_right_words(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            cli.main(["check", "--help"])
        text = capsys.readouterr().out
        assert "  4  some images could not be read; the others were checked\n" in text
        assert "  gain=50\n" in text
        lines = text.partition("\nexamples:\n")[2].strip().splitlines()
        assert len(lines) == 5
        for line in lines:
            assert command_parser().parse_args(line.split()[1:]).command == "check"
