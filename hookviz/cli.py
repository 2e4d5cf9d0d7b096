"""The command line: ``hookviz app`` opens the page, ``hookviz layers MODEL`` lists a network."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from hookviz.errors import HookvizError
from hookviz.hooks import list_layers
from hookviz.models import load_model
from hookviz.samples import list_samples, load_sample
from hookviz.types import LayerInfo

_PACKAGE = Path(__file__).parent
_START = _PACKAGE / "ui" / "start.py"
# A wheel carries the settings inside the package; the source tree keeps them where Streamlit looks (see pyproject).
_SETTINGS = (_PACKAGE / "streamlit_config" / "config.toml", _PACKAGE.parent / ".streamlit" / "config.toml")
_COLUMNS = ("name", "class", "output", "parameters", "calls")
_NUMBERS = {"parameters", "calls"}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, where argparse prints the usage first."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"hookviz: {message}; see {self.prog} --help.\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, or 2 with one sentence on stderr.

    Args:
        arguments: the words after ``hookviz``; those of this process by default.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    ours, streamlit_options = _split(words)
    parser = _parser()
    chosen = parser.parse_args(ours)
    if streamlit_options and chosen.command != "app":
        parser.error(f"only hookviz app takes options after --, not hookviz {chosen.command}")
    try:
        if chosen.command == "app":
            _run_app(chosen.port, streamlit_options)
        else:
            print("\n".join(table_lines(_listed(chosen.model))), flush=True)
    except HookvizError as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader, such as head, has seen enough; Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Ours, and what follows ``--``; argparse treats that mark differently from version to version."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def _parser() -> _Parser:
    parser = _Parser(prog="hookviz", description="See what a PyTorch vision network computes.")
    parser.add_argument("--version", action="version", version=f"hookviz {installed_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    app = commands.add_parser(
        "app",
        help="open the page in a browser",
        usage="hookviz app [--port PORT] [-- STREAMLIT OPTIONS]",
        description="Open the page. What follows -- goes to streamlit run, for instance: -- --server.headless true",
    )
    app.add_argument("--port", type=_port, help="where to serve; 8501 unless told, or the next one that is free")
    layers = commands.add_parser(
        "layers",
        help="list a network's layers",
        description="List every layer with its class, outputs, parameters and calls, for one sample image on the CPU.",
    )
    layers.add_argument("model", metavar="MODEL", help="a name that list_models() gives, for instance resnet18")
    return parser


def _port(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def installed_version() -> str:
    """The version: the source tree's own where this is one, else that of the installed package."""
    project = _PACKAGE.parent / "pyproject.toml"
    told = tomllib.loads(project.read_text("utf-8")).get("project", {}) if project.is_file() else {}
    return str(told["version"]) if told.get("name") == "hookviz" else version("hookviz")


def _run_app(port: int | None, streamlit_options: Sequence[str]) -> None:
    flags = [*settings_flags(), *(["--server.port", str(port)] if port else []), *streamlit_options]
    sys.argv = ["streamlit", "run", str(_START), *flags]
    # This very process becomes the server: one interpreter, and Ctrl-C goes where it should.
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


def settings_flags() -> list[str]:
    """The settings of ``config.toml`` as options of ``streamlit run``, which looks for that file in other places.

    Raises:
        HookvizError: hookviz was installed without the file.
    """
    for path in _SETTINGS:
        if path.is_file():
            return list(_flags("", tomllib.loads(path.read_text("utf-8"))))
    raise HookvizError("The bundled settings config.toml are missing; reinstall hookviz to get them back.")


def _flags(prefix: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flags(f"{prefix}{name}.", value)
        else:
            yield from (f"--{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value))


def _listed(name: str) -> list[LayerInfo]:
    # Untrained: the layers are the same, and nothing is downloaded for a look at them.
    model = load_model(name, weights=None, device="cpu")
    return list_layers(model.module, *model.inputs(load_sample(list_samples()[0].name)))


def table_lines(layers: Sequence[LayerInfo]) -> list[str]:
    """A table of layers as lines of text, a heading first: text to the left, numbers to the right."""
    rows = [_COLUMNS, *map(_cells, layers)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    return ["  ".join(_aligned(row, widths)).rstrip() for row in rows]


def _cells(info: LayerInfo) -> tuple[str, ...]:
    shapes = dict.fromkeys(" × ".join(map(str, shape)) or "scalar" for shape in info.output_shapes)
    output = " | ".join(shapes) or ("no tensor" if info.calls else "not called")
    return (info.name or "(whole network)", info.class_name, output, f"{info.parameters:,}", str(info.calls))


def _aligned(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for title, cell, width in zip(_COLUMNS, row, widths, strict=True):
        yield cell.rjust(width) if title in _NUMBERS else cell.ljust(width)
