"""One command from its words to its exit code."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

from hookviz.cli import app, check, grid, layers, models, predict, stats
from hookviz.cli.console import Console
from hookviz.cli.parser import Parser, add_talk
from hookviz.errors import HookvizError

FOUND, NOTHING_FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130

_DESCRIPTION = """\
See what a PyTorch vision network computes: in a browser with hookviz app, or from
a shell, where results go to stdout and everything else to stderr."""

_EPILOG = """\
examples:
  hookviz models '*resnet*'
  hookviz layers resnet18
  hookviz grid resnet18 photo.jpg --layers conv1 -o conv1.png
  hookviz stats efficientnet_lite0 grace_hopper --json
  hookviz predict efficientnet_lite0 photo.jpg
  hookviz check resnet18 photos/ --fail-on warning
  hookviz app --port 8600

exit codes: 0 done, 1 nothing found, 2 an error or a misuse, 130 interrupted;
of hookviz check: 0 fine, 1 findings as bad as --fail-on says, 4 some images could not
be read (5: both)"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 where nothing was found, or 2 with one sentence on stderr.

    ``hookviz check`` has codes of its own.

    Args:
        arguments: the words after ``hookviz``; those of this process by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = command_parser()
    if not words:
        parser.print_help()
        return FOUND
    ours, streamlit_options = _split(words)
    chosen = parser.parse_args(ours)
    if streamlit_options and chosen.command != "app":
        parser.error(f"only hookviz app takes options after --, not hookviz {chosen.command}")
    chosen.streamlit_options = streamlit_options
    return _run(chosen, Console(quiet=chosen.quiet, progress=chosen.progress))


def _run(chosen: argparse.Namespace, console: Console) -> int:
    try:
        if chosen.command == "app":
            return int(chosen.run(chosen, console))
        # Other people's networks and loaders may print; stdout is for results alone.
        with redirect_stdout(sys.stderr):
            return int(chosen.run(chosen, console))
    except BrokenPipeError:
        # The reader, such as head, has seen enough.
        _drop_results()
        return FOUND
    except KeyboardInterrupt:
        return INTERRUPTED
    except (HookvizError, OSError, MemoryError) as error:
        if chosen.traceback:
            traceback.print_exception(error)
        console.error(_in_words(error))
        _drop_results()
        return FAILED
    except Exception:  # noqa: BLE001 - Python would end with 1, which here says that nothing was found
        traceback.print_exc()
        return FAILED


def _in_words(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "There is not enough memory; choose a smaller model or fewer layers."
    return str(error)


def _drop_results() -> None:
    """Send what is left in stdout's buffer nowhere: Python would complain of it when it flushes at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Ours, and what follows ``--``; argparse treats that mark differently from version to version."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def command_parser() -> Parser:
    """The parser of all commands."""
    parser = Parser(prog="hookviz", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "--version", action="version", version=f"hookviz {installed_version()}", help="say which version this is"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (models, layers, grid, stats, predict, check, app):
        add_talk(command.add(commands))
    return parser


def installed_version() -> str:
    """The version: the source tree's own where this is one, else that of the installed package."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    told = tomllib.loads(project.read_text("utf-8")).get("project", {}) if project.is_file() else {}
    return str(told["version"]) if told.get("name") == "hookviz" else version("hookviz")
