"""Where a report goes: to stdout as text or JSON, and into files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hookviz.cli.console import Console, strict_json
from hookviz.cli.output_file import OutputFile
from hookviz.cli.report_text import report_lines
from hookviz.sanity import Report

_STDOUT = "-"
_PAGES = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The files to write, None for those that are not; ``prints_json`` puts JSON in the place of text."""

    page: OutputFile | None
    json: OutputFile | None
    prints_json: bool

    @classmethod
    def of(cls, page: str | None, json: str | None) -> ReportFiles:
        """As the words say.

        Raises:
            OutputError: no folder to write into, or another suffix than a page's.
        """
        return cls(
            page=None if page is None else OutputFile(Path(page), _PAGES),
            json=None if json is None or json == _STDOUT else OutputFile(Path(json), ()),
            prints_json=json == _STDOUT,
        )

    def write(self, report: Report, console: Console) -> None:
        """Write the files and print the rest, which is not lost where a file cannot be written.

        Raises:
            HookvizError: one of them cannot be written.
        """
        lines: list[str] = []
        try:
            lines += self._write_files(report)
        finally:
            if self.prints_json:
                console.json(report.as_dict())
            else:
                console.result("\n".join([*report_lines(report, console.width), *lines]))

    def _write_files(self, report: Report) -> list[str]:
        """One line for each, after an empty one."""
        written = []
        if self.json is not None:
            self.json.write(f"{strict_json(report.as_dict())}\n".encode())
            written.append(f"numbers: {self.json.path}")
        if self.page is not None:
            report.save(self.page.path)
            written.append(f"report: {self.page.path}")
        return ["", *written] if written else []
