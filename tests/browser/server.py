"""The page's server for one test session, cut off from every network."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

ROOT = Path(__file__).parents[2]
_SECONDS_TO_START = 90


@dataclass(frozen=True)
class Server:
    """A running page: its address, its log, and what it asked the network for."""

    url: str
    probe_url: str
    log_path: Path
    torch_home: Path
    asked_for: list[str]

    def log(self) -> str:
        return self.log_path.read_text()

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(_read(self.probe_url))
        return facts

    def weights_files(self) -> list[str]:
        return sorted(path.name for path in self.torch_home.rglob("*") if path.is_file())


@contextmanager
def started(folder: Path, *words: str) -> Iterator[Server]:
    """A server whose every request to the network meets a proxy that notes and refuses it.

    ``words`` are for the page: what follows ``--`` on the command line.
    """
    with refusing_proxy() as (proxy_port, asked_for):
        page_port, probe_port = free_port(), free_port()
        log_path = folder / "server.log"
        server = Server(
            f"http://localhost:{page_port}",
            f"http://127.0.0.1:{probe_port}",
            log_path,
            folder / "torch",
            asked_for,
        )
        with log_path.open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.browser.serve", str(page_port), str(probe_port), *words],
                cwd=ROOT,
                env=_environment(folder, f"http://127.0.0.1:{proxy_port}"),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_until_up(server, process)
            yield server
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _environment(folder: Path, proxy: str) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.upper().startswith("STREAMLIT_")}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy)
    cache = {"TORCH_HOME": str(folder / "torch"), "HF_HOME": str(folder / "hf"), "HOME": str(folder)}
    return ours | proxies | cache | {"no_proxy": "localhost,127.0.0.1", "NO_PROXY": "localhost,127.0.0.1"}


def _wait_until_up(server: Server, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        try:
            if _read(f"{server.url}/_stcore/health") == b"ok":
                return
        except URLError:
            time.sleep(0.1)
    raise RuntimeError(f"the page's server did not start:\n{server.log()}")


def _read(url: str) -> bytes:
    with build_opener(ProxyHandler({})).open(url, timeout=60) as response:
        content: bytes = response.read()
    return content


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port


@contextmanager
def refusing_proxy() -> Iterator[tuple[int, list[str]]]:
    """A proxy that answers 403 to everything, and a growing list of the request lines it got."""
    asked_for: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed: the session is over
                    return
                with connection:
                    asked_for.append(connection.recv(4096).split(b"\r\n")[0].decode(errors="replace"))
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        threading.Thread(target=refuse, daemon=True).start()
        yield int(listener.getsockname()[1]), asked_for
