from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from hookviz import cli
from hookviz.samples import load_sample
from hookviz.views import channel_grid_figure, figure_bytes, mosaic
from tests.models import unusual_networks

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per:UserWarning")

NETWORK = "tests.models.unusual_networks:unusual"


def grid(*words: str | Path) -> int:
    return cli.main(["grid", NETWORK, "grace_hopper", "--device", "cpu", *map(str, words)])


def by_hand(layer: str) -> Tensor:
    prepare = unusual_networks.unusual().prepare
    assert prepare is not None
    return unusual_networks.BY_HAND[layer](prepare(load_sample("grace_hopper"))[None])


@pytest.mark.parametrize("number", [1, 2, 4])
def test_slice_of_a_volume(number: int, tmp_path: Path) -> None:
    """C28: slice d of channel c is out[0, c, d], counted from 1."""
    assert grid("--layers", "volume", "--slice", str(number), "-o", tmp_path / "out.png", "--quiet") == 0
    assert (tmp_path / "out.png").read_bytes() == mosaic(by_hand("volume")[0, :, number - 1].numpy())


def test_item_of_a_batch(tmp_path: Path) -> None:
    """C28: batch of 2."""
    assert grid("--layers", "two", "--item", "2", "-o", tmp_path / "out.png", "--quiet") == 0
    assert (tmp_path / "out.png").read_bytes() == mosaic(by_hand("two")[1].numpy())


@pytest.mark.parametrize(
    ("layer", "word", "values"),
    [
        ("complex", "phase", lambda out: out.to(torch.complex128).angle().float()),
        ("complex", "imaginary", lambda out: out.imag),
        ("quantized", "stored", lambda out: out.int_repr()),
        ("quantized", "dequantized", lambda out: out.dequantize()),
    ],
)
def test_kind_of_number(layer: str, word: str, values: object, tmp_path: Path) -> None:
    """C30."""
    assert callable(values)
    assert grid("--layers", layer, "--shows", word, "-o", tmp_path / "out.png", "--quiet") == 0
    assert (tmp_path / "out.png").read_bytes() == mosaic(values(by_hand(layer))[0].numpy())


def test_figure_says_which_part_it_shows(tmp_path: Path) -> None:
    assert grid("--layers", "volume", "--slice", "3", "-o", tmp_path / "out.svg", "--quiet") == 0
    title = "volume  Returns  3 × 4 × 12 × 12  ·  slice 3 of 4"
    figure = channel_grid_figure(by_hand("volume")[0, :, 2].numpy(), title=title)
    assert (tmp_path / "out.svg").read_bytes() == figure_bytes(figure, "svg")


def test_parts_that_are_left_out_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grid("--layers", "volume", "two", "-o", tmp_path / "out.png") == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "another" in line]
    assert notes == [
        "hookviz: volume has 4 slices, and this is slice 1; --slice chooses another.",
        "hookviz: two has 2 items, and this is item 1; --item chooses another.",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["volume", "--slice", "5"], "volume has 4 slices, so there is no slice 5."),
        (["two", "--item", "3"], "two has 2 items, so there is no item 3."),
        (["mask", "--shows", "phase"], "A tensor of dtype bool has no 'phase' to show"),
    ],
)
def test_part_that_is_not_there_is_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert grid("--layers", *words, "-o", tmp_path / "out.png", "--quiet") == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
