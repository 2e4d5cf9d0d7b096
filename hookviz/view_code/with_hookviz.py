from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from hookviz.hook_lab.loading_code import IMAGE_FILE, OWN_WEIGHTS_FILE, own_target
from hookviz.hooks.edits import Edit
from hookviz.models import Model, list_weights
from hookviz.view_code.view import View


def hookviz_script(model: Model, view: View, *, own_file: bool = False) -> str:
    """A script that leaves the ``tensor``, its ``maps`` and the page as ``png``, and writes that to a file.

    Args:
        model: as it was loaded.
        view: what the page shows.
        own_file: the weights are a visitor's own file.
    """
    names = {"channel_maps", "load_image", "load_model", "views", _recorder(view)}
    names |= {type(one).__name__ for edits in view.edits.values() for one in edits}
    names |= {"edit"} if view.edits else set()
    imports = [
        "from pathlib import Path",
        "",
        "import torch",
        "",
        f"from hookviz import {', '.join(sorted(names, key=by_name))}",
        *_order_imports(view),
    ]
    body = [
        *loaded_lines(model, own_file=own_file),
        *edit_lines(view.edits),
        *_recorded(view),
        *_mapped(view),
        *_drawn(view),
    ]
    return "\n".join([*imports, "", *body]) + "\n"


def by_name(name: str) -> tuple[bool, str]:
    """The order of names in an import: classes, then functions."""
    return not name[0].isupper(), name


def _recorder(view: View) -> str:
    return "record_operations" if view.is_operation else "record"


def _order_imports(view: View) -> list[str]:
    if view.order == "index":
        return []
    return ["from hookviz.channels import channel_order, channel_statistics", "from hookviz.layout import arrange"]


def loaded_lines(model: Model, *, own_file: bool) -> list[str]:
    """Statements that leave ``model`` and ``image``."""
    name = own_target(model) or model.name
    values = ""
    if own_file:
        values = f', "{OWN_WEIGHTS_FILE}"'
    elif not model.trained:
        values = ", weights=None"
    elif own_target(model) is None and model.weights != list_weights(model.name)[0]:
        values = f', "{model.weights}"'
    device = "" if model.device.type == "cpu" else f', device="{model.device}"'
    return [f'model = load_model("{name}"{values}{device})', f'image = load_image("{IMAGE_FILE}")']


def edit_lines(edits: Mapping[str, Sequence[Edit]]) -> list[str]:
    """Statements that leave ``edits``; none where there are none."""
    rows = [f'    "{layer}": [{", ".join(map(edit_text, many))}],' for layer, many in edits.items()]
    return ["edits = {", *rows, "}"] if rows else []


def edit_text(one: Edit) -> str:
    """An edit as it is written down, what is a default left out."""
    given = [
        (field.name, getattr(one, field.name)) for field in fields(one) if getattr(one, field.name) != field.default
    ]
    return f"{type(one).__name__}({', '.join(f'{name}={value!r}' for name, value in given)})"


def _recorded(view: View) -> list[str]:
    edited = "edit(model.module, edits), " if view.edits else ""
    recorded = f'{_recorder(view)}(model.module, "{view.layer}") as rec'
    call = f"[{view.call}]" if view.calls > 1 else ""
    return [
        f"with torch.no_grad(), {edited}{recorded}:",
        "    model.module(*model.inputs(image))",
        f'tensor = rec["{view.layer}"]{call}.output{view.way}',
        "",
    ]


def _reading(view: View) -> str:
    grid = f", grid={view.layout.grid}" if view.layout.grid else ""
    item = f", item={view.selection.item}" if view.selection.item else ""
    return f'"{view.layout.name}"{grid}{item}'


def _kind(view: View) -> str:
    return "" if view.selection.shows == "auto" else f', shows="{view.selection.shows}"'


def _depth(view: View) -> str:
    return "" if view.selection.depth is None else f", depth={view.selection.depth}"


def _mapped(view: View) -> list[str]:
    maps = [f"maps = channel_maps(tensor, {_reading(view)}{_depth(view)}{_kind(view)})"]
    if view.order == "index":
        return maps
    values = f"arrange(tensor, {_reading(view)}{_kind(view)}).values"
    return [*maps, f'order = channel_order(channel_statistics({values}), "{view.order}")']


def _drawn(view: View) -> list[str]:
    display = view.display
    settings = [f'scale="{display["scale"]}"', f'cmap="{display["cmap"]}"']
    settings += ["robust=True"] if display["robust"] else []
    one = ", ".join(settings)
    settings += ["order=order"] if view.order != "index" else []
    settings += [f"page={view.page}"] if view.page else []
    lines = [f"png = views.mosaic(maps, {', '.join(settings)})", f'Path("{view.file}").write_bytes(png)']
    if view.channel is not None:
        lines += [f"channel = maps.maps[{view.channel}]", f"large = views.channel_picture(maps, {view.channel}, {one})"]
    return lines
