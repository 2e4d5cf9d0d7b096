"""The layers beside those of another network."""

from __future__ import annotations

from hookviz.describe import title
from hookviz.sanity import LayerLikeness, Report
from hookviz.sanity_report.drawings import Drawings
from hookviz.sanity_report.layer_charts import likeness, numbers_of_layers
from hookviz.sanity_report.markup import Markup, joined, name, tag
from hookviz.sanity_report.tables import Column, figure_or_nothing, row, table

_COLUMNS = (
    Column("#", True),
    Column("layer"),
    Column("class"),
    Column("likeness", True, "linear CKA: 1 responds alike, about 0 does not"),
    Column("scale", True, "root mean square of the other network's values over this one's"),
)


def likeness_section(report: Report, drawings: Drawings) -> Markup:
    """How alike they respond to the same images; nothing where nothing was compared."""
    compared = report.compared
    if compared is None or not compared.layers:
        return joined(())
    told = tag(
        "p",
        "Beside ",
        tag("b", name(compared.other)),
        ": 1 where a layer responds to the same images alike, but for rotation and scale.",
        class_="lead",
    )
    chart = likeness(compared, report.layers)
    figure = drawings.figure(chart, "likeness of every layer") if chart is not None else joined(())
    numbers = numbers_of_layers(report.layers)
    rows = [row(_COLUMNS, _cells(one, numbers.get(one.layer))) for one in compared.layers]
    listed = table("likeness of layers", _COLUMNS, rows)
    return tag("section", tag("h2", "Likeness"), told, figure, listed, id="likeness")


def _cells(one: LayerLikeness, number: int | None) -> tuple[object, ...]:
    return number, tag("code", name(title(one.layer))), one.class_name, *map(figure_or_nothing, (one.cka, one.scale))
