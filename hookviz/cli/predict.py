"""``hookviz predict``: what a network says of an image."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import numpy.typing as npt

from hookviz.cli.console import Console
from hookviz.cli.parser import Commands, Parser, add_command, add_device, add_image, add_json, add_model, positive
from hookviz.cli.subject import Subject, forward_in_words, load_subject
from hookviz.models import ClassMap, Detections, Flow
from hookviz.models.drawing import CERTAIN

_DESCRIPTION = f"""\
Print what the network says: of a classifier the most probable classes; of a detector
the things with a score of at least {CERTAIN} (with --json all of them); of a segmentation
network the share of pixels per class; of optical flow the length of the motion."""

_EXAMPLES = """\
  hookviz predict efficientnet_lite0 grace_hopper
  hookviz predict resnet18 photo.jpg -k 3 --json
  hookviz predict resnet18 photo.jpg --weights own.pth --class-names names.txt"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "predict",
        run,
        help="print what a network says of an image",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
    )
    add_model(parser)
    add_image(parser)
    parser.add_argument("-k", metavar="K", type=positive, default=5, help="how many classes to print; by default 5")
    add_device(parser)
    add_json(parser)
    return parser


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Print the prediction."""
    subject = load_subject(chosen, console)
    if not subject.model.trained:
        console.note(f"{chosen.model} is untrained: what it says means nothing")
    console.progress(f"running {chosen.model}")
    with forward_in_words(chosen.model):
        said = subject.model.predict(subject.image, k=chosen.k, on_note=console.note)
    if chosen.json:
        console.json(_as_json(subject, said))
    else:
        console.result("\n".join(_lines(said)))
    return 0


def _as_json(subject: Subject, said: Any) -> dict[str, Any]:
    model = subject.model
    return {
        "model": model.name,
        "weights": model.weights,
        "trained": model.trained,
        "task": model.task,
        "predictions": _predictions(said),
    }


def _predictions(said: Any) -> list[dict[str, Any]]:
    match said:
        case Detections():
            found = zip(said.classes.tolist(), said.labels, said.scores.tolist(), said.boxes.tolist(), strict=True)
            return [{"index": index, "label": label, "score": score, "box": box} for index, label, score, box in found]
        case ClassMap():
            return [{"label": label, "share": share} for label, share in said.shares.items()]
        case Flow():
            length = _lengths(said)
            return [{"mean_pixels": float(length.mean()), "max_pixels": float(length.max())}]
        case _:
            return [{"index": one.index, "label": one.label, "probability": one.probability} for one in said]


def _lines(said: Any) -> list[str]:
    match said:
        case Detections():
            found = said.above(CERTAIN)
            lines = [f"{score:.2f}  {label}" for label, score in zip(found.labels, found.scores, strict=True)]
            return lines or [f"nothing with a score of {CERTAIN} or more, among {len(said)} guesses"]
        case ClassMap():
            return [_share(share, label) for label, share in said.shares.items()]
        case Flow():
            length = _lengths(said)
            return [f"motion of {length.mean():.1f} pixels on average, {length.max():.1f} at most"]
        case _:
            return [_share(one.probability, one.label) for one in said]


def _share(share: float, label: str) -> str:
    return f"{100 * share:5.1f} %  {label}"


def _lengths(flow: Flow) -> npt.NDArray[np.float64]:
    lengths: npt.NDArray[np.float64] = np.hypot(*flow.vectors.astype(np.float64))
    return lengths
