"""Many images: exact statistics in constant memory, taken up again where they were broken off."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import Tensor, nn

from hookviz import HookvizError, check, load_image, load_model
from hookviz.sanity import Inspection, items_of
from hookviz.sanity.layer_stream import Place
from hookviz.sanity.progress_file import ProgressFile
from hookviz.sanity.subject import subject_of
from tests.nets import ReusedReLUNet


def write_digits(folder: Path, count: int) -> Path:
    """Digits of 8 x 8 pixels as PNG files, two of every three upside down or of another size."""
    folder.mkdir(parents=True, exist_ok=True)
    levels = load_digits().images
    for number in range(count):
        pixels = (levels[number % len(levels)] * 15.9).astype(np.uint8)
        picture = Image.fromarray(pixels).resize((32 + number % 3, 32))
        picture.save(folder / f"{number:05}.png")
    return folder


def outputs_by_hand(folder: Path) -> dict[Place, npt.NDArray[np.float64]]:
    """What every layer of the teaching network returned on every image, by hooks written here."""
    model = load_model("simple_cnn", device="cpu")
    seen: dict[Place, list[Tensor]] = defaultdict(list)
    calls: dict[str, int] = {}

    def keep(name: str) -> object:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            seen[Place(name, calls.get(name, 0), "")].append(output.clone())
            calls[name] = calls.get(name, 0) + 1

        return hook

    for name, layer in model.module.named_modules():
        if name:
            layer.register_forward_hook(keep(name))
    with torch.no_grad():
        for path in sorted(folder.iterdir()):
            calls.clear()
            model.module(model.prepare(load_image(path)))
    return {place: torch.cat(parts).double().numpy() for place, parts in seen.items()}


def test_statistics_over_a_folder_are_numpy_s_over_all_activations(tmp_path: Path) -> None:
    """C62: every layer, every image."""
    folder = write_digits(tmp_path / "digits", 9)
    inspection = Inspection(subject_of(load_model("simple_cnn", device="cpu"), None), items_of(folder))
    while not inspection.finished:
        inspection.step()
    assert inspection.stream is not None
    expected = outputs_by_hand(folder)
    seen = {place: tally for place, tally in inspection.stream.tallies.items() if "relu" not in place.layer}
    assert set(seen) == set(expected)
    for place, values in expected.items():
        summary, channels = seen[place].summary.summary(), seen[place].channels
        assert channels is not None
        assert summary.count == values.size
        assert summary.zeros == np.count_nonzero(values == 0)
        assert summary.mean == pytest.approx(values.mean(), rel=1e-12)
        assert summary.std == pytest.approx(values.std(), rel=1e-12)
        assert (summary.min, summary.max) == (values.min(), values.max())
        rows = np.moveaxis(values, 1, 0).reshape(values.shape[1], -1)
        np.testing.assert_allclose(channels.mean, rows.mean(1), rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(channels.variance, rows.var(1), rtol=1e-10, atol=1e-13)
        np.testing.assert_array_equal(channels.low, rows.min(1))
        np.testing.assert_array_equal(channels.high, rows.max(1))
        np.testing.assert_array_equal(channels.dead, (rows == 0).all(1))


def test_operations_stand_where_they_ran(tmp_path: Path) -> None:
    report = check(load_model("simple_cnn", device="cpu"), write_digits(tmp_path, 1), against=None)
    order = [(row.layer, row.call) for row in report.layers]
    assert order == [
        ("conv1", 1),
        ("relu", 1),
        ("pool", 1),
        ("conv2", 1),
        ("relu_1", 1),
        ("pool", 2),
        ("fc1", 1),
        ("relu_2", 1),
        ("fc2", 1),
    ]


def test_a_dead_channel_is_zero_on_every_image_not_on_one() -> None:
    """C49: two images, two channels, a single 1: 93.75 % zeros, 50 % never active."""
    images = torch.zeros(2, 2, 4, 4)
    images[0, 0, 1, 1] = 1
    report = check(nn.Sequential(nn.ReLU()), images, against=None)
    (row,) = [one for one in report.layers if one.layer == "0"]
    assert row.summary.sparsity == 1 - 1 / 64
    assert (row.dead, row.channels) == (1, 2)
    (finding,) = [one for one in report.findings if one.kind == "dead_channels"]
    assert finding.amount == 0.5
    assert finding.channels == (1,)
    assert "1 of 2 (50 %)" in finding.what


def test_smooth_activations_have_no_dead_channels() -> None:
    """C49: zero means nothing in what a GELU returns."""
    report = check(nn.Sequential(nn.GELU()), torch.zeros(1, 2, 8, 8), against=None)
    assert not [one for one in report.findings if one.kind in {"dead_channels", "dead_layer"}]


class Broken(Exception):  # noqa: N818  # stands for a process that ends
    pass


def broken_off(folder: Path, kept: Path, after: int) -> None:
    """A check of the folder that ends after so many images."""

    def stop(done: int, _: int) -> None:
        if done == after:
            raise Broken

    with pytest.raises(Broken):
        check("simple_cnn", folder, device="cpu", progress_file=kept, on_progress=stop)


def test_a_check_that_was_broken_off_goes_on_and_gives_the_same(tmp_path: Path) -> None:
    folder, kept = write_digits(tmp_path / "digits", 12), tmp_path / "progress"
    (folder / "00004.png").write_bytes(b"no picture")
    straight = check("simple_cnn", folder, device="cpu")
    broken_off(folder, kept, 7)
    assert kept.exists()
    steps: list[int] = []
    resumed = check(
        "simple_cnn", folder, device="cpu", progress_file=kept, on_progress=lambda done, _: steps.append(done)
    )
    assert [one for one in steps if one > 7] == [8, 9, 10, 11, 12]
    assert 6 not in steps
    assert resumed.as_dict() == straight.as_dict()
    assert len(resumed.unreadable) == 1
    assert not kept.exists()


@pytest.mark.parametrize("change", ["a file", "the weights", "the file itself"])
def test_progress_of_another_check_is_not_taken_up(tmp_path: Path, change: str) -> None:
    folder, kept = write_digits(tmp_path / "digits", 6), tmp_path / "progress"
    broken_off(folder, kept, 3)
    model = load_model("simple_cnn", device="cpu")
    if change == "a file":
        Image.new("L", (9, 9)).save(folder / "00001.png")
    elif change == "the weights":
        next(model.module.parameters()).data.view(-1)[0] += 1e-6
    else:
        kept.write_bytes(kept.read_bytes()[:-100])
    steps: list[int] = []
    check(model, folder, progress_file=kept, against=None, on_progress=lambda done, _: steps.append(done))
    assert [one for one in steps if one] == [1, 2, 3, 4, 5, 6]


def test_only_files_can_be_taken_up_again(tmp_path: Path) -> None:
    inspection = Inspection(subject_of("simple_cnn", None), items_of(torch.zeros(1, 3, 32, 32)))
    with pytest.raises(HookvizError, match="Only a check of files"):
        ProgressFile(tmp_path / "kept", inspection)


_MEMORY = """
import os, sys, torch
from hookviz.sanity import Inspection, items_of
from hookviz.sanity.subject import subject_of
torch.set_num_threads(1)
inspection = Inspection(subject_of("simple_cnn", None, device="cpu"), items_of(sys.argv[1]))
while not inspection.finished:
    inspection.step()
    if inspection.done in {int(sys.argv[2]), len(inspection.items)}:
        pages = int(open("/proc/self/statm").read().split()[1])
        print(pages * os.sysconf("SC_PAGE_SIZE"))
