"""Weights of timm from a hub of our own: a folder behind a web server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hookviz.errors import WeightsUnavailableError
from hookviz.models.hub import hub_weights

REPOSITORY = "timm/tiny.in1k"
CONTENT = bytes(range(256)) * 9_000


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture
def hub(tmp_path: Path, torch_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The repository's folder; torch's cache and the hub's are empty."""
    folder = tmp_path / "served" / REPOSITORY / "resolve" / "main"
    folder.mkdir(parents=True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "served")) as running:
        address = f"http://127.0.0.1:{running.server_port}"
        monkeypatch.setattr(
            "huggingface_hub.hf_hub_url", lambda repository, name: f"{address}/{repository}/resolve/main/{name}"
        )
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield folder
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("file_name", ["model.safetensors", "pytorch_model.bin"])
def test_a_file_of_either_name_is_downloaded_whole_and_once(file_name: str, hub: Path, torch_home: Path) -> None:
    (hub / file_name).write_bytes(CONTENT)
    told: list[tuple[int, int]] = []
    path = hub_weights({"hf_hub_id": REPOSITORY}, lambda *bytes_: told.append(bytes_))
    assert path == torch_home / f"timm--tiny.in1k--{file_name}"
    assert path.read_bytes() == CONTENT
    assert told[-1] == (len(CONTENT), len(CONTENT))
    if file_name == "model.safetensors":
        (hub / file_name).unlink()
        assert hub_weights({"hf_hub_id": REPOSITORY}).read_bytes() == CONTENT


@pytest.mark.usefixtures("hub")
def test_a_repository_without_weights_is_one_sentence(torch_home: Path) -> None:
    with pytest.raises(
        WeightsUnavailableError,
        match=r"^timm--tiny\.in1k--pytorch_model\.bin could not be downloaded: 127\.0\.0\.1:\d+ answered 404 ",
    ):
        hub_weights({"hf_hub_id": REPOSITORY})
    assert list(torch_home.iterdir()) == []


def test_weights_that_are_not_on_the_hub_have_an_address(torch_home: Path) -> None:
    torch_home.mkdir(parents=True)
    (torch_home / "tiny.pth").write_bytes(b"here")
    assert hub_weights({"hf_hub_id": None, "url": "https://nowhere.invalid/tiny.pth"}) == torch_home / "tiny.pth"
