"""Checking a network: the pass over the images, then everything that the first ones and the weights tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from hookviz.models import Model
from hookviz.sanity.conclusions import Against, conclude
from hookviz.sanity.inspection import Inspection
from hookviz.sanity.items import Label, items_of
from hookviz.sanity.progress_file import ProgressFile
from hookviz.sanity.report import Report
from hookviz.sanity.subject import Prepare, subject_of
from hookviz.sanity.thresholds import Thresholds

OnProgress = Callable[[int, int], object]


def check(  # noqa: PLR0913  # all but two have defaults, and each says another thing about the same question
    model: Model | nn.Module | str,
    images: Any,
    *,
    labels: Sequence[Label] | Mapping[str, Label] | Literal["folders"] | None = None,
    prepare: Prepare | None = None,
    weights: Any = "default",
    device: str | torch.device = "auto",
    against: Against = "untrained",
    thresholds: Thresholds | None = None,
    progress_file: str | Path | None = None,
    on_progress: OnProgress | None = None,
) -> Report:
    """Look whether a network is all right, and the way it is fed.

    >>> report = check(load_model("efficientnet_lite0"), "photos/")
    >>> print(report)
    >>> report.save("report.html")

    The network runs in its own train and eval flags, on a private copy; it is left as it was found. Memory does not
    grow with the number of images.

    Args:
        model: a loaded model, a module, or a name that ``load_model`` takes.
        images: a path of a file or folder, a PIL image, a prepared tensor (N, C, H, W), or a list of any of these.
        labels: the class of each image, by index or name, in their order or by their names; ``"folders"`` takes the
            name of the folder that an image lies in.
        prepare: how you make the network's input of a picture, (C, H, W) or (1, C, H, W), if that is not by the
            weights' own recipe; it is compared with that.
        weights: of a model named by its name, as for ``load_model``.
        device: likewise.
        against: what layers are compared with: the same network untrained, another one, or None for nothing.
        thresholds: from where on something is worth a finding.
        progress_file: where to keep what was done, so that a check that was broken off goes on from there; it is
            removed at the end.
        on_progress: called with how many images are done and how many there are: at once, then after each image. What
            it raises ends the check, and the progress file then has all images done so far.

    Raises:
        HookvizError: no such network, or no images. Images that cannot be read are listed in the report instead.
    """
    subject = subject_of(model, prepare, weights=weights, device=device)
    inspection = Inspection(subject, items_of(images, labels))
    keeping = None if progress_file is None else ProgressFile(Path(progress_file), inspection)
    if keeping is not None:
        keeping.resume()
    _go_through(inspection, keeping, on_progress or (lambda *_: None))
    with keeping.saved_on_the_way_out() if keeping is not None else nullcontext():
        report = conclude(inspection, thresholds or Thresholds(), against=against)
    if keeping is not None:
        keeping.remove()
    return report


def _go_through(inspection: Inspection, keeping: ProgressFile | None, on_progress: OnProgress) -> None:
    """Look at every image that is left; an interruption within one leaves what was saved before it."""
    on_progress(inspection.done, len(inspection.items))
    while not inspection.finished:
        inspection.step()
        if keeping is not None:
            keeping.save_now_and_then()
        with keeping.saved_on_the_way_out() if keeping is not None else nullcontext():
            on_progress(inspection.done, len(inspection.items))
