"""The networks of torchvision and timm, each with random weights and an input as small as it takes."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.models.detection.transform import GeneralizedRCNNTransform

from hookviz.errors import HookvizError
from hookviz.models import Model, load_model
from hookviz.samples import load_sample
from tests.hooks.exactness import prove

SIDES = (64, 96, 128, 160, 224)
"""Pixels. An input is cropped to the first of these that the network accepts, and stays whole where it accepts none."""
CLIPS = ((8, 64), (16, 112), (16, 224))
"""The same for clips: frames, and pixels a side."""
DETECTOR = {"score_thresh": 0.0, "detections_per_img": 5, "topk_candidates": 50}
"""An untrained detector finds nothing above its threshold, and then its masks and keypoints are empty."""
DETECTOR_SIDES = (160, 256)


@dataclass(frozen=True)
class Verdict:
    """One line of the table. ``word`` is exact, wrong, or refused."""

    name: str
    word: str
    detail: str
    shape: str = ""
    layers: int = 0
    calls: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        counts = f"{self.layers:5} layers {self.calls:5} calls {self.seconds:6.1f} s"
        return f"{self.word:7} {self.name:44} {counts}  {self.shape}  {self.detail}".rstrip()


def visit(name: str) -> Verdict:
    """Prove one network exact, or say what is not; its memory is free again afterwards."""
    started = time.monotonic()
    try:
        model = load_model(name, weights=None, device="cpu")
        note = made_smaller(model)
        arguments = smallest_arguments(model)
        proof = prove(model.module, arguments)
    except HookvizError as error:
        return Verdict(name, "refused", str(error), seconds=time.monotonic() - started)
    finally:
        gc.collect()
    return Verdict(
        name,
        "wrong" if proof.wrong else "exact",
        "; ".join(proof.wrong[:3]) + (f" and {len(proof.wrong) - 3} more" if len(proof.wrong) > 3 else "") or note,
        shapes(arguments),
        proof.layers,
        proof.calls,
        time.monotonic() - started,
    )


def made_smaller(model: Model) -> str:
    """Let a detector resize to less and find five things, whatever it thinks of them; says so."""
    resize = getattr(model.module, "transform", None)
    if not isinstance(resize, GeneralizedRCNNTransform):
        return ""
    for part in (model.module, getattr(model.module, "roi_heads", None)):
        for option in DETECTOR.keys() & vars(part or nn.Identity()).keys():
            setattr(part, option, DETECTOR[option])
    if resize.fixed_size is not None:
        return "five detections at any score"
    resize.min_size, resize.max_size = (DETECTOR_SIDES[0],), DETECTOR_SIDES[1]
    return f"resized inside to {DETECTOR_SIDES[0]}..{DETECTOR_SIDES[1]} pixels, five detections at any score"


def smallest_arguments(model: Model) -> tuple[Any, ...]:
    """What the network takes for a photograph, cropped as far as it allows."""
    whole = model.prepare(load_sample("grace_hopper").resize((320, 256)))
    config = getattr(model.module, "pretrained_cfg", {})
    for batch in () if config.get("fixed_input_size") else crops(whole):
        arguments = model.arguments(batch)
        if accepts(model.module, arguments):
            return arguments
    return model.arguments(whole)


def crops(whole: Tensor) -> Iterator[Tensor]:
    if whole.ndim == 5:
        yield from (whole[:, :, :frames, :side, :side].contiguous() for frames, side in CLIPS)
    else:
        yield from (whole[..., :side, :side].contiguous() for side in SIDES if side < min(whole.shape[-2:]))


def accepts(network: nn.Module, arguments: tuple[Any, ...]) -> bool:
    try:
        with torch.no_grad():
            network(*arguments)
    except (RuntimeError, AssertionError, ValueError, IndexError):
        return False
    return True


def shapes(value: Any) -> str:
    if isinstance(value, Tensor):
        return "x".join(map(str, value.shape))
    return " + ".join(map(shapes, value))


class Ledger:
    """Prints each verdict as it comes, and at the end how many there were of each."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._verdicts: list[Verdict] = []

    def note(self, verdict: Verdict) -> None:
        self._verdicts.append(verdict)
        say(f"{len(self._verdicts):4} {verdict}")

    def close(self) -> None:
        counted = Counter(verdict.word for verdict in self._verdicts)
        summary = ", ".join(f"{counted[word]} {word}" for word in ("exact", "wrong", "refused"))
        say(f"\n{self._title}: {summary} of {len(self._verdicts)}")
        for verdict in self._verdicts:
            if verdict.word != "exact":
                say(f"  {verdict}")


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - the table is what the sweep is for
