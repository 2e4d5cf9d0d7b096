"""``hookviz stats``: every layer in numbers."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from typing import Any

from hookviz.cli.choice import add_layers, choose_layers
from hookviz.cli.console import Console
from hookviz.cli.measures import Measures, measure
from hookviz.cli.parser import Commands, Parser, add_command, add_device, add_image, add_model
from hookviz.cli.subject import load_subject
from hookviz.cli.table import table_lines
from hookviz.describe import kind, title
from hookviz.views import number

_DESCRIPTION = """\
Print what each layer returned in numbers, a line for each call and each tensor of it:
mean, sd (population), min and max in float64 over the finite values; how many values,
NaN and infinities there are; the share of exact zeros, 0 to 1; and how many channels
are constant or dead, that is zero everywhere in this image (not for GELU, Sigmoid and
their like, where zero means nothing). Only the numbers are held, never the outputs."""

_EXAMPLES = """\
  hookviz stats resnet18 photo.jpg
  hookviz stats simple_cnn digit_3 --layers 'conv*' --json
  hookviz stats resnet18 photo.jpg --csv > resnet18.csv"""

_COLUMNS = ("layer", "class", "call", "output", "mean", "sd", "min", "max", "zeros", "NaN", "Inf", "constant", "dead")
_WORDS = {"layer", "class", "output"}
_NOTHING = "–"


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "stats",
        run,
        help="print every layer's statistics",
        usage="hookviz stats MODEL IMAGE [--layers L [L ...]] [--json | --csv] [OPTIONS]",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
    )
    add_model(parser)
    add_image(parser)
    add_layers(parser, required=False)
    add_device(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON, where what there is no number for is null")
    form.add_argument("--csv", action="store_true", help="print CSV, where what there is no number for is empty")
    return parser


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Print the statistics."""
    subject = load_subject(chosen, console)
    layers = [one.info for one in choose_layers(subject, chosen.layers or ["*"], console)]
    console.progress(f"running {chosen.model}")
    rows = measure(subject, layers)
    if chosen.json:
        console.json(list(map(as_dictionary, rows)))
    elif chosen.csv:
        console.result(_csv(list(map(as_dictionary, rows))))
    else:
        numbers = set(_COLUMNS) - _WORDS
        console.result("\n".join(table_lines(_COLUMNS, list(map(_cells, rows)), numbers=numbers)))
    return 0


def as_dictionary(row: Measures) -> dict[str, Any]:
    """One row for other programs; ``call`` counts from 1, ``zeros`` counts and ``sparsity`` is their share."""
    summary = row.summary
    return {
        "layer": row.layer.name,
        "class": row.layer.class_name,
        "call": row.call,
        "part": row.part,
        "shape": row.shape,
        "dtype": summary.dtype,
        "shows": summary.shows,
        "count": summary.count,
        "mean": summary.mean,
        "std": summary.std,
        "min": summary.min,
        "max": summary.max,
        "zeros": summary.zeros,
        "sparsity": summary.sparsity,
        "nan": summary.nan,
        "posinf": summary.posinf,
        "neginf": summary.neginf,
        "channels": row.channels,
        "constant_channels": row.constant,
        "dead_channels": row.dead,
    }


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | {"shape": "x".join(map(str, row["shape"]))} for row in rows)
    return stream.getvalue().rstrip("\n")


def _cells(row: Measures) -> tuple[str, ...]:
    summary = row.summary
    output = " × ".join(map(str, row.shape)) or "scalar"
    return (
        title(row.layer.name),
        kind(row.layer),
        str(row.call),
        f"{row.part}: {output}" if row.part else output,
        *map(_number, (summary.mean, summary.std, summary.min, summary.max)),
        _number(summary.sparsity),
        str(summary.nan),
        str(summary.posinf + summary.neginf),
        *(_NOTHING if count is None else f"{count}/{row.channels}" for count in (row.constant, row.dead)),
    )


def _number(value: float | None) -> str:
    return _NOTHING if value is None else number(value)
