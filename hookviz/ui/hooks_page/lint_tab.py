"""The tab about the hooks that sit on the network, and what articles get wrong about hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from hookviz.hook_lab import NOTES, HookSurvey
from hookviz.hooks import HookInfo
from hookviz.hooks.grad_inputs import GradInputs, Shapes, compare_grad_inputs
from hookviz.models import load_model
from hookviz.samples import load_sample
from hookviz.ui.hooks_page.subject import Subject, get_survey
from hookviz.ui.sentences import one_sentence, sentence
from hookviz.ui.style import badge, escaped, show


def show_lint_tab(subject: Subject) -> None:
    """The hooks of the network as it was given, and the notes."""
    with one_sentence():
        survey = get_survey(subject.key, subject)
        _show_remarks(survey)
        _show_hooks(survey.hooks)
    with one_sentence(), st.expander("What articles get wrong", expanded=not survey.hooks):
        _show_comparison(get_comparison())
        for note in NOTES:
            st.markdown(f"**{note.claim}**")
            st.markdown(sentence(note.truth))
            code, printed = st.columns([2, 1], gap="small")
            with code:
                st.code(note.code, "python")
            with printed:
                st.code(note.printed.rstrip(), None, wrap_lines=True)


def _show_remarks(survey: HookSurvey) -> None:
    with st.container(key="remarks"):
        if not survey.hooks and not survey.remarks:
            show('<div class="hv-head">No hooks on this model</div>')
            return
        serious = sum(one.serious for one in survey.remarks)
        mark = badge("bad", f"{serious} to look at") if serious else badge("good", "nothing to look at")
        show(f'<div class="hv-head">{_count(len(survey.hooks))} on this model {mark}</div>')
        for one in survey.remarks:
            (st.warning if one.serious else st.info)(
                sentence(one.sentence), icon=":material/warning:" if one.serious else ":material/info:"
            )


def _count(hooks: int) -> str:
    return "1 hook" if hooks == 1 else f"{hooks or 'No'} hooks"


def _show_hooks(hooks: Sequence[HookInfo]) -> None:
    if not hooks:
        return
    rows = "".join(
        f"<tr><td>{one.kind}</td>"
        f'<td class="hv-mono">{"every module" if one.layer is None else escaped(one.layer or "(whole network)")}</td>'
        f'<td class="hv-mono">{escaped(one.function)}</td>'
        f'<td class="hv-mono">{escaped(_written_at(one))}</td>'
        f"<td>{'hookviz' if one.by_hookviz else 'others'}</td></tr>"
        for one in hooks
    )
    head = "".join(f"<th>{title}</th>" for title in ("kind", "layer", "function", "written at", "registered by"))
    show(f'<div class="hv-table-place"><table class="hv-table"><tr>{head}</tr>{rows}</table></div>')


def _written_at(hook: HookInfo) -> str:
    """File and line, counted from the folder that the server was started in where that holds the file."""
    if not hook.file:
        return "a class without a file"
    path = Path(hook.file)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return f"{shown}:{hook.line}"


@st.cache_data(show_spinner=False)
def get_comparison() -> tuple[GradInputs, ...]:
    """What both kinds of backward hook are given on the teaching network, from a run of it."""
    model = load_model("simple_cnn", device="cpu")
    batch = model.prepare(load_sample("digit_3")).requires_grad_()
    return compare_grad_inputs(model.module, batch, layers=["conv1", "fc1"])


def _show_comparison(rows: Sequence[GradInputs]) -> None:
    st.markdown("**What `grad_input` holds, by how the hook was registered**, on the teaching network `simple_cnn`:")
    cells = "".join(
        f'<tr><td class="hv-mono">{escaped(row.layer)} {escaped(row.class_name)}</td>'
        f"<td>{_shapes(row.full, ())}</td><td>{_shapes(row.deprecated, row.labels)}</td>"
        f"<td>{_shapes(tuple(row.parameters.values()), tuple(row.parameters))}</td></tr>"
        for row in rows
    )
    titles = (
        "layer",
        "register_full_backward_hook",
        "register_backward_hook, deprecated",
        "parameters: Tensor.register_post_accumulate_grad_hook",
    )
    head = "".join(f"<th>{title}</th>" for title in titles)
    show(f'<div class="hv-table-place" id="grad-inputs"><table class="hv-table"><tr>{head}</tr>{cells}</table></div>')


def _shapes(shapes: Shapes | None, labels: Sequence[str]) -> str:
    if shapes is None:
        return "did not fire"
    names = labels or ["input"] * len(shapes)
    lines = [
        f"{escaped(name)} {'None' if shape is None else ' × '.join(map(str, shape))}"
        for name, shape in zip(names, shapes, strict=True)
    ]
    return "<br>".join(lines)
