"""The options of ``hookviz check`` that no other command has."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from difflib import get_close_matches
from typing import TypeAlias

from hookviz.cli.parser import Parser, image_help
from hookviz.sanity import Thresholds
from hookviz.sanity.findings import SEVERITIES
from hookviz.sanity.items import FOLDERS

UNTRAINED, NOTHING, NEVER = "untrained", "none", "never"

_DEFAULTS: dict[str, float] = asdict(Thresholds())

Threshold: TypeAlias = tuple[str, float]


def add_images(parser: Parser) -> None:
    """What is checked."""
    parser.add_argument(
        "images",
        metavar="IMAGE_OR_FOLDER",
        nargs="+",
        help=f"{image_help()}; or a folder, with all folders in it. May be given several times",
    )


def add_comparisons(parser: Parser) -> None:
    """What the answers and layers are held against."""
    against = parser.add_argument_group("what it is held against")
    against.add_argument(
        "--labels",
        metavar="L",
        help=f"the right classes: {FOLDERS}, where the folder that an image lies in has the name or the index of its "
        "class, or a CSV file with lines of name,label; by default none",
    )
    against.add_argument(
        "--against",
        metavar="MODEL",
        default=UNTRAINED,
        help=f"a model whose layers are compared, {UNTRAINED} for the same one with random values, or {NOTHING}; by "
        f"default {UNTRAINED}",
    )
    against.add_argument(
        "--prepare",
        metavar="P",
        help="package.module:function, or file.py:function, that makes the network's input of a PIL image as you do it "
        "elsewhere; it is compared with the weights' own recipe, which is the default",
    )
    against.add_argument(
        "--threshold",
        metavar="NAME=VALUE",
        type=threshold,
        action="append",
        default=[],
        help="from where on something is a finding, see above; may be given several times",
    )


def add_outcomes(parser: Parser) -> None:
    """What becomes of the findings, and of the progress."""
    outcomes = parser.add_argument_group("what comes of it")
    outcomes.add_argument("--report", metavar="FILE", help="write a report to look at, .html; by default none")
    outcomes.add_argument(
        "--json",
        metavar="FILE",
        help="write all numbers as JSON, where one that is not finite is null; - prints them in place of the text",
    )
    outcomes.add_argument(
        "--fail-on",
        choices=[*reversed(SEVERITIES), NEVER],
        default=SEVERITIES[0],
        help=f"how bad a finding must be for exit code 1; by default {SEVERITIES[0]}",
    )
    outcomes.add_argument(
        "--fresh", action="store_true", help="begin anew; by default a check that was broken off goes on where it was"
    )


def threshold(text: str) -> Threshold:
    """A threshold by its name, with its value."""
    name, sign, number = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"NAME=VALUE is needed, for instance gain=50, not {text!r}")
    if name not in _DEFAULTS:
        close = get_close_matches(name, _DEFAULTS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(_DEFAULTS)}"
        raise argparse.ArgumentTypeError(f"there is no threshold {name!r}; {hint}")
    kind = type(_DEFAULTS[name])
    try:
        return name, kind(number)
    except ValueError as error:
        whole = "a whole number" if kind is int else "a number"
        raise argparse.ArgumentTypeError(f"{name} is {whole}, not {number!r}") from error


def threshold_lines() -> str:
    """The thresholds with their defaults, for the help."""
    return "\n".join(f"  {name}={value:g}" for name, value in _DEFAULTS.items())
