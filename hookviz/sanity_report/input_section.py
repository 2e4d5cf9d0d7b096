"""What was fed: images that could not be read, and the first one fed in the usual wrong ways."""

from __future__ import annotations

from collections.abc import Sequence

from hookviz.sanity import InputTrial, Report
from hookviz.sanity.findings import counted
from hookviz.sanity_report.class_titles import class_title
from hookviz.sanity_report.drawings import data_url
from hookviz.sanity_report.markup import Markup, image, joined, name, tag
from hookviz.sanity_report.tables import NOTHING, Column, more, plus_minus, row, share, table
from hookviz.views import png_bytes

_MOST_UNREADABLE = 200


def unreadable_section(report: Report) -> Markup:
    """The images that were not checked, and why; nothing where there are none."""
    some = report.unreadable
    if not some:
        return joined(())
    columns = (Column("image"), Column("reason"))
    rows = [row(columns, (name(one.name), one.reason)) for one in some[:_MOST_UNREADABLE]]
    words = tag("h2", f"{counted(len(some), 'image')} could not be used")
    listed = table("unreadable images", columns, rows)
    return tag("section", words, listed, more(len(some), len(rows), "image"), id="unreadable")


def input_section(report: Report) -> Markup:
    """The ways to feed the first image side by side; nothing where they were not tried."""
    trials = report.input_trials
    if not trials:
        return joined(())
    first = tag("code", name(trials[0].first_layer)) if trials[0].first_layer else "the first layer"
    told = tag(
        "p",
        "The first image as the weights want it, and in the ways in which it is often fed by mistake. Each picture is "
        "what the network takes its input for; ",
        first,
        " is the first layer with weights. Answers other than the right input's are coloured.",
        class_="lead",
    )
    right = next((one.index for one in trials if one.is_right), None)
    cards = tag("div", *(_card(one, report.categories, right) for one in trials), class_="trials")
    return tag("section", tag("h2", "The input, right and wrong"), told, cards, id="input")


def _card(trial: InputTrial, categories: Sequence[str], right: int | None) -> Markup:
    seen = NOTHING
    if trial.pixels is not None:
        height, width = trial.pixels.shape[:2]
        seen = image(src=data_url(png_bytes(trial.pixels)), width=width, height=height, alt=f"input {trial.title}")
    title = tag("p", tag("span", "✓ ", class_="tick") if trial.is_right else "", trial.title, class_="title")
    facts = {
        "answer": _answer(trial, categories, right),
        "probability": share(trial.probability) or NOTHING,
        "entropy": share(trial.entropy) or NOTHING,
        "input": plus_minus(trial.input.mean, trial.input.std),
        "first layer": NOTHING if trial.output is None else plus_minus(trial.output.mean, trial.output.std),
    }
    listed = tag("dl", *(joined((tag("dt", key), tag("dd", value))) for key, value in facts.items()))
    return tag(
        "div", tag("div", seen, class_="seen"), title, listed, class_="trial right" if trial.is_right else "trial"
    )


def _answer(trial: InputTrial, categories: Sequence[str], right: int | None) -> Markup | str:
    """The class, marked where it is another than that of the right input."""
    if trial.index is None:
        return NOTHING
    changed = right is not None and trial.index != right
    return tag("span", name(class_title(trial.index, categories)), class_="answer off" if changed else "answer")
