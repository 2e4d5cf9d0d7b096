"""The page Hooks: a laboratory, the gradients, and what sits on the network already."""

from __future__ import annotations

import streamlit as st

from hookviz.hook_lab import Experiment
from hookviz.ui import state
from hookviz.ui.hooks_page import controls, versus
from hookviz.ui.hooks_page.gradients_tab import show_gradients_tab
from hookviz.ui.hooks_page.hooks_tab import show_hooks_tab
from hookviz.ui.hooks_page.lint_tab import show_lint_tab
from hookviz.ui.hooks_page.style import apply_hooks_style
from hookviz.ui.hooks_page.subject import Subject, get_trial
from hookviz.ui.sentences import one_sentence

_TAB = "hooks-tab"
_TABS = ("Hooks", "Gradients", "Lint")


def show_hooks_page(subject: Subject) -> dict[str, str]:
    """Show the page; gives what of it goes into the address."""
    apply_hooks_style()
    state.settle_choice(_TAB, _TABS, _TABS[0], parameter="tab")
    hooks, gradients, lint = st.tabs(_TABS, key=_TAB, on_change="rerun")
    view: dict[str, str] = {}
    with one_sentence():
        if hooks.open:
            with hooks:
                view = controls.address(show_hooks_tab(subject, *_classes(subject)))
        elif gradients.open:
            with gradients:
                loss = show_gradients_tab(subject, *_classes(subject))
            view = {"tab": "Gradients", "loss": loss.kind} | (
                {} if loss.target is None else {"class": str(loss.target)}
            )
        else:
            with lint:
                show_lint_tab(subject)
            view = {"tab": "Lint"}
    return view


def _classes(subject: Subject) -> tuple[int | None, list[int]]:
    """How many classes there are, and the most probable ones."""
    logits = get_trial(subject.key, _NOTHING, subject).before.logits
    return (None, []) if logits is None else (logits.shape[1], versus.ranked(logits))


_NOTHING = Experiment(layer="")
