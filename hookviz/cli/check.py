"""``hookviz check``: whether a network is all right, and the way it is fed."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import Literal

from PIL import Image

from hookviz.cli.check_options import (
    NEVER,
    NOTHING,
    UNTRAINED,
    add_comparisons,
    add_images,
    add_outcomes,
    threshold_lines,
)
from hookviz.cli.checked_images import named_items
from hookviz.cli.console import Console
from hookviz.cli.course import Course
from hookviz.cli.image_labels import labelled
from hookviz.cli.own_prepare import named_prepare
from hookviz.cli.parser import Commands, Parser, add_command, add_device, add_model
from hookviz.cli.report_files import ReportFiles
from hookviz.cli.subject import load
from hookviz.errors import HookvizError
from hookviz.models import Model, load_model
from hookviz.sanity import Item, Report, Severity, Thresholds, check

FINE, FOUND, UNREADABLE = 0, 1, 4
"""The last two add up."""

_DESCRIPTION = f"""\
Look whether a network is all right, and the way it is fed: inputs prepared otherwise
than the weights want it, dead, constant and exploding layers, NaN, weights that were
never trained or belong to another network, answers that do not depend on the image.
The findings are printed, the worst first; then the images that could not be read.

Findings have one of three severities: error, the network computes nonsense; warning,
most likely not what was meant; note, worth knowing.

exit codes:
  0  nothing found that is as bad as --fail-on says, by default an error
  1  something found that is
  2  an error or a misuse, said in one sentence
  4  some images could not be read; the others were checked
  5  both 1 and 4
  130  interrupted

A check of several files that was interrupted, or killed, goes on where it was when the
same command is given again; the user's cache folder has what was done.

thresholds, for --threshold, with their defaults:
{threshold_lines()}"""

_EXAMPLES = """\
  hookviz check resnet18 photo.jpg
  hookviz check resnet18 photos/ --weights own.pth --labels folders --fail-on warning
  hookviz check resnet18 photos/ --report report.html --json report.json
  hookviz check nets.py:make a.png b.png --prepare nets.py:prepare --against none
  hookviz check simple_cnn sample:digit_3 --json - --threshold dead_channels=0.2"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "check",
        run,
        help="look whether a network is all right, and the way it is fed",
        usage="hookviz check MODEL IMAGE_OR_FOLDER [IMAGE_OR_FOLDER ...] [--labels L] [--report FILE] [--json FILE]\n"
        "                     [--fail-on note|warning|error|never] [OPTIONS]",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
    )
    add_model(parser)
    add_images(parser)
    add_device(parser)
    add_comparisons(parser)
    add_outcomes(parser)
    return parser


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Print the findings; the exit code says how bad they are."""
    files = ReportFiles.of(chosen.report, chosen.json)
    thresholds = Thresholds(**dict(chosen.threshold))
    prepare = None if chosen.prepare is None else named_prepare(chosen.prepare)
    items = labelled(named_items(chosen.images), chosen.labels, chosen.images, console)
    model = load(chosen, console, device=chosen.device)
    against = _against(chosen, console)
    if prepare is None:
        _note_preparation(model, items, console)
    with Course.of(chosen, items, console) as course:
        report = check(
            model,
            items,
            prepare=prepare,
            against=against,
            thresholds=thresholds,
            progress_file=course.path,
            on_progress=course.tell,
        )
    files.write(report, console)
    return exit_code(report, None if chosen.fail_on == NEVER else chosen.fail_on)


def exit_code(report: Report, fail_on: Severity | None) -> int:
    """1 for findings as bad as ``fail_on``, None for no finding at all, and 4 more for images that cannot be read."""
    found = fail_on is not None and bool(report.at_least(fail_on))
    return (FOUND if found else FINE) + (UNREADABLE if report.unreadable else 0)


def _against(chosen: argparse.Namespace, console: Console) -> Model | Literal["untrained"] | None:
    if chosen.against == UNTRAINED:
        return "untrained"
    if chosen.against == NOTHING:
        return None
    console.progress(f"loading {chosen.against}")
    download = console.download(chosen.against)
    return load_model(chosen.against, "default", chosen.device, on_progress=download, on_note=console.note)


def _note_preparation(model: Model, items: Sequence[Item], console: Console) -> None:
    """Say what was assumed, where nobody said how the network wants its images."""
    for item in items:
        with contextlib.suppress(HookvizError, MemoryError):  # the report will list it
            image = item.read().value
            if isinstance(image, Image.Image):
                console.note(model.input_note(image))
            return
