from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from hookviz.cli.progress_place import cache_folder, progress_path


class TestCacheFolder:
    def test_is_where_the_environment_says(self, tmp_path: Path) -> None:
        assert cache_folder({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path

    @pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
    @pytest.mark.parametrize("chosen", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "relative"}])
    def test_is_the_platforms_own_otherwise(
        self, platform: str, chosen: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A relative path is invalid and to be ignored, says the XDG Base Directory Specification."""
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        expected = {
            "linux": tmp_path / "home" / ".cache",
            "darwin": tmp_path / "home" / "Library" / "Caches",
            "win32": tmp_path / "local",
        }
        assert cache_folder(chosen | {"LOCALAPPDATA": str(tmp_path / "local")}) == expected[platform]

    def test_that_nobody_knows_is_an_error_of_the_system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def home(_: type[Path]) -> Path:
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", classmethod(home))
        with pytest.raises(OSError, match="Could not determine home directory"):
            cache_folder({})


class TestProgressPath:
    def test_tells_checks_apart_and_knows_them_again(self, tmp_path: Path) -> None:
        here = {"XDG_CACHE_HOME": str(tmp_path)}
        one, other = progress_path(["simple_cnn", "a"], here), progress_path(["simple_cnn", "b"], here)
        assert one != other
        assert one == progress_path(["simple_cnn", "a"], here)
        assert one.parent == tmp_path / "hookviz" / "checks"
        assert list(one.parent.iterdir()) == []

    def test_forgets_what_nobody_took_up_for_a_month(self, tmp_path: Path) -> None:
        folder = progress_path([], {"XDG_CACHE_HOME": str(tmp_path)}).parent
        for name, days in (("old.npz", 31), ("old.npz.77.part", 31), ("new.npz", 29)):
            (folder / name).touch()
            written = time.time() - days * 24 * 60 * 60
            os.utime(folder / name, (written, written))
        progress_path([], {"XDG_CACHE_HOME": str(tmp_path)})
        assert [path.name for path in folder.iterdir()] == ["new.npz"]