assert len(inspection.images) == len(inspection.items)
"""


@pytest.mark.parametrize(("few", "many"), [(60, 240), pytest.param(100, 5000, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_images(tmp_path: Path, few: int, many: int) -> None:
    """What a name and a digest take is allowed: 5,000 images are 3 MB of them."""
    folder = write_digits(tmp_path / "digits", many)
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(folder), str(few)], capture_output=True, text=True, check=True
    )
    early, late = map(int, done.stdout.split())
    assert late - early < 12 * 2**20, f"{few} images {early:,} bytes, {many} images {late:,}"


def test_broken_files_among_good_ones_are_listed(tmp_path: Path) -> None:
    folder = write_digits(tmp_path / "digits", 3)
    (folder / "empty.png").write_bytes(b"")
    (folder / "words.jpg").write_text("no picture", "utf-8")
    (folder / "half.png").write_bytes((folder / "00000.png").read_bytes()[:60])
    (folder / "notes.txt").write_text("passed over", "utf-8")
    (folder / ".hidden.png").write_bytes(b"")
    report = check("simple_cnn", folder, device="cpu", against=None)
    assert [one.name for one in report.images] == ["00000.png", "00001.png", "00002.png"]
    assert [one.name for one in report.unreadable] == ["empty.png", "half.png", "words.jpg"]
    assert all(one.reason.endswith((".", ")")) for one in report.unreadable)


def test_a_folder_of_nothing_but_broken_files_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    report = check("simple_cnn", tmp_path, device="cpu")
    assert (report.images, report.layers, report.answers) == ((), (), ())
    assert len(report.unreadable) == 1
    assert "0 images" in report.verdict


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HookvizError, match="no images"):
        check("simple_cnn", tmp_path)


def test_calls_of_a_re_used_layer_are_told_apart() -> None:
    images = list(torch.randn(5, 1, 4, generator=torch.Generator().manual_seed(0)))
    network = ReusedReLUNet().eval()
    seen: dict[int, list[Tensor]] = defaultdict(list)
    for image in images:
        calls: list[Tensor] = []
        handle = network.relu.register_forward_hook(lambda _, __, output, calls=calls: calls.append(output.clone()))
        with torch.no_grad():
            network(image)
        handle.remove()
        for number, output in enumerate(calls, 1):
            seen[number].append(output)
    assert len(seen) > 1
    report = check(network, images)
    for number, outputs in seen.items():
        (row,) = [one for one in report.layers if (one.layer, one.call) == ("relu", number)]
        assert row.summary.mean == pytest.approx(float(torch.cat(outputs).double().mean()), rel=1e-12)
        assert row.summary.count == sum(one.numel() for one in outputs)


def test_a_network_that_could_only_run_in_eval_mode_goes_on_in_it(tmp_path: Path) -> None:
    """C82: batch norm on one value refuses train mode, also where the check was broken off."""
    folder, kept = write_digits(tmp_path / "digits", 5), tmp_path / "progress"
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 4))
    straight = check(network, folder)

    def stop(done: int, _: int) -> None:
        if done == 3:
            raise Broken

    with pytest.raises(Broken):
        check(network, folder, progress_file=kept, on_progress=stop)
    resumed = check(network, folder, progress_file=kept)
    assert resumed.as_dict() == straight.as_dict()
    assert len(resumed.images) == 5
