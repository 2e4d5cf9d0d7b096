"""The tab where a hook is tried: what it changes, when it fires, what it is given, and the code for it."""

from __future__ import annotations

import streamlit as st
import torch

from hookviz.hook_lab import SIGNATURES, Experiment, LossChoice, Trial, hook_code, loading_code
from hookviz.ui import state
from hookviz.ui.hooks_page import versus
from hookviz.ui.hooks_page.controls import choose_experiment
from hookviz.ui.hooks_page.maps import maps_markup
from hookviz.ui.hooks_page.subject import Subject, get_cost, get_firings, get_trial
from hookviz.ui.hooks_page.timeline import timeline_markup
from hookviz.ui.hooks_page.verdict import verdict
from hookviz.ui.sentences import one_sentence
from hookviz.ui.style import badge, escaped, show

_WHAT = {
    "forward": "The output of {}",
    "forward_pre": "The input of {}",
    "backward": "The gradient of {}’s input",
    "backward_pre": "The gradient of {}’s output",
}


def show_hooks_tab(subject: Subject, logits: int | None, ranked: list[int]) -> Experiment:
    """Everything about one hook; gives the experiment that was chosen."""
    experiment = choose_experiment(subject, logits, ranked)
    with one_sentence():
        with st.spinner("Running without and with the hook"):
            trial = get_trial(subject.key, experiment, subject)
        left, right = st.columns([1.1, 1], gap="large")
        with left, st.container(key="predictions"):
            _show_outcome(subject, trial)
        with right:
            _show_maps(subject, trial)
        order, facts = st.columns([1.85, 1], gap="large")
        with order:
            _show_timeline(subject, experiment)
        with facts:
            _show_received(trial)
            _show_cost(subject, trial.experiment)
        _show_code(subject, trial)
    return experiment


def _show_outcome(subject: Subject, trial: Trial) -> None:
    said = verdict(trial)
    mark = badge("warn" if said.changed else "good", said.title)
    title = "Gradients" if trial.experiment.is_backward else "Prediction"
    head = f'<div class="hv-head">{title} {mark}</div><p class="hv-quiet">{escaped(said.reason)}</p>'
    if trial.experiment.is_backward:
        show(head + versus.key() + versus.norm_rows(_norms(trial), trial.experiment.layer))
        return
    before, after = trial.before.logits, trial.after.logits
    if before is None or after is None:
        show(f'{head}<p class="hv-quiet">This network gives no classes to compare; see the maps.</p>')
    elif not bool(torch.isfinite(after).all()):
        show(f'{head}<p class="hv-quiet">With the hook the scores are not finite, so the classes have no order.</p>')
    else:
        names = subject.class_names(before.shape[1])
        show(head + versus.key() + versus.class_rows(before, after, names))


def _norms(trial: Trial) -> dict[str, tuple[float | None, float | None]]:
    """Layers without parts and the chosen one, from it on as the gradient flows, and last the network's input."""
    names = list(trial.before.norms)
    parts = [
        name
        for name in names
        if name == trial.experiment.layer or not any(other.startswith(f"{name}.") for other in names if name)
    ]
    ending = parts.index(trial.experiment.layer) + 1 if trial.experiment.layer in parts else len(parts)
    backward = [name for name in reversed(parts[:ending]) if name]
    rows: dict[str, tuple[float | None, float | None]] = {
        name: (trial.before.norms[name], trial.after.norms.get(name)) for name in backward
    }
    was, now = (
        None if one.input_gradient is None else float(one.input_gradient.double().norm())
        for one in (trial.before, trial.after)
    )
    return rows | {"the network’s input": (was, now)}


def _show_maps(subject: Subject, trial: Trial) -> None:
    experiment = trial.experiment
    first = trial.seen[0] if trial.seen else None
    head = '<div class="hv-head">Maps</div>'
    if first is None or first.before is None or first.after is None:
        show(f'{head}<p class="hv-quiet">There is no tensor to compare.</p>')
        return
    if len(trial.seen) > 1:
        head += f'<p class="hv-quiet">The hook fired {len(trial.seen)} times; this is the first.</p>'
    what = _WHAT[experiment.kind].format(experiment.layer or "the network")
    show(head + maps_markup(first.before, first.after, subject.info(experiment.layer), what))


def _show_timeline(subject: Subject, experiment: Experiment) -> None:
    loss = experiment.loss if experiment.is_backward else LossChoice()
    firings = get_firings(subject.key, experiment.is_backward, loss, experiment, subject)
    with st.container(key="timeline"):
        with st.container(horizontal=True, vertical_alignment="center"):
            passes = "a forward and a backward" if experiment.is_backward else "a forward"
            show(
                f'<div class="hv-head" style="margin:0">Order of firings</div><div class="hv-quiet">{len(firings)} in '
                f"{passes}, yours marked</div>"
            )
            whole = st.toggle("Show all", key="whole timeline")
        show(timeline_markup(firings, experiment, whole=whole))


def _show_received(trial: Trial) -> None:
    kind = trial.experiment.kind
    head = '<div class="hv-head">What the hook received</div>'
    if not trial.seen:
        show(f'{head}<p class="hv-quiet">Nothing: it never fired.</p>')
        return
    first = trial.seen[0]
    lines = first.module.splitlines()
    module = "\n".join(lines if len(lines) <= 6 else [*lines[:5], f"  … {len(lines) - 5} more lines"])
    rows = [("signature", f"<code>{escaped(SIGNATURES[kind])}</code>"), ("module", f"<pre>{escaped(module)}</pre>")]
    rows += [(name, escaped(words)) for name, words in first.given]
    rows.append(("returned", escaped(first.returned)))
    rows.append(("fired", f"{len(trial.seen)} times" if len(trial.seen) > 1 else "once"))
    cells = "".join(f'<span class="what">{name}</span><span class="value">{value}</span>' for name, value in rows)
    show(f'{head}<div class="hv-facts">{cells}</div>')


def _show_cost(subject: Subject, experiment: Experiment) -> None:
    if experiment.is_backward:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="cost"):
        st.button("Measure the cost", key="measure cost", on_click=state.ask_for, args=("hook cost", str(experiment)))
        if state.asked_for("hook cost") != str(experiment):
            st.caption("Ten forwards without and ten with this hook.", width="stretch")
            return
        cost = get_cost(subject.key, experiment, subject)
        st.caption(
            f"The fastest of 10 forwards takes {_milliseconds(cost.plain)} without and {_milliseconds(cost.hooked)} "
            f"with the hook (ratio {cost.ratio:.2f}). Recording the layer: ratio {cost.recording.ratio:.2f}, "
            f"{cost.recording.bytes / 2**20:.2f} MB held."
        )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms" if seconds < 0.01 else f"{1000 * seconds:.0f} ms"


def _show_code(subject: Subject, trial: Trial) -> None:
    first = trial.seen[0].before if trial.seen else None
    dimensions = 4 if first is None else first.ndim
    loading = loading_code(subject.model, own_file=subject.own_file)
    show('<div class="hv-head">The same in PyTorch</div>')
    st.code(hook_code(trial.experiment, loading, dimensions, emulated=trial.emulated), "python")
