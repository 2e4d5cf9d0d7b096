"""How words become settings, and what the commands' options have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from hookviz.models.model import UNTRAINED
from hookviz.samples import list_samples

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
Command: TypeAlias = "Callable[[argparse.Namespace, Any], int]"
"""What a command does with its settings and a ``Console``: its exit code."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, where argparse prints the usage first."""

    def __init__(self, **settings: Any) -> None:
        # Whole words only: an abbreviation in a script breaks with the next option that begins alike.
        super().__init__(
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=26),
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one sentence."""
        self.exit(2, f"hookviz: {message}; see {self.prog} --help.\n")


def add_command(commands: Commands, name: str, run: Command, **words: Any) -> Parser:
    """One more command; ``words`` are its ``help``, ``description`` and ``examples``, and argparse's own settings."""
    examples = words.pop("examples")
    parser = commands.add_parser(name, epilog=f"examples:\n{examples}", **words)
    parser.set_defaults(run=run)
    return parser


def add_talk(parser: Parser) -> None:
    """How much is said on stderr."""
    talk = parser.add_argument_group("what is said on stderr")
    how_much = talk.add_mutually_exclusive_group()
    how_much.add_argument("--quiet", action="store_true", help="say nothing but errors")
    how_much.add_argument(
        "--progress", action="store_true", help="say what is being done; by default only where stderr is a terminal"
    )
    talk.add_argument("--traceback", action="store_true", help="with an error, show where in the code it arose")


def add_model(parser: Parser, *, weights: str = "default") -> None:
    """Which network, with which weights, where."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a name that hookviz models gives, for instance resnet18, or package.module:factory for one of your own",
    )
    parser.add_argument(
        "--weights",
        metavar="W",
        default=weights,
        help=f"a name, {UNTRAINED}, or a checkpoint file (.pth, .pt, .bin, .safetensors); by default "
        + ("the model's first" if weights == "default" else weights),
    )
    parser.add_argument(
        "--class-names",
        metavar="FILE",
        help="names of a checkpoint's classes, one a line or JSON; by default those of the model's own weights",
    )


def add_device(parser: Parser) -> None:
    """Where the network runs."""
    parser.add_argument(
        "--device", default="auto", help="cpu, cuda, cuda:1 or mps; by default auto, the fastest there is"
    )


def add_image(parser: Parser) -> None:
    """The picture that goes in."""
    parser.add_argument("image", metavar="IMAGE", help=image_help())


def image_help() -> str:
    """What may stand for an image."""
    samples = ", ".join(sample.name for sample in list_samples())
    return f"an image file, - for one on stdin, or a bundled sample: {samples} (sample:NAME where a file has that name)"


def add_json(parser: Parser) -> None:
    """For other programs to read."""
    parser.add_argument("--json", action="store_true", help="print JSON, where a number that is not finite is null")


def positive(text: str) -> int:
    """A number from 1."""
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text!r}")
    return int(text)
