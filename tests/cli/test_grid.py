from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from hookviz import cli
from hookviz.layout import channel_maps
from hookviz.samples import sample_bytes
from hookviz.views import channel_grid_figure, figure_bytes, mosaic, vector_figure
from tests.cli.shell import python_m_hookviz
from tests.cli.truth import returned

DIGIT = ["grid", "simple_cnn", "digit_3"]


def grid(*words: str | Path) -> int:
    return cli.main([*DIGIT, "--quiet", *map(str, words)])


def told(capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence of a command that gave nothing else."""
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    return error.strip()


def loaded(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def digit(layer: str, call: int = 0) -> Tensor:
    return returned("simple_cnn", "digit_3")[layer][call]


def titled(tensor: Tensor, title: str) -> bytes:
    return figure_bytes(channel_grid_figure(channel_maps(tensor), title=title), "svg")


class TestMosaic:
    def test_png_is_the_mosaic_of_what_the_layer_returned(self, tmp_path: Path) -> None:
        """C80: the bytes, from a forward that torch's own hooks cloned, in a process as a shell starts it."""
        done = python_m_hookviz(*DIGIT, "--layers", "conv1", "-o", str(tmp_path / "conv1.png"))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'conv1.png'}\n", "")
        assert (tmp_path / "conv1.png").read_bytes() == mosaic(channel_maps(digit("conv1")))

    def test_layer_that_is_overwritten_in_place_is_shown_as_it_was(self, tmp_path: Path) -> None:
        """C01: resnet18's bn1 is overwritten by the ReLU after it."""
        out = tmp_path / "bn1.png"
        words = ["grid", "resnet18", "grace_hopper", "--weights", "untrained", "--device", "cpu", "--quiet"]
        assert cli.main([*words, "--layers", "bn1", "-o", str(out)]) == 0
        (tensor,) = returned("resnet18", "grace_hopper", None)["bn1"]
        assert out.read_bytes() == mosaic(channel_maps(tensor))
        assert out.read_bytes() != mosaic(channel_maps(nn.functional.relu(tensor)))

    @pytest.mark.parametrize(
        ("by", "value"),
        [
            ("mean", lambda maps: maps.mean((1, 2), dtype=np.float64)),
            ("max", lambda maps: maps.max((1, 2))),
            ("spread", lambda maps: maps.std((1, 2), dtype=np.float64)),
            ("sparsity", lambda maps: (maps == 0).mean((1, 2))),
        ],
    )
    def test_channels_are_sorted_largest_first(self, by: str, value: object, tmp_path: Path) -> None:
        maps = digit("pool")[0].numpy()
        order = np.argsort(-value(maps), kind="stable")  # type: ignore[operator]  # one of the four above
        assert grid("--layers", "pool", "--sort", by, "-o", tmp_path / "pool.png") == 0
        assert (tmp_path / "pool.png").read_bytes() == mosaic(maps, order=order)

    def test_colours_and_pages_are_as_asked_for(self, tmp_path: Path) -> None:
        words = ["--scale", "symmetric", "--cmap", "coolwarm", "--robust", "--per-page", "12", "--page", "2"]
        assert grid("--layers", "conv1", *words, "-o", tmp_path / "conv1.PNG") == 0
        expected = mosaic(
            digit("conv1")[0].numpy(), scale="symmetric", cmap="coolwarm", robust=True, per_page=12, page=1
        )
        assert (tmp_path / "conv1.PNG").read_bytes() == expected

    def test_call_is_counted_from_1(self, tmp_path: Path) -> None:
        """C02: simple_cnn's pool runs twice."""
        for number in (1, 2):
            assert grid("--layers", "pool", "--call", str(number), "-o", tmp_path / "pool.png") == 0
            assert (tmp_path / "pool.png").read_bytes() == mosaic(channel_maps(digit("pool", number - 1)))

    def test_what_is_left_out_of_the_picture_is_said(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        words = ["--layers", "pool", "--per-page", "8", "-o", str(tmp_path / "pool.png")]
        assert cli.main([*DIGIT, *words]) == 0
        assert capsys.readouterr() == (
            f"{tmp_path / 'pool.png'}\n",
            "hookviz: pool runs 2 times, and this is call 1; --call chooses another.\n"
            "hookviz: pool has 16 channels, and this is page 1 of 2.\n",
        )

    def test_operation_is_drawn_by_its_name(self, tmp_path: Path) -> None:
        assert grid("--layers", "relu_1", "-o", tmp_path / "relu.png") == 0
        assert (tmp_path / "relu.png").read_bytes() == mosaic(channel_maps(digit("conv2").relu()))

    def test_whole_network_goes_by_the_name_of_the_table(self, tmp_path: Path) -> None:
        assert grid("--layers", "(whole network)", "-o", tmp_path / "all.png") == 0
        assert (tmp_path / "all.png").read_bytes() == mosaic(channel_maps(digit("")))


class TestSeveralLayers:
    def test_each_has_a_png_of_its_own(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert grid("--layers", "fc2", "conv?", "conv1", "-o", tmp_path / "out.png") == 0
        paths = [tmp_path / f"out.{layer}.png" for layer in ("fc2", "conv1", "conv2")]
        assert capsys.readouterr() == ("".join(f"{path}\n" for path in paths), "")
        assert sorted(tmp_path.iterdir()) == sorted(paths)
        for path, layer in zip(paths, ("fc2", "conv1", "conv2"), strict=True):
            assert path.read_bytes() == mosaic(channel_maps(digit(layer)))

    def test_a_pdf_has_a_page_for_each(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert grid("--layers", "conv?", "fc1", "-o", tmp_path / "out.pdf") == 0
        assert capsys.readouterr().out == f"{tmp_path / 'out.pdf'}\n"
        assert len(re.findall(rb"/Type /Page\b", (tmp_path / "out.pdf").read_bytes())) == 3

    def test_what_a_glob_meets_and_cannot_be_drawn_is_left_out_with_a_note(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert cli.main([*DIGIT, "--layers", "p*", "c*", "--call", "2", "-o", str(tmp_path / "out.png")]) == 0
        out, error = capsys.readouterr()
        assert out == f"{tmp_path / 'out.pool.png'}\n"
        assert error == "".join(
            f"hookviz: left out: {name} runs once, so there is no call 2; choose an earlier one.\n"
            for name in ("conv1", "conv2")
        )
        assert cli.main([*DIGIT, "--layers", "c*", "--call", "2", "-o", str(tmp_path / "out.png"), "--quiet"]) == 2
        assert told(capsys) == "hookviz: Nothing is left of the chosen layers; choose others."

    def test_layers_that_never_run_are_left_out_unless_they_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "idle_nets.py").write_text(
            "from torch import nn\n"
            "class Idle(nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        self.used = nn.Conv2d(3, 4, 3)\n"
            "        self.idle = nn.ModuleList(nn.ReLU() for _ in range(6))\n"
            "    def forward(self, x): return self.used(x)\n"
        )
        monkeypatch.chdir(tmp_path)
        words = ["grid", "idle_nets:Idle", "sample:digit_3", "-o", "out.npz", "--layers"]
        assert cli.main([*words, "*"]) == 0
        assert loaded(tmp_path / "out.npz").keys() == {"network", "used"}
        left_out = "not called for this image, and left out: idle, idle.0, idle.1, idle.2, idle.3 and 2 more.\n"
        assert capsys.readouterr().err.endswith(f"hookviz: {left_out}")
        assert cli.main([*words, "used", "idle.2", "--quiet"]) == 2
        assert told(capsys) == "hookviz: not called for this image: idle.2; choose layers that run."
        assert cli.main([*words, "idle*", "--quiet"]) == 2
        assert told(capsys).startswith("hookviz: not called for this image: idle, idle.0, ")


class TestFigure:
    def test_svg_has_the_title_of_the_page(self, tmp_path: Path) -> None:
        assert grid("--layers", "conv1", "-o", tmp_path / "conv1.svg") == 0
        assert (tmp_path / "conv1.svg").read_bytes() == titled(digit("conv1"), "conv1  Conv2d  16 × 32 × 32")

    def test_png_is_the_figure_on_request_as_fine_as_the_page_s_download(self, tmp_path: Path) -> None:
        assert grid("--layers", "fc2", "--figure", "--theme", "dark", "-o", tmp_path / "fc2.png") == 0
        figure = vector_figure(channel_maps(digit("fc2")), title="fc2  Linear  10", theme="dark")
        assert (tmp_path / "fc2.png").read_bytes() == figure_bytes(figure, "png", dpi=200)

    def test_pdf_of_one_layer_is_the_page_s_download(self, tmp_path: Path) -> None:
        assert grid("--layers", "conv2", "-o", tmp_path / "conv2.pdf") == 0
        figure = channel_grid_figure(channel_maps(digit("conv2")), title="conv2  Conv2d  32 × 16 × 16")
        assert (tmp_path / "conv2.pdf").read_bytes() == figure_bytes(figure, "pdf")


class TestValues:
    def test_npz_has_every_layer_and_call(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """C80: torch.equal with what torch's own hooks cloned."""
        assert grid("--layers", "*", "-o", tmp_path / "all.npz") == 0
        assert capsys.readouterr() == (f"{tmp_path / 'all.npz'}\n", "")
        arrays = loaded(tmp_path / "all.npz")
        seen = returned("simple_cnn", "digit_3")
        expected = {name or "network": calls[0] for name, calls in seen.items()} | {"pool.call2": seen["pool"][1]}
        assert arrays.keys() == expected.keys()
        for name, tensor in expected.items():
            assert torch.equal(torch.from_numpy(arrays[name]), tensor)

    def test_one_call_keeps_the_name_it_has_among_all(self, tmp_path: Path) -> None:
        assert grid("--layers", "pool", "--call", "2", "-o", tmp_path / "pool.npz") == 0
        assert loaded(tmp_path / "pool.npz").keys() == {"pool.call2"}

    def test_dtypes_that_numpy_lacks_are_kept_as_bits(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "half_nets.py").write_text(
            "import torch\nfrom torch import nn\n"
            "class Half(nn.Module):\n"
            "    def forward(self, x): return torch.tensor([[1.0, -2.5, 3.1415926]]).bfloat16()\n"
            "def make(): return nn.Sequential(Half())\n"
        )
        monkeypatch.chdir(tmp_path)
        words = ["grid", "half_nets:make", "sample:digit_3", "--layers", "0", "-o", "half.npz", "--quiet"]
        assert cli.main(words) == 0
        arrays = loaded(tmp_path / "half.npz")
        assert str(arrays["0.dtype"]) == "bfloat16"
        back = torch.from_numpy(arrays["0"].view(np.int16)).view(torch.bfloat16)
        assert torch.equal(back, torch.tensor([[1.0, -2.5, 3.1415926]]).bfloat16())

    def test_int8_values_are_kept_as_integers_and_as_numbers(self, tmp_path: Path) -> None:
        words = ["grid", "quantized_mobilenet_v2", "digit_3", "--weights", "untrained", "--layers", "quant"]
        assert cli.main([*words, "-o", str(tmp_path / "quant.npz"), "--quiet"]) == 0
        arrays = loaded(tmp_path / "quant.npz")
        assert arrays.keys() == {"quant", "quant.dtype", "quant.dequantized"}
        assert str(arrays["quant.dtype"]) == "quint8"
        assert arrays["quant"].dtype == np.uint8

    def test_part_chooses_among_what_a_layer_returned(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "part_nets.py").write_text(
            "from torch import nn\n"
            "class Parts(nn.Module):\n"
            "    def forward(self, x): return {'a': x, 'b': (-x, None)}\n"
            "def make(): return nn.Sequential(Parts())\n"
        )
        monkeypatch.chdir(tmp_path)
        words = ["grid", "part_nets:make", "sample:digit_3", "--layers", "0", "-o", "parts.npz", "--quiet"]
        assert cli.main([*words, "--part", "b.0"]) == 0
        negative = loaded(tmp_path / "parts.npz")["0"]
        assert cli.main(words) == 0
        assert np.array_equal(loaded(tmp_path / "parts.npz")["0"], -negative)
        capsys.readouterr()
        assert cli.main([*words, "--part", "c"]) == 2
        assert told(capsys) == "hookviz: 0 returned no part 'c'; choose one of 'a', 'b.0'."


class TestImage:
    def test_file_stdin_and_sample_are_the_same(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "three.png").write_bytes(sample_bytes("digit_3"))
        expected = mosaic(channel_maps(digit("conv1")))
        for source in ("sample:digit_3", "digit_3", str(tmp_path / "three.png"), "-"):
            stdin = io.TextIOWrapper(io.BytesIO(sample_bytes("digit_3")))
            monkeypatch.setattr(sys, "stdin", stdin)
            out = tmp_path / "conv1.png"
            assert cli.main(["grid", "simple_cnn", source, "--layers", "conv1", "-o", str(out), "--quiet"]) == 0
            assert out.read_bytes() == expected
            out.unlink()

    def test_a_file_wins_over_a_sample_of_its_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        Image.new("RGB", (8, 8), "white").save(tmp_path / "digit_3", "png")
        monkeypatch.chdir(tmp_path)
        assert grid("--layers", "conv1", "-o", "conv1.png") == 0
        (white,) = returned("simple_cnn", Image.new("RGB", (8, 8), "white"))["conv1"]
        assert (tmp_path / "conv1.png").read_bytes() == mosaic(channel_maps(white))

    @pytest.mark.parametrize(
        ("source", "sentence"),
        [
            ("nowhere.png", "hookviz: There is no file 'nowhere.png'; check the path."),
            ("digit_9", "hookviz: There is no sample 'digit_9'; did you mean 'digit_8' or 'digit_3'?"),
            ("sample:digit_9", "hookviz: There is no sample 'digit_9'; did you mean 'digit_8' or 'digit_3'?"),
            ("/", "hookviz: '/' is a folder; give the path of one image file in it."),
        ],
    )
    def test_no_image_is_one_sentence(
        self, source: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        words = ["grid", "simple_cnn", source, "--layers", "conv1", "-o", str(tmp_path / "conv1.png")]
        assert cli.main(words) == 2
        assert told(capsys) == sentence

    def test_broken_image_is_one_sentence(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "half.png").write_bytes(sample_bytes("digit_3")[:60])
        words = ["grid", "simple_cnn", str(tmp_path / "half.png"), "--layers", "conv1", "-o"]
        assert cli.main([*words, str(tmp_path / "conv1.png")]) == 2
        assert told(capsys).startswith("hookviz: ")
        assert not (tmp_path / "conv1.png").exists()

    def test_stdin_that_the_shell_closed_is_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(sys, "stdin", None)
        assert cli.main(["grid", "simple_cnn", "-", "--layers", "conv1", "-o", str(tmp_path / "a.png")]) == 2
        assert told(capsys) == "hookviz: There is nothing on stdin; give the path of an image file."


class TestRefusals:
    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["conv9"], "hookviz: no layer 'conv9' in SimpleCNN; did you mean 'conv2' or 'conv1'?"),
            (["relu_9"], "hookviz: no layer 'relu_9' in SimpleCNN; did you mean 'relu_2' or 'relu_1' or 'relu'?"),
            (
                ["conv9*"],
                "hookviz: no layer of SimpleCNN matches 'conv9*'; list_layers() shows the names there are.",
            ),
            (["conv1", "--page", "2"], "hookviz: conv1 has 16 channels, so there is no page 2 of 1."),
            (["pool", "--call", "3"], "hookviz: pool runs 2 times, so there is no call 3; choose an earlier one."),
            (["conv1", "--cmap", "rainbows"], "hookviz: no colormap 'rainbows'"),
            (["conv1", "--weights", "gone.pth"], "hookviz: There is no checkpoint 'gone.pth'; check the path."),
            (["conv1", "--class-names", "gone.txt"], "hookviz: There is no file 'gone.txt'; check the path."),
            (["conv1", "--device", "abacus"], "hookviz: There is no device 'abacus' here; choose one of auto, "),
        ],
    )
    def test_wrong_choice_is_the_library_s_sentence(
        self, words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert grid("--layers", *words, "-o", tmp_path / "out.png") == 2
        assert told(capsys).startswith(sentence)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("name", ["out.gif", "out", ".png", "-"])
    def test_other_suffixes_are_one_sentence(
        self, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert cli.main([*DIGIT, "--layers", "conv1", f"-o{name}"]) == 2
        expected = f"hookviz: {name!r} is no file to write; let its name end in .png, .svg, .pdf, .npz."
        assert told(capsys) == expected

    def test_missing_folder_is_one_sentence(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert grid("--layers", "conv1", "-o", tmp_path / "gone" / "out.png") == 2
        assert told(capsys) == f"hookviz: There is no folder '{tmp_path / 'gone'}'; make it first, or choose another."

    def test_folder_in_place_of_a_file_is_one_sentence(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "out.png").mkdir()
        assert grid("--layers", "conv1", "-o", tmp_path / "out.png") == 2
        assert told(capsys) == f"hookviz: '{tmp_path / 'out.png'}' is a folder; give the name of a file."

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's own")
    def test_full_disk_is_one_sentence(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "out.png").symlink_to("/dev/full")
        assert grid("--layers", "conv1", "-o", tmp_path / "out.png") == 2
        assert told(capsys) == (
            f"hookviz: '{tmp_path / 'out.png'}' could not be written (No space left on device); choose another place."
        )

    def test_file_that_is_there_is_overwritten(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "out.png").write_bytes(b"old" * 10**6)
        assert grid("--layers", "conv1", "-o", tmp_path / "out.png") == 0
        assert capsys.readouterr().err == ""
        assert (tmp_path / "out.png").read_bytes() == mosaic(channel_maps(digit("conv1")))
