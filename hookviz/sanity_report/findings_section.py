"""What was found, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hookviz.describe import title
from hookviz.sanity import Finding, Report
from hookviz.sanity.findings import SEVERITIES, counted
from hookviz.sanity_report.layer_charts import numbers_of_layers
from hookviz.sanity_report.markup import Markup, joined, name, prose, tag
from hookviz.sanity_report.tables import amount

_MOST_LAYERS, _MOST_CHANNELS = 6, 20

Places = Mapping[str, str]
"""The address on the page of every layer that has a row."""


def layer_places(report: Report) -> dict[str, str]:
    """Where on the page the first row of every layer is."""
    return {layer: f"layer-{number}" for layer, number in numbers_of_layers(report.layers).items()}


def findings_section(report: Report) -> Markup:
    """Cards, grouped by how bad they are; a calm word where there is nothing."""
    places = layer_places(report)
    groups = [_group(report.findings, severity, places) for severity in SEVERITIES]
    good = "Nothing was found that speaks against this network or the way it is fed."
    inside = joined(groups) if report.findings else tag("p", good, class_="good panel")
    return tag("section", tag("h2", "Findings"), inside, id="findings")


def finding_card(finding: Finding, places: Places) -> Markup:
    """One finding: what, why it matters, what to try, the number it hangs on, and where to look."""
    head = tag("div", badge(finding.severity), tag("span", finding.area, class_="quiet"), class_="head")
    facts = tag("ul", *(tag("li", *one) for one in _facts(finding, places)), class_="facts")
    return tag(
        "article",
        head,
        tag("p", prose(finding.what), class_="what"),
        tag("p", prose(finding.why), class_="why"),
        tag("p", tag("b", "What to try: "), prose(finding.advice), class_="try"),
        facts,
        class_=f"finding {finding.severity}",
    )


def badge(severity: str, words: str = "") -> Markup:
    """A small coloured word."""
    return tag("span", words or severity, class_=f"badge {severity}")


def _group(findings: Sequence[Finding], severity: str, places: Places) -> Markup:
    some = [one for one in findings if one.severity == severity]
    if not some:
        return joined(())
    words = counted(len(some), severity)
    return joined([tag("h3", words), *(finding_card(one, places) for one in some)])


def _facts(finding: Finding, places: Places) -> Iterator[Sequence[object]]:
    if finding.amount is not None:
        yield tag("span", "measured ", class_="quiet"), tag("b", amount(finding.amount), class_="measured")
    if finding.threshold is not None:
        yield tag("span", "threshold ", class_="quiet"), amount(finding.threshold)
    if finding.layers:
        links = joined(_link(layer, places) for layer in finding.layers[:_MOST_LAYERS])
        left = len(finding.layers) - _MOST_LAYERS
        yield tag("span", "see ", class_="quiet"), links, f" and {left:,} more" if left > 0 else ""
    if finding.channels:
        few = ", ".join(map(str, finding.channels[:_MOST_CHANNELS]))
        ends = " …" if len(finding.channels) > _MOST_CHANNELS else ""
        yield (
            tag("span", f"channels of {title(finding.layers[0]) if finding.layers else 'it'} ", class_="quiet"),
            few + ends,
        )


def _link(layer: str, places: Places) -> Markup:
    words = tag("code", name(title(layer)))
    place = places.get(layer)
    return joined((tag("a", words, href=f"#{place}") if place else words, " "))
