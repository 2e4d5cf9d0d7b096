from __future__ import annotations

import builtins
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hookviz.errors import ImageError
from hookviz.models import load_frames

MP4_START = b"\x00\x00\x00\x20ftypisom" + bytes(500)


def moving(picture_format: str, count: int, size: tuple[int, int] = (40, 30)) -> bytes:
    """Frames of one gray each, 2 levels from frame to frame."""
    frames = [Image.new("RGB", size, (2 * number,) * 3) for number in range(count)]
    file = io.BytesIO()
    options: dict[str, Any] = {"lossless": True} if picture_format == "WEBP" else {}
    frames[0].save(file, picture_format, save_all=True, append_images=frames[1:], duration=50, **options)
    return file.getvalue()


def levels(frames: list[Image.Image]) -> list[int]:
    assert all(frame.mode == "RGB" for frame in frames)
    return [int(np.asarray(frame)[0, 0, 0]) for frame in frames]


@pytest.mark.parametrize("picture_format", ["GIF", "WEBP", "PNG"])
def test_every_frame_of_an_animation_is_read(picture_format: str, tmp_path: Path) -> None:
    content = moving(picture_format, 12)
    (tmp_path / "moving").write_bytes(content)
    assert levels(load_frames(content)) == list(range(0, 24, 2))
    assert levels(load_frames(tmp_path / "moving")) == list(range(0, 24, 2))


def test_a_still_picture_is_one_frame(tmp_path: Path) -> None:
    Image.new("RGB", (5, 4), (7, 7, 7)).save(tmp_path / "still.png")
    assert levels(load_frames(tmp_path / "still.png")) == [7]


@pytest.mark.parametrize(("count", "stride"), [(128, 1), (129, 2), (300, 4)])
def test_of_a_long_one_every_second_or_fourth_frame_is_kept(count: int, stride: int) -> None:
    frames = [Image.new("L", (8, 8), 0) for _ in range(count)]
    for number, frame in enumerate(frames):
        frame.putpixel((0, 0), number % 256)
        frame.putpixel((1, 0), number // 256)
    file = io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    found = [np.asarray(frame)[0, :2, 0].tolist() for frame in load_frames(file.getvalue())]
    assert [low + 256 * high for low, high in found] == list(range(0, count, stride))


def test_large_frames_are_kept_up_to_a_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.models.movie.MOST_PIXELS", 40 * 30 * 5)
    assert levels(load_frames(moving("GIF", 12))) == [0, 8, 16]


def test_a_damaged_later_frame_is_one_sentence() -> None:
    content = moving("WEBP", 12, (200, 200))
    with pytest.raises(ImageError, match=r"^[A-Z][^\n]*\.$"):
        load_frames(content[: len(content) // 2])


def test_something_else_is_one_sentence() -> None:
    with pytest.raises(ImageError, match=r"^[A-Z][^\n]*\.$"):
        load_frames(b"no picture at all")


def test_a_film_without_pyav_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "av":
            raise ImportError(name)
        return importing(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImageError, match=r"^Films are read by PyAV, which is not installed; pip install av, or use a"):
        load_frames(MP4_START)


class Film:
    """As PyAV opens one: a context manager that decodes frames which turn into pictures."""

    def __enter__(self) -> Film:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def decode(self, *, video: int) -> Iterator[Any]:
        for number in range(3):
            yield SimpleNamespace(to_image=lambda number=number: Image.new("RGB", (9, 9), (number,) * 3))


def test_a_film_is_read_by_pyav(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", SimpleNamespace(open=lambda stream: Film()))
    assert levels(load_frames(MP4_START)) == [0, 1, 2]


def test_a_damaged_film_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ValueError("invalid data found when processing input")

    monkeypatch.setitem(sys.modules, "av", SimpleNamespace(open=fail))
    with pytest.raises(ImageError, match=r"^The film could not be read; it may be damaged or have no pictures\.$"):
        load_frames(MP4_START)
