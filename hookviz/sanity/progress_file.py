"""What a check has measured so far, in a file, so that one that was broken off goes on where it was."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hookviz.errors import HookvizError
from hookviz.sanity.answers import Answers
from hookviz.sanity.channel_tally import ChannelTally
from hookviz.sanity.findings import Finding
from hookviz.sanity.identity import weights_digest
from hookviz.sanity.inspection import Inspection
from hookviz.sanity.layer_stream import LayerTally, Place, Power
from hookviz.sanity.report import CheckedImage, Unreadable
from hookviz.statistics import RunningSummary

SECONDS_BETWEEN = 2.0
"""How much work may be lost, unless told otherwise."""

_FORMAT = 1
_ABOUT = "about"

Arrays = dict[str, npt.NDArray[Any]]


class ProgressFile:
    """Keeps an inspection in a file, which is replaced as a whole, so that it is never half written.

    ``seconds_between`` is how much work may be lost where nobody can save any more.

    Raises:
        HookvizError: some items are no files, so nobody could tell whether they are the same the next time.
    """

    def __init__(self, path: Path, inspection: Inspection, *, seconds_between: float = SECONDS_BETWEEN) -> None:
        if any(not item.stamp for item in inspection.items):
            raise HookvizError("Only a check of files can be taken up again; leave progress_file out.")
        self._path = path
        self._inspection = inspection
        self._key = _key(inspection)
        self._seconds_between = seconds_between
        self._saved = time.monotonic()

    def resume(self) -> bool:
        """Take up what is in the file; False where there is none, it is broken, or it is of another check."""
        try:
            with np.load(self._path, allow_pickle=False) as file:  # a TypeError where it is a single array
                arrays = dict(file)
            about = json.loads(arrays.pop(_ABOUT).tobytes())
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, EOFError, NotImplementedError):
            return False
        if not isinstance(about, dict) or about.get("key") != self._key:
            return False
        _put(self._inspection, about, arrays)
        return True

    def save_now_and_then(self) -> None:
        """Write the file if the last time is long ago."""
        if time.monotonic() - self._saved >= self._seconds_between:
            self.save()

    def save(self) -> None:
        """Write the file.

        Raises:
            HookvizError: it cannot be written.
        """
        about, arrays = _take(self._inspection)
        text = json.dumps({"key": self._key} | about).encode()
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as file:
                arrays[_ABOUT] = np.frombuffer(text, np.uint8)
                np.savez(file, allow_pickle=False, **arrays)
            part.replace(self._path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise HookvizError(f"The progress cannot be kept in {self._path}: {error.strerror or error}.") from error
        self._saved = time.monotonic()

    @contextmanager
    def saved_on_the_way_out(self) -> Iterator[None]:
        """Write the file where the block is left by an error or an interruption."""
        try:
            yield
        except BaseException:
            self.save()
            raise

    def remove(self) -> None:
        """Delete the file, since the check is done."""
        self._path.unlink(missing_ok=True)


def _key(inspection: Inspection) -> str:
    """What makes two checks the same: the network with its modes, how images are prepared, and the images.

    What a function prepares can only be told by what it makes, so the first input itself is part of it.
    """
    subject = inspection.subject
    try:
        ours = version("hookviz")
    except PackageNotFoundError:  # run from the source tree
        ours = ""
    about = [
        *(_FORMAT, ours, subject.model.name, weights_digest(subject.module), str(subject.model.device)),
        [one.training for one in subject.module.modules()],
        repr(subject.model.normalization),
        [*subject.model.categories],
        _first_input(inspection),
        [[item.name, item.stamp, item.label] for item in inspection.items],
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _first_input(inspection: Inspection) -> str:
    """The SHA-256 of what the first image that can be used becomes; ``""`` where there is none."""
    for item in inspection.items:
        try:
            batch = inspection.subject.batch(item.read())
        except (HookvizError, MemoryError):
            continue
        digest = hashlib.sha256(f"{batch.dtype} {tuple(batch.shape)} ".encode())
        digest.update(batch.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()
    return ""


def _take(inspection: Inspection) -> tuple[dict[str, Any], Arrays]:
    arrays: Arrays = {}
    tallies = [
        _take_tally(number, place, tally, arrays)
        for number, (place, tally) in enumerate(inspection.stream.tallies.items() if inspection.stream else ())
    ]
    about = {
        "done": inspection.done,
        "failed": inspection.failed,
        "in_eval_mode": inspection.in_eval_mode,
        "unknown_labels": inspection.unknown_labels,
        "images": [[one.name, one.sha256] for one in inspection.images],
        "unreadable": [[one.name, one.reason] for one in inspection.unreadable],
        "answers": inspection.answers.state(),
        "findings": [asdict(one) for one in inspection.findings],
        "seen": inspection.stream.images if inspection.stream else 0,
        "tallies": tallies,
    }
    return about, arrays


def _take_tally(number: int, place: Place, tally: LayerTally, arrays: Arrays) -> dict[str, Any]:
    summary = tally.summary.state()
    bins = summary.pop("bins")
    arrays[f"{number} bins"] = np.array(bins, np.int64).reshape(2, -1)
    for name, channels in (("channels", tally.channels), ("incoming", tally.incoming_channels)):
        if channels is not None:
            arrays.update({f"{number} {name} {key}": value for key, value in channels.state().items()})
    return {
        "place": [place.layer, place.call, place.path],
        "summary": summary,
        "incoming": [tally.incoming.squares, tally.incoming.count],
        "shape": tally.shape,
    }


def _put(inspection: Inspection, about: dict[str, Any], arrays: Arrays) -> None:
    inspection.done, inspection.failed = about["done"], about["failed"]
    if about["in_eval_mode"]:
        inspection.go_on_in_eval_mode()
    inspection.unknown_labels = about["unknown_labels"]
    inspection.images = [CheckedImage(*row) for row in about["images"]]
    inspection.unreadable = [Unreadable(*row) for row in about["unreadable"]]
    inspection.answers = Answers.of_state(about["answers"])
    inspection.findings = [
        Finding(**one | {"layers": tuple(one["layers"]), "channels": tuple(one["channels"])})
        for one in about["findings"]
    ]
    if about["seen"]:
        tallies = {Place(*row["place"]): _put_tally(number, row, arrays) for number, row in enumerate(about["tallies"])}
        inspection.take_up(tallies, about["seen"])


def _put_tally(number: int, row: dict[str, Any], arrays: Arrays) -> LayerTally:
    return LayerTally(
        summary=RunningSummary.of_state(row["summary"] | {"bins": arrays[f"{number} bins"]}),
        channels=_put_channels(f"{number} channels ", arrays),
        incoming=Power(*row["incoming"]),
        incoming_channels=_put_channels(f"{number} incoming ", arrays),
        shape=tuple(row["shape"]),
    )


def _put_channels(prefix: str, arrays: Arrays) -> ChannelTally | None:
    state = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return ChannelTally.of_state(state) if state else None
