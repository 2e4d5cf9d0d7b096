"""What whoever starts the page asks for behind ``--``: ``streamlit run app.py -- --model package.module:factory``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NoReturn

from hookviz.errors import HookvizError

_SCRIPTS = {"app.py", "start.py"}
"""Under anything else than these, the words in ``sys.argv`` are not meant for the page."""

FOLDERS_VARIABLE = "HOOKVIZ_FOLDERS"
"""Names the environment variable that allows more folders, parted as in ``PATH``."""


class StartError(HookvizError):
    """The page was started with words that it does not know."""


@dataclass(frozen=True, slots=True)
class StartOptions:
    """What the page was started with.

    ``models`` are targets of networks, to stand before all others; ``hooks`` those of functions with a hook's
    signature, each ``package.module:function``; ``folders`` those whose pictures visitors may check.
    """

    models: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class _Parser(argparse.ArgumentParser):
    """Raises, where argparse ends the process: it would be the server."""

    def error(self, message: str) -> NoReturn:
        raise StartError(
            f"The page was started with words that it does not know ({message}); "
            "start it with: streamlit run app.py -- --model package.module:factory"
        )


@cache
def start_options() -> StartOptions:
    """The options of this process, with the folders that its environment allows.

    Raises:
        StartError: unknown ones.
    """
    given = read_options(sys.argv[1:] if Path(sys.argv[0]).name in _SCRIPTS else ())
    allowed = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    return replace(given, folders=(*given.folders, *filter(None, allowed)))


def read_options(words: Sequence[str]) -> StartOptions:
    """The options in the words behind ``--``.

    Raises:
        StartError: unknown ones.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--hook", action="append", default=[])
    parser.add_argument("--folder", action="append", default=[])
    found = parser.parse_args(list(words))
    return StartOptions(tuple(found.model), tuple(found.hook), tuple(found.folder))
