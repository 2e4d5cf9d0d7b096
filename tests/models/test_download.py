"""Weights from a server of our own that can do everything wrong a server can do."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn
from torchvision.models import SqueezeNet1_1_Weights

from hookviz.errors import WeightsUnavailableError
from hookviz.models import download, load_model
from hookviz.models.download import cached_weights

BODY = bytes(range(256)) * 12_000
NAME = f"tiny-{hashlib.sha256(BODY).hexdigest()[:8]}.pth"


class Unreliable(BaseHTTPRequestHandler):
    """The first part of the path says what goes wrong."""

    def do_GET(self) -> None:
        match self.path.split("/")[1]:
            case "good":
                self.reply(BODY, len(BODY))
            case "cut":
                self.reply(BODY[: len(BODY) // 2], len(BODY))
            case "other":
                self.reply(BODY[::-1], len(BODY))
            case "unsized":
                self.reply(BODY, None)
            case "unsized-cut":
                self.reply(BODY[: len(BODY) // 2], None)
            case "garbled":
                self.wfile.write(b"what is HTTP?\r\n\r\n")
            case "silent":
                threading.Event().wait(2)
            case _:
                self.send_error(404, "Not Found")

    def reply(self, body: bytes, length: int | None) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Unreliable) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_download_is_whole_and_tells_its_progress(server: str, torch_home: Path) -> None:
    told: list[tuple[int, int]] = []
    path = cached_weights(f"{server}/good/{NAME}", lambda *bytes_: told.append(bytes_))
    assert path == torch_home / NAME
    assert path.read_bytes() == BODY
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert (told[0], told[-1]) == ((0, len(BODY)), (len(BODY), len(BODY)))
    assert told == sorted(told)
    assert len(told) > 3


def test_a_file_in_the_cache_is_not_asked_for_again(torch_home: Path) -> None:
    torch_home.mkdir(parents=True)
    (torch_home / NAME).write_bytes(b"here already")
    assert cached_weights(f"http://nowhere.invalid/{NAME}").read_bytes() == b"here already"


def test_a_server_that_does_not_say_the_size_is_fine(server: str, torch_home: Path) -> None:
    told: list[tuple[int, int]] = []
    cached_weights(f"{server}/unsized/{NAME}", lambda *bytes_: told.append(bytes_))
    assert (torch_home / NAME).read_bytes() == BODY
    assert told[-1] == (len(BODY), 0)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("cut", r"the connection broke after 1536000 of 3072000 bytes"),
        ("unsized-cut", r"what arrived is another file than the name promises"),
        ("other", r"what arrived is another file than the name promises"),
        ("missing", r"127\.0\.0\.1:\d+ answered 404 Not Found"),
        ("garbled", r"the connection to 127\.0\.0\.1:\d+ broke"),
        ("silent", r"127\.0\.0\.1:\d+ did not answer"),
    ],
)
def test_whatever_goes_wrong_is_one_sentence_and_leaves_nothing(
    fault: str, reason: str, server: str, torch_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SECONDS_WITHOUT_A_BYTE", 0.5)
    with pytest.raises(WeightsUnavailableError, match=f"^{re.escape(NAME)} could not be downloaded: {reason}$"):
        cached_weights(f"{server}/{fault}/{NAME}")
    assert list(torch_home.iterdir()) == []


def test_a_refused_connection_is_one_sentence(torch_home: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(WeightsUnavailableError, match=rf"downloaded: 127\.0\.0\.1:{port} could not be reached$"):
        cached_weights(f"http://127.0.0.1:{port}/{NAME}")
    assert list(torch_home.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_sentence(server: str, torch_home: Path) -> None:
    torch_home.parent.mkdir(parents=True)
    torch_home.write_text("a file where the folder should be")
    with pytest.raises(WeightsUnavailableError, match=rf"^{re.escape(NAME)} could not be downloaded: File exists$"):
        cached_weights(f"{server}/good/{NAME}")


class Rerun(BaseException):
    """As a page raises it when somebody clicks while the bar moves."""


def test_an_interrupted_download_leaves_nothing(server: str, torch_home: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        if done:
            raise Rerun

    with pytest.raises(Rerun):
        cached_weights(f"{server}/good/{NAME}", interrupt)
    assert list(torch_home.iterdir()) == []


def test_many_at_once_give_one_whole_file(server: str, torch_home: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        paths = set(pool.map(lambda _: cached_weights(f"{server}/good/{NAME}"), range(6)))
    assert paths == {torch_home / NAME}
    assert (torch_home / NAME).read_bytes() == BODY
    assert list(torch_home.iterdir()) == [torch_home / NAME]


def stored_state(name: str, path: Path, **options: object) -> nn.Module:
    """Put a file of random values where torchvision's cache has the real one; the network that it came from."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module: nn.Module = torchvision.models.get_model(name, weights=None, **options)
    torch.save(module.state_dict(), path)
    return module


