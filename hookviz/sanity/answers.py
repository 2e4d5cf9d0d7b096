"""What a classifier answered over a stream of images, and whether the answer holds when the image moves a little."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.nn.functional as F
from torch import Tensor

from hookviz.class_names import numbered_class_names
from hookviz.sanity.findings import Finding, counted, percent
from hookviz.sanity.items import Label
from hookviz.sanity.thresholds import Thresholds

Scores = npt.NDArray[np.float64]

SHIFTS: tuple[tuple[str, tuple[int, int]], ...] = (
    ("4 pixels left", (0, -4)),
    ("4 pixels right", (0, 4)),
    ("4 pixels up", (-4, 0)),
    ("4 pixels down", (4, 0)),
)
MIRRORED = "mirrored"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the network said of one image.

    ``entropy`` is a share of the largest possible one, 0 to 1. ``rank`` is where the image's label came, from 1, None
    where there is none.
    """

    image: str
    index: int
    probability: float
    entropy: float
    label: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Steadiness:
    """How often the most probable class stayed the same when images were changed a little: ``same`` of ``tried``."""

    change: str
    same: int
    tried: int


@dataclass(slots=True)
class Answers:
    """The answers so far; ``direction`` sums the directions of the scores, to see whether they are all one."""

    classes: int = 0
    each: list[Answer] = field(default_factory=list)
    direction: Scores = field(default_factory=lambda: np.zeros(0))

    def add(self, image: str, scores: Scores, label: int | None) -> None:
        """Take in one image's scores."""
        if not np.isfinite(scores).all():
            return
        self.classes = len(scores)
        shares = _softmax(scores)
        order = np.argsort(-scores, kind="stable")
        rank = None if label is None else int(np.flatnonzero(order == label)[0]) + 1
        top = int(order[0])
        self.each.append(Answer(image, top, float(shares[top]), _entropy(shares), label, rank))
        centred = scores - scores.mean()
        length = float(np.linalg.norm(centred))
        unit = centred / length if length else centred
        self.direction = unit if not len(self.direction) else self.direction + unit

    def state(self) -> dict[str, Any]:
        """All of it in what JSON has."""
        rows = [[one.image, one.index, one.probability, one.entropy, one.label, one.rank] for one in self.each]
        return {"classes": self.classes, "each": rows, "direction": self.direction.tolist()}

    @classmethod
    def of_state(cls, state: Mapping[str, Any]) -> Answers:
        """The answers that a state was taken of."""
        return cls(state["classes"], [Answer(*row) for row in state["each"]], np.array(state["direction"]))


def scores_in(output: Any) -> Scores | None:
    """The class scores of one image in what a network returned; None where there are none."""
    if isinstance(output, Tensor) and output.ndim == 2 and output.shape[0] == 1 and output.shape[1] > 1:
        return output.detach()[0].double().cpu().numpy()
    return None


def unknown_label_findings(labels: Sequence[str], classes: int) -> Iterator[Finding]:
    """Labels that name no class."""
    if labels:
        few = ", ".join(repr(one) for one in dict.fromkeys(labels[:3]))
        yield Finding(
            "warning",
            "answer",
            "unknown_labels",
            f"{counted(len(labels), 'label')} {'names' if len(labels) == 1 else 'name'} no class of this network: {few}"
            f"{' and others' if len(set(labels)) > 3 else ''}.",
            "Whether the answers to these images are right cannot be told.",
            f"Give class names as the network has them, or indices from 0 to {classes - 1}.",
            amount=len(labels),
            threshold=0,
        )


def label_index(label: Label | None, classes: int, categories: Sequence[str]) -> int | None:
    """The index of a class by its index or name; None where there is no such class."""
    if label is None:
        return None
    names = {name.casefold(): index for index, name in reversed(list(enumerate(categories)))}
    if isinstance(label, str) and label.casefold() in names:
        return names[label.casefold()]
    try:
        index = int(label)
    except ValueError:
        return None
    return index if 0 <= index < classes else None


def steadiness(batches: Sequence[Tensor], top: Callable[[Tensor], int | None]) -> list[Steadiness]:
    """How the answer to inputs (1, C, H, W) holds when they are mirrored and moved; ``top`` gives the best class."""
    changes: list[tuple[str, Callable[[Tensor], Tensor]]] = [(MIRRORED, lambda batch: batch.flip(-1))]
    changes += [(words, lambda batch, by=by: moved(batch, by)) for words, by in SHIFTS]  # type: ignore[misc]
    found = []
    for words, change in changes:
        pairs = [(top(batch), top(change(batch))) for batch in batches if batch.ndim == 4 and min(batch.shape[-2:]) > 8]
        known = [(one, other) for one, other in pairs if one is not None]
        if known:
            found.append(Steadiness(words, sum(one == other for one, other in known), len(known)))
    return found


