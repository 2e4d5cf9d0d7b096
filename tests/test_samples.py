from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hookviz import bundled
from hookviz.bundled import bundled_file
from hookviz.errors import HookvizError, ImageError
from hookviz.samples import list_samples, load_sample, sample_bytes
from scripts import draw_samples

ASSETS = Path(__file__).parent.parent / "assets"
NAMES = ["grace_hopper", "gratings", "zone_plate", "checkerboard", "colours", "digit_3", "digit_8"]


def test_the_photograph_comes_first() -> None:
    assert [sample.name for sample in list_samples()] == NAMES
    assert all(sample.title and sample.description.endswith(".") for sample in list_samples())


@pytest.mark.parametrize("name", draw_samples.DRAWINGS)
def test_a_drawing_is_what_its_script_draws(name: str) -> None:
    drawn, loaded = draw_samples.DRAWINGS[name]().convert("RGB"), load_sample(name)
    assert loaded.size == drawn.size
    assert np.array_equal(np.asarray(loaded), np.asarray(drawn))


def test_every_sample_is_drawn_or_the_photograph() -> None:
    assert set(NAMES) == {"grace_hopper", *draw_samples.DRAWINGS}


def test_the_photograph_is_an_exact_copy() -> None:
    """The copy that matplotlib ships as sample data, 61306 bytes."""
    digest = hashlib.sha256(sample_bytes("grace_hopper")).hexdigest()
    assert digest == "a8ca6d734765703b09728ab47fe59f473d93ae3967fc24c7c0288c3c7adb7130"
    assert load_sample("grace_hopper").size == (512, 600)


def test_samples_are_read_as_uploads_are() -> None:
    """C04: one path for all images; here against Pillow alone."""
    for name in NAMES:
        image = load_sample(name)
        (path,) = ASSETS.glob(f"{name}.*")
        assert image.mode == "RGB"
        assert np.array_equal(np.asarray(image), np.asarray(Image.open(path).convert("RGB")))


def test_colour_patches_are_pure() -> None:
    """C80: known colours at known places, red first."""
    image = load_sample("colours")
    patches = [image.getpixel((46 + 84 * column, 80)) for column in range(6)]
    assert patches == [(255, 0, 0), (255, 255, 0), (0, 255, 0), (0, 255, 255), (0, 0, 255), (255, 0, 255)]
    assert [image.getpixel((8 + 62 * step + 31, 400)) for step in (0, 7)] == [(0, 0, 0), (255, 255, 255)]


def test_gratings_run_at_their_orientations() -> None:
    """The direction of steepest change, from numpy's gradient, stands across the stripes."""
    levels = np.asarray(load_sample("gratings").convert("L"), dtype=np.float64)
    for column, orientation in enumerate((0, 45, 90, 135)):
        down, right = np.gradient(levels[40:88, 128 * column + 40 : 128 * column + 88])
        across = np.rad2deg(np.arctan2(2 * (down * right).sum(), (right**2 - down**2).sum()) / 2) % 180
        assert round(across) % 180 == (90 - orientation) % 180


def test_checkerboard_cells_have_their_sizes() -> None:
    levels = np.asarray(load_sample("checkerboard").convert("L"))
    for (top, left), cell in zip([(0, 0), (0, 256), (256, 0), (256, 256)], (64, 32, 16, 8), strict=True):
        changes = np.flatnonzero(np.diff(levels[top, left : left + 256].astype(int)))
        assert changes.tolist() == list(range(cell - 1, 255, cell))


@pytest.mark.parametrize(("name", "meant"), [("grace", "grace_hopper"), ("digits", "digit_3"), ("colors", "colours")])
def test_an_unknown_sample_suggests_one(name: str, meant: str) -> None:
    with pytest.raises(ImageError, match=f"did you mean .*'{meant}'"):
        load_sample(name)


def test_a_name_like_no_other_lists_all_samples() -> None:
    with pytest.raises(ImageError, match=" or ".join(f"'{name}'" for name in NAMES)):
        sample_bytes("")


def test_every_image_file_states_its_origin() -> None:
    readme = (ASSETS / "README.md").read_text()
    for path in (*ASSETS.glob("*.png"), *ASSETS.glob("*.jpg")):
        assert f"`{path.name}`" in readme


def test_a_missing_bundled_file_says_what_to_do() -> None:
    with pytest.raises(HookvizError, match=r"'none\.bin' is missing; reinstall"):
        bundled_file("none.bin")


def test_a_wheel_finds_its_files_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package's own folder comes first, then the tree's."""
    inside, outside = tmp_path / "hookviz" / "assets", tmp_path / "assets"
    for folder in (inside, outside):
        folder.mkdir(parents=True)
        (folder / "a.png").touch()
    (outside / "b.png").touch()
    monkeypatch.setattr(bundled, "_FOLDERS", (inside, outside))
    assert bundled_file("a.png") == inside / "a.png"
    assert bundled_file("b.png") == outside / "b.png"
