"""Scripts that run a network with and without edits, and leave the logits ``before`` and ``after``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hookviz.hook_lab.loading_code import loading_code, sorted_imports
from hookviz.hooks.edits import Edit
from hookviz.models import Model
from hookviz.view_code.edit_code import edit_functions
from hookviz.view_code.with_hookviz import by_name, edit_lines, loaded_lines

Edits = Mapping[str, Sequence[Edit]]


def edited_hookviz_script(model: Model, edits: Edits, *, own_file: bool = False) -> str:
    """The script with hookviz; ``own_file`` where the weights are a visitor's own."""
    names = {"compare_edits", "load_image", "load_model"}
    names |= {type(one).__name__ for many in edits.values() for one in many}
    lines = [
        f"from hookviz import {', '.join(sorted(names, key=by_name))}",
        "",
        *loaded_lines(model, own_file=own_file),
        *edit_lines(edits),
        "effect = compare_edits(model.module, model.inputs(image), edits)",
        "before, after = effect.before, effect.after",
        "for moved in effect.moved[:10]:",
        "    print(moved.name, moved.move)",
    ]
    return "\n".join(lines) + "\n"


def edited_torch_script(model: Model, edits: Edits, *, own_file: bool = False) -> str:
    """The script with torch alone; networks that only hookviz can load as the page did are loaded by it.

    Raises:
        HookvizError: an edit inside a tuple or dict.
    """
    loading = loading_code(model, own_file=own_file)
    run = f"""\
try:
    with torch.no_grad():
        after = model({loading.call})
finally:
    for handle in handles:
        handle.remove()"""
    parts = [
        sorted_imports("\n".join(loading.imports)),
        loading.statements,
        f"with torch.no_grad():\n    before = model({loading.call})",
        edit_functions(edits),
        run,
        *(["print((after - before).abs().max())"] if loading.classifies else []),
    ]
    return "\n\n".join(parts) + "\n"