def moved(batch: Tensor, by: tuple[int, int]) -> Tensor:
    """The images moved by whole pixels (down, right); what comes in at the edge repeats it."""
    down, right = by
    padded = F.pad(batch, (max(right, 0), max(-right, 0), max(down, 0), max(-down, 0)), mode="replicate")
    height, width = batch.shape[-2:]
    top, left = max(-down, 0), max(-right, 0)
    return padded[..., top : top + height, left : left + width]


def answer_findings(
    answers: Answers, categories: Sequence[str], head: str, thresholds: Thresholds, *, untrained: bool
) -> Iterator[Finding]:
    """Everything found in the answers; ``head`` is the layer that gives the scores."""
    if not answers.each or untrained:
        return
    yield from _labels(answers, categories, head, thresholds)
    unsure = [one for one in answers.each if one.entropy >= thresholds.entropy]
    if len(unsure) == len(answers.each):
        lowest = min(one.entropy for one in unsure)
        yield Finding(
            "warning",
            "answer",
            "undecided",
            f"The network is undecided about {_all_images(len(unsure))}: the entropy of its answer is "
            f"{percent(lowest)} of the largest possible, at least.",
            "It recognises nothing: all classes are about equally probable.",
            "Look at the input first, then at where the activations lose their variety.",
            amount=lowest,
            threshold=thresholds.entropy,
        )
    count = len(answers.each)
    likeness = float(np.linalg.norm(answers.direction)) / count
    if count >= thresholds.fewest_images_for_same_answer and likeness >= thresholds.same_answer:
        yield Finding(
            "warning",
            "answer",
            "same_answer",
            f"The answer does not depend on the image: over {count:,} images the class scores all point the same way "
            f"(mean cosine {likeness:.4f}).",
            "Somewhere the signal of the image is lost.",
            "Look for the first layer whose channels are constant.",
            amount=likeness,
            threshold=thresholds.same_answer,
        )


def _labels(answers: Answers, categories: Sequence[str], head: str, thresholds: Thresholds) -> Iterator[Finding]:
    labelled = [one for one in answers.each if one.rank is not None]
    if not labelled:
        return
    within = 5 if answers.classes > 20 else 1
    found = sum((one.rank or 0) <= within for one in labelled)
    share = found / len(labelled)
    if share >= thresholds.labels_found:
        return
    sure = float(np.median([one.probability for one in labelled]))
    names = categories if len(categories) == answers.classes else numbered_class_names(answers.classes)
    example = max(labelled, key=lambda one: one.probability)
    said = f"`{example.image}` is labelled {names[example.label or 0]!r} and called {names[example.index]!r}"
    decided = sure >= 3 / answers.classes and any(one.entropy < thresholds.entropy for one in labelled)
    where = "among the five most probable classes" if within == 5 else "as the most probable class"
    whose = "has its label" if found == 1 else "have their label"
    yield Finding(
        "warning",
        "answer",
        "wrong_labels",
        f"Only {found} of {counted(len(labelled), 'labelled image')} {whose} {where}; for instance {said} "
        f"({percent(example.probability)}).",
        "The network is decided, but about other classes: most likely the outputs of "
        f"`{head}` stand in another order than the class names."
        if decided
        else "The network does not know these classes, or does not recognise them in these images.",
        "Look whether class names and checkpoint belong together, and in which order the classes were trained.",
        (head,) if head else (),
        amount=share,
        threshold=thresholds.labels_found,
    )


def _softmax(scores: Scores) -> Scores:
    raised = np.exp(scores - scores.max())
    shares: Scores = raised / raised.sum()
    return shares


def _entropy(shares: Scores) -> float:
    some = shares[shares > 0]
    return max(0.0, float(-(some * np.log(some)).sum()) / math.log(len(shares)))


def _all_images(count: int) -> str:
    return "the image" if count == 1 else f"all {count:,} images"


def class_of(output: Any) -> int | None:
    """The class with the largest score; None where the output has no scores, or they are not finite."""
    scores = scores_in(output)
    if scores is None or not np.isfinite(scores).all():
        return None
    return int(np.argmax(scores))
