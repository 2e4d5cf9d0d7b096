"""``hookviz layers``: what a network is made of."""

from __future__ import annotations

import argparse
from typing import Any

from hookviz.cli.console import Console
from hookviz.cli.parser import Commands, Parser, add_command, add_json, add_model, image_help
from hookviz.cli.subject import load_subject
from hookviz.cli.table import table_lines
from hookviz.describe import kind, title
from hookviz.models.model import UNTRAINED
from hookviz.samples import list_samples
from hookviz.types import LayerInfo, Layout, TensorInfo

_COLUMNS = ("name", "class", "output", "parameters", "calls")
_EXAMPLES = """\
  hookviz layers resnet18
  hookviz layers resnet18 --operations --json
  hookviz layers timm/vit_tiny_patch16_224 --image photo.jpg"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "layers",
        run,
        help="list a network's layers",
        description="List every layer with its class, outputs, parameters and calls, for one image on the CPU.\n"
        "Nothing is downloaded: untrained, a network has the same layers.",
        examples=_EXAMPLES,
    )
    add_model(parser, weights=UNTRAINED)
    default = list_samples()[0].name
    parser.add_argument("--image", metavar="IMAGE", default=default, help=f"{image_help()}; by default {default}")
    parser.add_argument(
        "--operations",
        action="store_true",
        help="list functions called in a forward (F.relu, torch.cat, +) too, each behind its module; by default not",
    )
    add_json(parser)
    return parser


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Print the layers."""
    chosen.device = "cpu"
    subject = load_subject(chosen, console)
    layers = subject.layers_and_operations if chosen.operations else subject.layers
    if chosen.json:
        console.json(list(map(as_json, layers)))
    else:
        console.result("\n".join(table_lines(_COLUMNS, list(map(cells, layers)), numbers={"parameters", "calls"})))
    return 0


def cells(info: LayerInfo) -> tuple[str, ...]:
    """A layer's row in the table."""
    shapes = dict.fromkeys(" × ".join(map(str, shape)) or "scalar" for shape in info.output_shapes)
    output = " | ".join(shapes) or ("no tensor" if info.calls else "not called")
    return (title(info.name), kind(info), output, f"{info.parameters:,}", str(info.calls))


def as_json(info: LayerInfo) -> dict[str, Any]:
    """A layer for other programs; ``outputs`` and ``layouts`` have one entry for each call."""
    return {
        "name": info.name,
        "class": info.class_name,
        "depth": info.depth,
        "parameters": info.parameters,
        "calls": info.calls,
        "outputs": [list(map(_tensor_as_json, call)) for call in info.outputs],
        "layouts": list(map(_layout_as_json, info.layouts)),
        "is_operation": info.is_operation,
    }


def _tensor_as_json(info: TensorInfo) -> dict[str, Any]:
    return {"path": info.path, "shape": info.shape, "dtype": info.dtype}


def _layout_as_json(layout: Layout | None) -> dict[str, Any] | None:
    if layout is None:
        return None
    return {"name": layout.name, "grid": layout.grid, "known": layout.known, "note": layout.note}
