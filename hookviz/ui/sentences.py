"""Errors as a reader meets them: one sentence on the page, the traceback in the log."""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from hookviz.errors import HookvizError

_log = logging.getLogger("hookviz")
_ASCII_MARKS = frozenset(string.punctuation)
_OPTIONS_AND_MARKS = re.compile(r"--[\w-]*|[!-/:-@\[-`{-~]")


@contextmanager
def one_sentence() -> Iterator[None]:
    """Show an error raised inside the block as one sentence, and end the page there.

    Streamlit's own control exceptions are no ``Exception`` and pass through.
    """
    try:
        yield
    except HookvizError as error:
        log_shown(error)
        _show(sentence(str(error)))
    except Exception:  # noqa: BLE001  # whatever it is, the reader gets a sentence and the log the traceback
        _log.exception("unexpected error on the page")
        _show(
            "Something unexpected went wrong; the log has the details. Choose another model, image or layer to go on."
        )


def log_shown(error: HookvizError) -> None:
    """Put the traceback of an error that the reader sees as a sentence into the log."""
    _log.warning("shown to the reader: %s", error, exc_info=error)


def sentence(text: str) -> str:
    """A message with a capital in front and a full stop at the end, to be read as it is and not as Markdown.

    Options such as ``--model`` become code, where Streamlit leaves their two hyphens alone.
    """
    text = text.strip()
    text = text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
    return _OPTIONS_AND_MARKS.sub(_literal, text)


def literal(text: str) -> str:
    """A text to be read as it is and not as Markdown, such as the name of a layer on a button."""
    return _OPTIONS_AND_MARKS.sub(_mark, text)


def _mark(match: re.Match[str]) -> str:
    return "".join(f"\\{mark}" if mark in _ASCII_MARKS else mark for mark in match[0])


def _literal(match: re.Match[str]) -> str:
    return f"`{match[0]}`" if match[0].startswith("--") else f"\\{match[0]}"


def _show(text: str) -> None:
    st.error(text, icon=":material/error:")
