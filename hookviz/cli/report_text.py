"""What a check found, to be read in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from hookviz.sanity import Finding, Report
from hookviz.sanity.findings import counted

_INDENT = "    "


def report_lines(report: Report, width: int | None) -> list[str]:
    """The verdict, the findings with the worst first, and the images that could not be read.

    ``width`` is that of the terminal, None where lines may be as long as they like.
    """
    return [
        line
        for paragraph in _paragraphs(report)
        for line in (_wrapped(paragraph, width) if width and paragraph else [paragraph])
    ]


def _paragraphs(report: Report) -> Iterator[str]:
    yield report.verdict
    for finding in report.findings:
        yield ""
        yield from _finding(finding)
    if report.unreadable:
        yield from ("", f"{counted(len(report.unreadable), 'image')} could not be read:")
        for one in report.unreadable:
            yield f"{_INDENT}{one.name}: {one.reason}"


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity}: {finding.what}"
    if finding.why:
        yield f"{_INDENT}why: {finding.why}"
    if finding.advice:
        yield f"{_INDENT}try: {finding.advice}"


def _wrapped(paragraph: str, width: int) -> list[str]:
    """Continued lines stand deeper than where the paragraph begins; paths and layers are not cut."""
    indent = paragraph[: len(paragraph) - len(paragraph.lstrip())] + _INDENT
    return textwrap.wrap(paragraph, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
