"""What the network answered, and whether the answers hold."""

from __future__ import annotations

import numpy as np

from hookviz.sanity import Report, Steadiness
from hookviz.sanity_report.class_titles import class_title
from hookviz.sanity_report.drawings import Drawings
from hookviz.sanity_report.markup import Markup, joined, name, tag
from hookviz.sanity_report.tables import Column, more, row, share, table
from hookviz.views import share_histogram_figure

MOST_IMAGES = 200
_FEWEST_FOR_A_HISTOGRAM = 8


def answer_section(report: Report, drawings: Drawings) -> Markup:
    """A row for each image, how the answers spread where there are many, and what small changes do to them."""
    if not report.answers:
        return joined(())
    parts = [_answers(report), more(len(report.answers), MOST_IMAGES, "image")]
    if len(report.answers) >= _FEWEST_FOR_A_HISTOGRAM:
        parts.append(_histograms(report, drawings))
    parts.append(_steadiness(report.steadiness) if report.steadiness else joined(()))
    return tag("section", tag("h2", "Answers"), *parts, id="answers")


def _answers(report: Report) -> Markup:
    labelled = any(one.label is not None for one in report.answers)
    labels = (Column("label"), Column("rank", True, "where the label came among all classes")) if labelled else ()
    columns = (
        *(Column("image"), Column("answer"), Column("probability", True)),
        Column("entropy", True, "as a share of the largest possible"),
        *labels,
    )
    rows = []
    for one in report.answers[:MOST_IMAGES]:
        label = None if one.label is None else name(class_title(one.label, report.categories))
        cells = [name(one.image), name(class_title(one.index, report.categories)), share(one.probability)]
        wrong = one.rank is not None and one.rank > 1
        rank = None if one.rank is None else tag("span", f"{one.rank:,}", class_="off" if wrong else None)
        rows.append(row(columns, [*cells, share(one.entropy), *((label, rank) if labelled else ())]))
    return table("answers", columns, rows)


def _histograms(report: Report, drawings: Drawings) -> Markup:
    probabilities = np.clip([one.probability for one in report.answers], 0, 1)
    entropies = np.clip([one.entropy for one in report.answers], 0, 1)
    drawn = {
        "probability of the answer": share_histogram_figure(
            probabilities, title="how sure", label="probability of the answer"
        ),
        "entropy of the answer": share_histogram_figure(
            entropies, title="how undecided", label="entropy, of the largest possible"
        ),
    }
    return tag("div", *(drawings.figure(figure, says) for says, figure in drawn.items()), class_="pair")


def _steadiness(found: tuple[Steadiness, ...]) -> Markup:
    columns = (Column("the image"), Column("same answer", True), Column("of", True), Column("share", True))
    rows = [row(columns, (one.change, f"{one.same:,}", f"{one.tried:,}", share(one.same / one.tried))) for one in found]
    told = "How often the answer stayed the same when the first images were changed a little."
    return joined((tag("h3", "Steadiness"), tag("p", told, class_="lead"), table("steadiness", columns, rows)))
