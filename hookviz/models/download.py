"""Weights files into torch's own cache: whole or not at all, with progress and with a time limit.

``torch.hub.download_url_to_file`` has neither a callback for progress nor a time limit, so that a page would wait
forever for a server that says nothing. What it does well is kept: a temporary file beside the target, checked against
the hash in its name.
"""

from __future__ import annotations

import re
from hashlib import sha256
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlparse
from urllib.request import Request, urlopen

import torch

from hookviz.errors import WeightsUnavailableError
from hookviz.models.architecture import OnProgress

SECONDS_WITHOUT_A_BYTE = 20.0
_CHUNK = 1 << 20


def cached_weights(url: str, on_progress: OnProgress | None = None, *, name: str = "") -> Path:
    """The file of ``url`` in torch's cache, downloaded where it is not there yet.

    ``name`` is what it is called there, where the address ends in a name that many files share.

    Raises:
        WeightsUnavailableError: it could not be fetched whole; nothing of it is left on the disk.
    """
    path = Path(torch.hub.get_dir(), "checkpoints", name or Path(urlparse(url).path).name)
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _download(url, path, on_progress)
        except (OSError, HTTPException) as error:
            raise WeightsUnavailableError(f"{path.name} could not be downloaded: {_reason(error, url)}") from error
    return path


def _download(url: str, path: Path, on_progress: OnProgress | None) -> None:
    # Two loading at once each write a file of their own; the last one put in place wins, and both are whole.
    with NamedTemporaryFile(dir=path.parent, prefix=path.name + ".", suffix=".partial", delete=False) as file:
        partial = Path(file.name)
        try:
            request = Request(url, headers={"User-Agent": "hookviz"})  # noqa: S310 - from torchvision's own list
            with urlopen(request, timeout=SECONDS_WITHOUT_A_BYTE) as response:  # noqa: S310 - the same
                digest = _copy(response, file, on_progress)
            file.close()
            _check_hash(path.name, digest)
            partial.chmod(0o644)  # a temporary file is its owner's alone, and torch's cache may be shared
            partial.replace(path)
        finally:
            file.close()
            partial.unlink(missing_ok=True)


def _copy(response: HTTPResponse, file: IO[bytes], on_progress: OnProgress | None) -> str:
    total, done, digest = int(response.headers.get("Content-Length") or 0), 0, sha256()
    while True:
        if on_progress is not None:
            on_progress(done, total)
        chunk = response.read(_CHUNK)
        if not chunk:
            break
        file.write(chunk)
        digest.update(chunk)
        done += len(chunk)
    if done < total:
        raise ConnectionError(f"the connection broke after {done} of {total} bytes")
    return digest.hexdigest()


def _check_hash(name: str, digest: str) -> None:
    promised = re.search(r"-([a-f0-9]{8,})\.", name)
    if promised is not None and not digest.startswith(promised[1]):
        raise ConnectionError("what arrived is another file than the name promises")


def _reason(error: Exception, url: str) -> str:
    host = urlparse(url).netloc
    if isinstance(error, HTTPError):
        return f"{host} answered {error.code} {error.reason}"
    if isinstance(error, TimeoutError) or (isinstance(error, URLError) and isinstance(error.reason, TimeoutError)):
        return f"{host} did not answer"
    if isinstance(error, URLError):
        return f"{host} could not be reached"
    if isinstance(error, HTTPException):
        return f"the connection to {host} broke"
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)).strip()
