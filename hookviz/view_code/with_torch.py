from __future__ import annotations

from hookviz.errors import HookvizError
from hookviz.hook_lab.loading_code import LoadingCode, loading_code, sorted_imports
from hookviz.models import Model
from hookviz.view_code.edit_code import edit_functions
from hookviz.view_code.view import View

_KINDS = {
    "magnitude": ".abs()",
    "phase": ".angle()",
    "real part": ".real",
    "imaginary part": ".imag",
    "dequantized value": ".dequantize()",
    "stored integer": ".int_repr()",
}

_SCORES = {
    "mean": "np.ma.masked_invalid(every).mean((1, 2)).filled(np.nan)",
    "max": "np.ma.masked_invalid(every).max((1, 2)).filled(np.nan)",
    "spread": "np.ma.masked_invalid(every).std((1, 2)).filled(np.nan)",
    "sparsity": "(every == 0).mean((1, 2))",
}
"""By the page's words for it, what channels are sorted by; NaN and infinity do not count."""


def torch_script(model: Model, view: View, *, own_file: bool = False) -> str:
    """A script that computes the same ``tensor``, ``maps`` and ``page`` with torch's own hooks, and draws them.

    Networks that only hookviz can load as the page did are loaded by it.

    Args:
        model: as it was loaded.
        view: what the page shows.
        own_file: the weights are a visitor's own file.

    Raises:
        HookvizError: a functional operation, which no hook of torch reaches, or an edit inside a tuple or dict.
    """
    if view.is_operation:
        raise HookvizError("No hook of torch reaches a functional operation; use the script with hookviz.")
    loading = loading_code(model, own_file=own_file)
    imports = ["import numpy as np", "from matplotlib.figure import Figure", *loading.imports]
    parts = [
        sorted_imports("\n".join(imports)),
        loading.statements,
        edit_functions(view.edits),
        _recorded(view, loading),
        _mapped(view),
        _drawn(view),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _recorded(view: View, loading: LoadingCode) -> str:
    layer = f'model.get_submodule("{view.layer}")' if view.layer else "model"
    return f"""\
kept = []


def keep(module, args, output):
    kept.append(output{view.way}.detach().clone())  # what is not copied here may be written over by what follows


handles.append({layer}.register_forward_hook(keep))
try:
    with torch.no_grad():
        model({loading.call})
finally:
    for handle in handles:
        handle.remove()
tensor = kept[{view.call}]"""


def _mapped(view: View) -> str:
    kind = _KINDS.get(view.shows, "")
    lines = [
        f"values = {_reading(view, view.selection.depth)}{kind}",
        "maps = values.float().numpy()  # channels, rows, columns",
    ]
    numbers = "np.arange(len(maps))"
    if view.order != "index":
        # Channels stay in their places from slice to slice, so all slices count.
        lines += [f"every = {_reading(view, None)}{kind}.double().numpy()", f"scores = {_SCORES[view.order]}"]
        numbers = 'np.argsort(-scores, kind="stable")'
    first = view.page * view.per_page
    return "\n".join([*lines, f"page = {numbers}[{first}:{first + view.per_page}]"])


def _reading(view: View, depth: int | None) -> str:
    """The tensor as (channels, rows, columns), by its axes; of a volume one slice or all."""
    item, grid = view.selection.item, view.layout.grid
    one = f"tensor[:, {item}]" if view.layout.name == "LNC" else f"tensor[{item}]"
    tokens = f"{one}[None]"
    if grid:
        tokens = f"{one}[-{grid[0] * grid[1]}:].reshape({grid[0]}, {grid[1]}, -1).permute(2, 0, 1)"
    volume = ".flatten(1, 2)" if depth is None else f"[:, {depth}]"
    return {
        "NCHW": one,
        "NHWC": f"{one}.permute(2, 0, 1)",
        "CHW": "tensor",
        "HWC": "tensor.permute(2, 0, 1)",
        "HW": "tensor[None]",
        "NC": f"{one}[:, None, None]",
        "C": "tensor[:, None, None]",
        "scalar": "tensor.reshape(1, 1, 1)",
        "NLC": tokens,
        "LNC": tokens,
        "NHW": f"{one}[None]",
        "NCL": f"{one}[:, None, :]",
        "NCDHW": f"{one}{volume}",
        "NDHWC": f"{one}.permute(3, 0, 1, 2){volume}",
    }[view.layout.name]


def _drawn(view: View) -> str:
    scale, cmap = view.display["scale"], view.display["cmap"]
    finite = "maps[channel][np.isfinite(maps[channel])]" if scale == "channel" else "maps[np.isfinite(maps)]"
    limits = f"{finite}.min(), {finite}.max()"
    if view.display["robust"]:
        limits = f"np.percentile({finite}, (1, 99))"
    lines = ["figure = Figure(figsize=(8, 8))", "for place, channel in enumerate(page):"]
    lines += [f"    low, high = {limits}"]
    if scale == "symmetric":
        lines += ["    low, high = -max(-low, high), max(-low, high)"]
    return "\n".join(
        [
            *lines,
            f"    axes = figure.add_subplot({-(-view.per_page // 8)}, 8, place + 1)",
            f'    axes.imshow(maps[channel], cmap="{cmap}", vmin=low, vmax=high, interpolation="nearest")',
            '    axes.axis("off")',
            f'figure.savefig("{view.file}")',
        ]
    )
