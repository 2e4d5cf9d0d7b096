"""``hookviz app``: the page, in this very process."""

from __future__ import annotations

import argparse
import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hookviz.cli.console import Console
from hookviz.cli.parser import Commands, Parser, add_command
from hookviz.errors import HookvizError

_PACKAGE = Path(__file__).parents[1]
_START = _PACKAGE / "ui" / "start.py"
# A wheel carries the settings inside the package; the source tree keeps them where Streamlit looks (see pyproject).
_SETTINGS = (_PACKAGE / "streamlit_config" / "config.toml", _PACKAGE.parent / ".streamlit" / "config.toml")

_EXAMPLES = """\
  hookviz app
  hookviz app --port 8600 -- --server.headless true
  hookviz app --model mypackage.networks:make_network
  hookviz app --folder photos"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "app",
        run,
        help="open the page in a browser",
        usage="hookviz app [--port PORT] [--model MODEL]... [--hook HOOK]... [--folder FOLDER]... "
        "[-- STREAMLIT OPTIONS]",
        description="Open the page. What follows -- goes to streamlit run, for instance: -- --server.headless true",
        examples=_EXAMPLES,
    )
    parser.add_argument("--port", type=_port, help="where to serve; 8501 unless told, or the next one that is free")
    parser.add_argument(
        "--model",
        metavar="MODEL",
        action="append",
        default=[],
        help="package.module:factory of a network of your own to offer on the page; may be given several times; "
        "by default none",
    )
    parser.add_argument(
        "--hook",
        metavar="HOOK",
        action="append",
        default=[],
        help="package.module:function of a hook of your own to offer on the page Hooks; may be given several times; "
        "by default none",
    )
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        action="append",
        default=[],
        help="a folder of pictures that every visitor of the page may check networks with; may be given several "
        "times; by default none",
    )
    return parser


def run(chosen: argparse.Namespace, _: Console) -> int:
    """Become the server: one interpreter, and Ctrl-C goes where it should."""
    sys.argv = ["streamlit", "run", str(_START), *_words(chosen)]
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
    return 0


def _words(chosen: argparse.Namespace) -> list[str]:
    """Streamlit's options, and behind a second ``--`` those of the page itself."""
    options, port = list(chosen.streamlit_options), chosen.port
    page = [word for model in chosen.model for word in ("--model", model)]
    page += [word for hook in chosen.hook for word in ("--hook", hook)]
    page += [word for folder in chosen.folder for word in ("--folder", _whole(folder))]
    if "--" in options:
        end = options.index("--")
        options, page = options[:end], [*page, *options[end + 1 :]]
    at = ["--server.port", str(port)] if port else []
    return [*settings_flags(), *at, *options, *(["--", *page] if page else [])]


def _port(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def _whole(path: str) -> str:
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise HookvizError(f"There is no folder {path!r}; check the path behind --folder.")
    return str(folder.resolve())


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