@pytest.mark.parametrize(
    ("name", "options", "lost"),
    [
        ("resnet18", {}, ""),
        ("densenet121", {}, ""),
        ("swin_t", {}, ""),
        ("maxvit_t", {}, ""),
        ("mnasnet0_5", {}, ""),
        ("googlenet", {"aux_logits": True, "init_weights": False}, "aux"),
        ("inception_v3", {"aux_logits": True, "init_weights": False}, ""),
    ],
)
def test_weights_in_the_cache_are_loaded_as_torchvision_loads_them(
    name: str, options: dict[str, object], lost: str, torch_home: Path
) -> None:
    """C63: and GoogLeNet's untrained auxiliary heads go, so that names agree with weights=None."""
    entry = torchvision.models.get_model_weights(name).DEFAULT
    source = stored_state(name, torch_home / Path(entry.url).name, **options)
    model = load_model(name, device="cpu")
    expected = {key: value for key, value in source.state_dict().items() if not lost or not key.startswith(lost)}
    loaded = model.module.state_dict()
    assert list(loaded) == list(expected)
    assert all(torch.equal(loaded[key], value) for key, value in expected.items())
    untrained = load_model(name, None, "cpu").module
    assert [n for n, _ in model.module.named_modules()] == [n for n, _ in untrained.named_modules()]
    assert (model.weights, model.trained) == (entry.name, True)
    assert all(parameter.requires_grad for parameter in model.module.parameters())


def test_old_key_names_of_densenet_are_understood(torch_home: Path) -> None:
    entry = torchvision.models.DenseNet121_Weights.DEFAULT
    source = stored_state("densenet121", torch_home / Path(entry.url).name)
    # The file on torchvision's server is from before torch 0.4.1, which also began to count batches.
    kept = {key: value for key, value in source.state_dict().items() if not key.endswith("num_batches_tracked")}
    old = {re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", key): value for key, value in kept.items()}
    assert len(old.keys() - kept.keys()) == 58 * 2 * (4 + 1)
    torch.save(old, torch_home / Path(entry.url).name)
    loaded = load_model("densenet121", device="cpu").module.state_dict()
    assert all(torch.equal(loaded[key], value) for key, value in source.state_dict().items())


@pytest.mark.parametrize("weights", ["IMAGENET1K_V1", "imagenet1k_v1", SqueezeNet1_1_Weights.IMAGENET1K_V1])
def test_weights_are_asked_for_by_name_or_member(weights: object, torch_home: Path) -> None:
    stored_state("squeezenet1_1", torch_home / Path(SqueezeNet1_1_Weights.DEFAULT.url).name)
    model = load_model("squeezenet1_1", weights, "cpu")
    assert model.weights == "IMAGENET1K_V1"
    assert "SqueezeNet1_1_Weights.IMAGENET1K_V1" in model.source
    assert load_model("squeezenet1_1", "SqueezeNet1_1_Weights.IMAGENET1K_V1", "cpu").weights == "IMAGENET1K_V1"


@pytest.mark.usefixtures("torch_home")
def test_without_a_network_the_untrained_model_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(WeightsUnavailableError) as caught:
        load_model("resnet18")
    assert str(caught.value) == (
        "The weights IMAGENET1K_V1 of resnet18: resnet18-f37072fd.pth could not be downloaded: "
        "download.pytorch.org could not be reached; "
        "load_model('resnet18', weights=None) gives the same network untrained."
    )


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>log in first</html>", b"cnowhere\nname\n.", b"\x80\x02(K\x01.", None],
    ids=["empty", "html", "import", "unbalanced", "half"],
)
def test_a_damaged_file_in_the_cache_is_one_sentence(content: bytes | None, torch_home: Path) -> None:
    path = torch_home / "squeezenet1_1-b8a52dc0.pth"
    whole = io.BytesIO()
    stored_state("squeezenet1_1", path)
    whole.write(path.read_bytes())
    path.write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2] if content is None else content)
    with pytest.raises(
        WeightsUnavailableError, match=rf"^The weights file {re.escape(str(path))} is damaged; delete it"
    ):
        load_model("squeezenet1_1")


def test_weights_of_another_network_in_the_cache_are_one_sentence(torch_home: Path) -> None:
    stored_state("squeezenet1_0", torch_home / "squeezenet1_1-b8a52dc0.pth")
    with pytest.raises(WeightsUnavailableError, match="is damaged; delete it and load squeezenet1_1 again"):
        load_model("squeezenet1_1")
