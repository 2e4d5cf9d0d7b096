"""``hookviz models``: which networks there are."""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from fnmatch import fnmatchcase

from hookviz.cli.console import Console
from hookviz.cli.parser import Commands, Parser, add_command, add_json
from hookviz.models import list_models

_EXAMPLES = """\
  hookviz models
  hookviz models resnet
  hookviz models 'timm/convnext*' --json"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "models",
        run,
        help="list the models there are",
        description="List the names of models, one a line: bundled, torchvision's, timm's, your own.\n"
        "The exit code is 1 where none matches.",
        examples=_EXAMPLES,
    )
    parser.add_argument(
        "pattern",
        metavar="PATTERN",
        nargs="?",
        default="",
        help="part of a name, or the whole of it with *, ? or [abc]; any case; by default all models are listed",
    )
    add_json(parser)
    return parser


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Print the names, or say which ones are near."""
    found = [name for name in list_models() if matches(name, chosen.pattern)]
    if chosen.json:
        console.json(found)
    elif found:
        console.result("\n".join(found))
    if not found:
        console.error(_near(chosen.pattern))
    return 0 if found else 1


def matches(name: str, pattern: str) -> bool:
    """Whether a name has the pattern in it, or where that is a glob, is one that it stands for."""
    name, pattern = name.lower(), pattern.lower()
    return fnmatchcase(name, pattern) if any(mark in pattern for mark in "*?[") else pattern in name


def _near(pattern: str) -> str:
    word = pattern.lower().strip("*")
    close = get_close_matches(word, list_models(), n=3) or get_close_matches(f"timm/{word}", list_models(), n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "hookviz models lists them all."
    return f"no model matches {pattern!r}; {hint}"
