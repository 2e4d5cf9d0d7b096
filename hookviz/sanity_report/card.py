"""A report in a notebook's cell."""

from __future__ import annotations

from hookviz.sanity import Report
from hookviz.sanity_report import layer_charts
from hookviz.sanity_report.drawings import embedded
from hookviz.sanity_report.findings_section import badge
from hookviz.sanity_report.layer_section import worst_of_layers
from hookviz.sanity_report.markup import Markup, joined, name, prose, tag
from hookviz.sanity_report.tables import Column, figure_or_nothing, more, row, share, table

_MOST_FINDINGS, _MOST_LAYERS = 12, 12

_COLUMNS = (
    *(Column("#", True), Column("layer"), Column("class")),
    *(Column("mean", True), Column("sd", True), Column("zeros", True), Column("dead", True)),
)

CARD_STYLE = """
.hookviz-report { max-width: 820px; font: 400 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.hookviz-report .verdict { margin: 0 0 .6rem; font-size: 1.1rem; font-weight: 600; overflow-wrap: anywhere; }
.hookviz-report .found { margin: 0 0 .8rem; padding: 0; list-style: none; }
.hookviz-report .found li { margin: 0 0 .35rem; padding-left: .7rem; border-left: 3px solid #6f9bd1;
  overflow-wrap: anywhere; }
.hookviz-report .found li.error { border-color: #d84a3f; } .hookviz-report .found li.warning { border-color: #d99a1c; }
.hookviz-report .badge { margin-right: .5rem; font-weight: 600; }
.hookviz-report .quiet { margin: 0 0 .8rem; }
.hookviz-report .quiet, .hookviz-report .nil { opacity: .65; }
.hookviz-report .scroll { overflow-x: auto; }
.hookviz-report table { border-collapse: collapse; margin: 0 0 .4rem; font-size: 12.5px;
  font-variant-numeric: tabular-nums; }
.hookviz-report th, .hookviz-report td { padding: .15rem .9rem .15rem 0; text-align: left; background: none;
  border: 0; border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
.hookviz-report th.number, .hookviz-report td.number { text-align: right; white-space: nowrap; }
.hookviz-report img { max-width: 100%; height: auto; border-radius: 6px; }
"""


def report_card(report: Report) -> str:
    """Verdict, findings, the layers that matter and one figure, in markup that leaves the page around it alone."""
    parts: list[Markup] = [tag("style", Markup(CARD_STYLE)), tag("p", name(report.verdict), class_="verdict")]
    found = [
        tag("li", badge(one.severity), prose(one.what), class_=one.severity) for one in report.findings[:_MOST_FINDINGS]
    ]
    if found:
        parts += [tag("ul", *found, class_="found"), more(len(report.findings), len(found), "finding")]
    if report.layers:
        parts += [_table(report), embedded(layer_charts.spread(report.layers), "mean and spread of every layer")]
    return tag("div", *parts, class_="hookviz-report")


def _table(report: Report) -> Markup:
    """The layers that errors and warnings speak of; where there are none, the first ones."""
    marks = worst_of_layers(report)
    numbered = list(enumerate(report.layers, 1))
    chosen = [one for one in numbered if one[1].layer in marks] or numbered
    names = [layer_charts.row_name(one, report.layers) for one in report.layers]
    rows = [
        row(
            _COLUMNS,
            (
                *(str(number), tag("code", name(names[number - 1])), one.class_name),
                *map(figure_or_nothing, (one.summary.mean, one.summary.std)),
                *(share(one.summary.sparsity), None if one.dead is None else f"{one.dead:,}"),
            ),
        )
        for number, one in chosen[:_MOST_LAYERS]
    ]
    return joined((table("layers", _COLUMNS, rows), more(len(report.layers), len(rows), "layer")))
