"""The whole page."""

from __future__ import annotations

from hookviz.sanity import Report
from hookviz.sanity.findings import SEVERITIES, counted
from hookviz.sanity_report.answer_section import answer_section
from hookviz.sanity_report.details_section import details_section, hookviz_version
from hookviz.sanity_report.drawings import Drawings
from hookviz.sanity_report.findings_section import badge, findings_section
from hookviz.sanity_report.input_section import input_section, unreadable_section
from hookviz.sanity_report.layer_section import layer_section
from hookviz.sanity_report.likeness_section import likeness_section
from hookviz.sanity_report.markup import Markup, joined, name, tag
from hookviz.sanity_report.style import PAGE_STYLE

_TITLES = {
    "findings": "Findings",
    "unreadable": "Unreadable",
    "input": "Input",
    "answers": "Answers",
    "layers": "Layers",
    "likeness": "Likeness",
    "details": "Details",
}


def report_html(report: Report, *, date: str | None = None) -> str:
    """A report as one HTML file that needs nothing else, for the screen, for a phone and for paper.

    The same report gives the same text, on every machine with the same fonts; it asks for nothing over the network
    and runs no script.

    Args:
        report: What ``check`` returned.
        date: Words to stand beside the headline; by default none, so that equal reports are equal files.
    """
    drawings = Drawings()
    sections = {
        "findings": findings_section(report),
        "unreadable": unreadable_section(report),
        "input": input_section(report),
        "answers": answer_section(report, drawings),
        "layers": layer_section(report, drawings),
        "likeness": likeness_section(report, drawings),
        "details": details_section(report),
    }
    links = [tag("a", _TITLES[key], href=f"#{key}") for key, section in sections.items() if section]
    head = joined(
        (
            Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="color-scheme" content="light dark">'),
            tag("title", f"{report.network.name}: hookviz check"),
            tag("style", Markup(PAGE_STYLE)),
        )
    )
    body = tag("main", _headline(report, date), tag("nav", *links), *sections.values(), _foot())
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _headline(report: Report, date: str | None) -> Markup:
    network = report.network
    counts = [(one, sum(found.severity == one for found in report.findings)) for one in SEVERITIES]
    badges = [badge(one, counted(count, one)) for one, count in counts if count] or [badge("good", "nothing found")]
    facts = [network.class_name, f"{network.parameters:,} parameters", network.dtype, network.device]
    facts += [counted(len(report.images), "image"), *([date] if date else [])]
    stopped = "This check was stopped before it had seen every image; it speaks of those that it saw."
    return tag(
        "header",
        tag("p", "hookviz check", class_="brand"),
        tag("h1", name(report.verdict)),
        tag("p", *badges, class_="badges"),
        tag("p", name(network.weights), " · ", " · ".join(facts), class_="quiet"),
        joined(()) if report.complete else tag("p", stopped, class_="panel warning"),
    )


def _foot() -> Markup:
    words = f"hookviz {hookviz_version()}. Means and standard deviations are over finite values, in float64."
    return tag("footer", words, class_="quiet")
