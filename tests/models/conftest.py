from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image


@pytest.fixture
def photo() -> Image.Image:
    """640x427, the size of a common photo: gradients with noise, so that every resize gives values of its own."""
    rows, columns = np.mgrid[0:427, 0:640]
    smooth = np.stack([rows * 255 / 426, columns * 255 / 639, (rows + columns) * 255 / 1065], axis=2)
    noise = np.random.default_rng(10).normal(0, 25, smooth.shape)
    return Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8))


@pytest.fixture
def torch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache of torch's own; the path is where its weights files go."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    yield tmp_path / "hub" / "checkpoints"
    assert not list(tmp_path.rglob("*.partial*"))
    shutil.rmtree(tmp_path)  # pytest would keep hundreds of megabytes
