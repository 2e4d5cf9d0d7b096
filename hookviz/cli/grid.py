"""``hookviz grid``: every channel of a layer, as the page shows it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, get_args

from hookviz.cli.choice import ChosenLayer, add_layers, choose_layers, each
from hookviz.cli.console import Console
from hookviz.cli.drawing import KINDS, Drawing
from hookviz.cli.output_file import OutputFile
from hookviz.cli.parser import Commands, Parser, add_command, add_device, add_image, add_model, positive
from hookviz.cli.raw_values import Arrays, joined, layer_values
from hookviz.cli.subject import load_subject
from hookviz.hooks import Call
from hookviz.layer_picture import PER_PAGE
from hookviz.look import look
from hookviz.types import ChannelOrder, LayerInfo, Scale
from hookviz.views import COLORMAPS, npz_bytes, pdf_bytes
from hookviz.views.palette import palette

Calls: TypeAlias = Mapping[str, Sequence[Call]]

_DESCRIPTION = """\
Draw every channel of the chosen layers, or write their values, and print the names of
the files written. What is written is said by the suffix of OUT:

  .png   the page's mosaic, a pixel for each value, one file a layer; with --figure the figure
  .svg   the figure with title, numbered channels and a colour bar, one file a layer
  .pdf   the same figure, one page a layer
  .npz   raw values in their own dtype, all layers in one file: LAYER is its first call,
         LAYER.call2 its second, and LAYER.dtype what torch calls the dtype, where numpy
         has none such and the array holds the stored bits (LAYER.dequantized: as numbers)

Of several layers, each has a file of its own: OUT.LAYER.png beside OUT.png."""

_EXAMPLES = """\
  hookviz grid resnet18 photo.jpg --layers conv1 -o conv1.png
  hookviz grid resnet18 photo.jpg --layers 'layer1.*.conv?' layer1.0.add -o layer1.pdf
  hookviz grid simple_cnn digit_3 --layers conv1 conv2 --sort mean --scale shared -o digit.png
  curl -s https://example.com/a.jpg | hookviz grid resnet18 - --layers conv1 -o values.npz"""


def add(commands: Commands) -> Parser:
    """The command and its options."""
    parser = add_command(
        commands,
        "grid",
        run,
        help="draw the channels of layers, or write their values",
        usage="hookviz grid MODEL IMAGE --layers L [L ...] -o OUT [OPTIONS]",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
    )
    add_model(parser)
    add_image(parser)
    add_layers(parser, required=True)
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="the file to write, .png, .svg, .pdf or .npz"
    )
    add_device(parser)
    _add_look(parser)
    _add_part(parser)
    return parser


def _add_look(parser: Parser) -> None:
    looks = parser.add_argument_group("how it looks")
    looks.add_argument(
        "--sort",
        choices=get_args(ChannelOrder),
        default="index",
        help="what channels are sorted by, largest first; by default index, the channel's number, ascending",
    )
    looks.add_argument(
        "--scale",
        choices=get_args(Scale),
        default="channel",
        help="colour each channel over its own range, all over one shared, or one symmetric around zero; by default "
        "channel",
    )
    looks.add_argument(
        "--cmap",
        default=COLORMAPS[0],
        help=f"{', '.join(COLORMAPS)}, or another colormap of matplotlib; by default {COLORMAPS[0]}",
    )
    looks.add_argument(
        "--robust", action="store_true", help="limits at the 1st and 99th percentile; by default the extremes"
    )
    looks.add_argument("--figure", action="store_true", help="a PNG of the figure; by default of the mosaic")
    looks.add_argument("--theme", choices=["light", "dark"], default="light", help="of figures; by default light")


def _add_part(parser: Parser) -> None:
    part = parser.add_argument_group("which part of it")
    part.add_argument(
        "--per-page", metavar="N", type=positive, default=PER_PAGE, help=f"channels on a page; by default {PER_PAGE}"
    )
    part.add_argument("--page", metavar="N", type=positive, default=1, help="counted from 1; by default the first")
    part.add_argument(
        "--call",
        metavar="N",
        type=positive,
        help="of a layer that runs several times, counted from 1; by default the first, and all of them in an .npz",
    )
    part.add_argument(
        "--part",
        metavar="PATH",
        help="of a layer that returns several tensors, as hookviz layers --json has it; by default the first",
    )
    part.add_argument(
        "--item",
        metavar="N",
        type=positive,
        help="of a batch, such as frames or windows, counted from 1; by default the first, and all of them in an .npz",
    )
    part.add_argument(
        "--slice",
        metavar="N",
        type=positive,
        help="of a volume, along its depth or time, counted from 1; by default the first, and all of them in an .npz",
    )
    part.add_argument(
        "--shows",
        choices=list(KINDS),
        help="of complex numbers the magnitude, phase, real or imaginary part, of quantized ones the dequantized value "
        "or the stored integer; by default the magnitude, or the dequantized value",
    )


def run(chosen: argparse.Namespace, console: Console) -> int:
    """Write the files, and print their names."""
    output = OutputFile(Path(chosen.output))
    palette(chosen.cmap)  # says that there is no such colormap before anything takes its time
    subject = load_subject(chosen, console)
    layers = choose_layers(subject, chosen.layers, console)
    console.progress(f"running {chosen.model}")
    calls = look(subject.model.module, subject.inputs, [one.info.name for one in layers]).calls
    if output.suffix == ".npz":
        _write_values(layers, calls, output, chosen, console)
    else:
        _write_pictures(layers, calls, output, chosen, console)
    return 0


def _write_values(
    layers: list[ChosenLayer], calls: Calls, output: OutputFile, chosen: argparse.Namespace, console: Console
) -> None:
    def values(info: LayerInfo) -> Arrays:
        return layer_values(info.name, calls[info.name], chosen.call, chosen.part)

    arrays = joined([one for _, one in each(layers, values, console)])
    console.progress(f"writing {output.path}")
    output.write(npz_bytes(arrays))
    console.result(str(output.path))


def _write_pictures(
    layers: list[ChosenLayer], calls: Calls, output: OutputFile, chosen: argparse.Namespace, console: Console
) -> None:
    drawing = Drawing.of(chosen)
    pictures = each(layers, lambda info: drawing.shown(info, calls[info.name], console), console)
    if output.suffix == ".pdf":
        output.write(pdf_bytes(drawing.figure(info, shown) for info, shown in pictures))
        console.result(str(output.path))
        return
    as_mosaic = output.suffix == ".png" and not chosen.figure
    for info, shown in pictures:
        target = output if len(layers) == 1 else output.for_layer(info.name)
        target.write(drawing.mosaic(shown) if as_mosaic else drawing.figure_file(info, shown, output.suffix))
        console.result(str(target.path))
