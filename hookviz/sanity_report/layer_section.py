"""Every layer: in figures, and in numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hookviz.describe import size, title
from hookviz.sanity import LayerRow, Report
from hookviz.sanity.findings import counted
from hookviz.sanity_report import layer_charts
from hookviz.sanity_report.drawings import Drawings
from hookviz.sanity_report.markup import Markup, joined, name, tag
from hookviz.sanity_report.tables import Column, figure_or_nothing, row, share, table

COLUMNS = (
    Column("#", True),
    Column("layer"),
    Column("class"),
    Column("call", True, "which of the layer's calls"),
    Column("shape", hint="of one image's tensor, without the batch axis"),
    Column("mean", True),
    Column("sd", True, "population standard deviation"),
    Column("min", True),
    Column("max", True),
    Column("zeros", True, "share of values that are exactly zero"),
    Column("NaN", True),
    Column("Inf", True, "infinite values of both signs"),
    Column("channels", True),
    Column("dead", True, "channels that are zero at every position of every image"),
    Column("const.", True, "channels with one value, not zero, at every position of every image"),
    Column("dupl.", True, "channels equal to an earlier one everywhere"),
    Column("gain", True, "root mean square of what goes out over that of what comes in"),
)


def layer_section(report: Report, drawings: Drawings) -> Markup:
    """Figures by depth, then one row for each tensor."""
    if not report.layers:
        told = tag("p", "No image could be used, so there is nothing to say of the layers.", class_="panel")
        return tag("section", tag("h2", "Layers"), told, id="layers")
    names = [layer_charts.row_name(one, report.layers) for one in report.layers]
    figures = [
        drawings.figure(one, "histograms of the layers' values") for one in layer_charts.ridges(report.layers, names)
    ]
    figures.append(drawings.figure(layer_charts.spread(report.layers), "mean and standard deviation of every layer"))
    health = layer_charts.health(report.layers)
    if health is not None:
        figures.append(drawings.figure(health, "dead, constant, duplicated and active channels of every layer"))
    words = (
        f"{counted(len(report.layers), 'tensor')} that layers returned, over {counted(len(report.images), 'image')}, "
        "in the order of the run. The numbers in the figures are those of the table."
    )
    listed = layer_table(report)
    return tag("section", tag("h2", "Layers"), tag("p", words, class_="lead"), *figures, listed, id="layers")


def layer_table(report: Report) -> Markup:
    """All layers in numbers; those that errors or warnings speak of are marked."""
    marks = worst_of_layers(report)
    rows = [_row(number, one, marks) for number, one in enumerate(report.layers, 1)]
    return table("layers", COLUMNS, rows, class_="layers")


def worst_of_layers(report: Report) -> dict[str, str]:
    """``"error"`` or ``"warning"`` for every layer that one speaks of."""
    spoken = [one for one in report.findings if one.severity != "note"]
    return {layer: one.severity for one in reversed(spoken) for layer in one.layers}


def _row(number: int, one: LayerRow, marks: Mapping[str, str]) -> Markup:
    mark = marks.get(one.layer)
    dot = tag("span", "● ", class_=f"dot {mark}", title=mark) if mark else ""
    part = tag("span", f" {one.part}", class_="quiet") if one.part else ""
    summary = one.summary
    cells: Sequence[object] = (
        str(number),
        joined((dot, tag("code", name(title(one.layer))), part)),
        one.class_name,
        str(one.call),
        size(one.shape),
        *map(figure_or_nothing, (summary.mean, summary.std, summary.min, summary.max)),
        share(summary.sparsity),
        *(f"{count:,}" for count in (summary.nan, summary.posinf + summary.neginf)),
        *(None if count is None else f"{count:,}" for count in (one.channels, one.dead, one.constant, one.duplicated)),
        figure_or_nothing(one.gain),
    )
    return row(COLUMNS, cells, id=f"layer-{number}", class_=mark)
