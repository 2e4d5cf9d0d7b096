from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor, nn

from hookviz import check, load_image, load_model, load_sample
from hookviz.bundled import bundled_file
from hookviz.models import Model
from hookviz.sanity import Answer, Finding, Report
from hookviz.sanity_report import report_card, report_html
from hookviz.sanity_report.card import CARD_STYLE
from tests.sanity.html_tree import Node, read

DIGITS = ("digit_3.png", "digit_8.png")
EVIL = "<script>alert(1)<&script> & \"q\" 'a' `b`.png"


@pytest.fixture(scope="module", autouse=True)
def one_thread_throughout() -> Iterator[None]:
    """So that the numbers of two runs are the same, and the reports that say with how many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def checked(model: Model | None = None, **settings: Any) -> Report:
    images = [str(bundled_file(one)) for one in DIGITS]
    return check(model or load_model("simple_cnn", device="cpu"), images, labels=[3, 8], **settings)


@pytest.fixture(scope="module")
def report() -> Report:
    return checked()


@pytest.fixture(scope="module")
def page(report: Report) -> Node:
    return read(report.to_html())


@pytest.fixture(scope="module")
def broken() -> Report:
    """A network with a NaN in one weight, half of a layer switched off, and files that are no images."""
    model = load_model("simple_cnn", device="cpu")
    conv, linear = model.module.get_submodule("conv2"), model.module.get_submodule("fc1")
    assert isinstance(conv, nn.Conv2d)
    assert isinstance(linear, nn.Linear)
    with torch.no_grad():
        conv.weight[3:20] = 0
        linear.weight[2, 5] = float("nan")
    return check(model, [str(bundled_file(one)) for one in DIGITS])


def outputs_by_hand() -> dict[tuple[str, int], npt.NDArray[np.float64]]:
    """What every module returned on both digits, in float64, by call."""
    model = load_model("simple_cnn", device="cpu")
    seen: dict[tuple[str, int], list[Tensor]] = defaultdict(list)
    calls: dict[str, int] = {}

    def keep(name: str) -> Any:
        def hook(_: nn.Module, __: object, output: Tensor) -> None:
            calls[name] = calls.get(name, 0) + 1
            seen[name, calls[name]].append(output.clone())

        return hook

    for name, module in model.module.named_modules():
        if name:
            module.register_forward_hook(keep(name))
    for one in DIGITS:
        calls.clear()
        with torch.no_grad():
            model.module(model.prepare(load_image(bundled_file(one))))
    return {place: torch.cat(some).double().numpy() for place, some in seen.items()}


def four_digits(value: float) -> str:
    text = f"{value:.4g}".replace("e-0", "e-").replace("-", "−")
    return "0" if text == "−0" else text


def test_the_table_has_every_layer_with_the_numbers_that_torch_gives(report: Report, page: Node) -> None:
    heads, rows = page.table("layers")
    assert len(rows) == len(report.layers)
    by_hand = outputs_by_hand()
    seen = set()
    for number, cells in enumerate(rows, 1):
        cell = dict(zip(heads, cells, strict=True))
        assert cell["#"] == str(number)
        values = by_hand.get((cell["layer"].strip("● "), int(cell["call"])))
        if values is None:  # a function that the forward calls
            assert cell["class"] == "relu"
            continue
        seen.add((cell["layer"], int(cell["call"])))
        expected = (values.mean(), values.std(), values.min(), values.max())
        assert [cell[one] for one in ("mean", "sd", "min", "max")] == [four_digits(float(one)) for one in expected]
        assert cell["zeros"].removesuffix(" %") == f"{100 * (values == 0).mean():.0f}"
        assert (cell["NaN"], cell["Inf"]) == ("0", "0")
        assert cell["channels"] == str(values.shape[1])
        assert cell["shape"] == " × ".join(map(str, values.shape[1:]))
    assert seen == set(by_hand)


def test_gain_is_the_root_mean_square_out_over_that_in(page: Node) -> None:
    heads, rows = page.table("layers")
    gains = {row[heads.index("layer")]: row[heads.index("gain")] for row in rows}
    model = load_model("simple_cnn", device="cpu")
    batches = [model.prepare(load_image(bundled_file(one))) for one in DIGITS]
    outputs = outputs_by_hand()["conv1", 1]
    incoming = torch.cat(batches).double().square().mean().sqrt().item()
    assert gains["conv1"] == four_digits(float(np.sqrt((outputs**2).mean())) / incoming)
    assert gains["pool"] == "–"


def test_the_page_has_the_verdict_and_names_the_network(report: Report, page: Node) -> None:
    (title,), (headline,) = page.every("title"), page.every("h1")
    assert title.text == "simple_cnn: hookviz check"
    assert headline.text == report.verdict == "Nothing is wrong with simple_cnn, as far as 2 images can tell."
    assert [one.text for one in page.every("span", "badge")] == ["nothing found"]
    assert page.by_id("findings").every("p", "good")


def test_findings_stand_first_the_worst_on_top_each_with_all_it_says(broken: Report) -> None:
    page = read(broken.to_html())
    sections = [one.attributes["id"] for one in page.every("section")]
    assert sections[0] == "findings"
    cards = page.by_id("findings").every("article", "finding")
    assert len(cards) == len(broken.findings) > 2
    assert [card.classes[1] for card in cards] == [one.severity for one in broken.findings]
    assert cards[0].classes[1] == "error"
    for card, one in zip(cards, broken.findings, strict=True):
        words = card.text.replace("\N{NO-BREAK SPACE}", " ")
        for said in (one.what, one.why, one.advice):
            assert said.replace("`", "") in words
        (badge,) = card.every("span", "badge")
        assert badge.text == one.severity
    poisoned = next(card for card in cards if "holds 1 value" in card.text)
    assert [code.text for code in poisoned.every("p", "what")[0].every("code")] == ["weight", "fc1"]
    assert [fact.text.strip() for fact in poisoned.every("li")] == ["measured 1", "threshold 0", "see fc1"]


def test_a_finding_leads_to_the_row_of_its_layer(broken: Report) -> None:
    page = read(broken.to_html())
    links = [link for link in page.by_id("findings").every("a") if link.text == "fc1"]
    assert links
    target = page.by_id(links[0].attributes["href"].removeprefix("#"))
    number = [one.layer for one in broken.layers].index("fc1") + 1
    assert target.attributes["id"] == f"layer-{number}"
    assert target.every("td")[1].text == "● fc1"
    assert target.classes == ["error"]


def test_every_link_leads_somewhere_on_the_page(broken: Report, page: Node) -> None:
    for one in (page, read(broken.to_html())):
        ids = [node.attributes["id"] for node in one.walk() if "id" in node.attributes]
        assert len(ids) == len(set(ids))
        links = {node.attributes["href"] for node in one.every("a")}
        assert links <= {f"#{name}" for name in ids}


def test_nothing_is_fetched_and_nothing_runs(broken: Report, report: Report) -> None:
    for page in (broken.to_html(), report.to_html()):
        nodes = list(read(page).walk())
        assert not {"script", "link", "iframe", "object", "embed", "base", "form"} & {one.tag for one in nodes}
        for node in nodes:
            assert not [key for key in node.attributes if key.startswith("on")]
            for key in ("src", "srcset", "href", "xlink:href", "data", "poster"):
                assert node.attributes.get(key, "#").startswith(("#", "data:image/png;base64,"))
        assert {found[0] for found in re.findall(r"url\((.)", page)} <= {"#"}
        assert "@import" not in page
        assert "http" not in "".join(one.text for one in read(page).every("style"))


def test_names_from_outside_are_text_and_nothing_else(tmp_path: Path) -> None:
    load_sample("digit_3").save(tmp_path / EVIL)
    (tmp_path / "<img src=x onerror=alert(2)>.png").write_bytes(b"no picture")
    model = load_model("simple_cnn", device="cpu")
    classes = tuple(f'</td><script>alert("{index}")</script>' for index in range(10))
    renamed = replace(model, name="<i>net</i>", categories=classes, weights="</style><b>", source="<u>here</u>")
    report = check(renamed, tmp_path, labels=[3, 3])
    strange = '<svg onload="alert(3)">'
    rows = (replace(report.layers[0], layer=strange, class_name="<b>Conv"), *report.layers[1:])
    found = Finding("error", "layers", "x", f"`{strange}` & <b>more</b>", "<i>", "</p>", (strange,))
    evil = replace(report, layers=rows, findings=(found,))
    for made in (report_html(evil), report_card(evil)):
        root = read(made)
        assert not {"script", "i", "u"} & {one.tag for one in root.walk()}
        assert not [one for one in root.walk() if "onerror" in one.attributes or "onload" in one.attributes]
    page = read(report_html(evil))
    _, answers = page.table("answers")
    assert answers[0][:2] == [EVIL, classes[3]]
    _, unreadable = page.table("unreadable images")
    assert unreadable[0][0] == "<img src=x onerror=alert(2)>.png"
    assert page.every("h1")[0].text == "<i>net</i> on 1 image: 1 error."
    assert page.by_id("layer-1").every("code")[0].text == strange


def test_file_names_that_are_no_unicode_still_make_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    folder.mkdir()
    load_sample("digit_3").save(folder / "a.png")
    (folder / "a.png").rename(os.fsdecode(os.fsencode(folder) + b"/\xff\x07.png"))
    report = check(load_model("simple_cnn", device="cpu"), folder)
    report.save(tmp_path / "report.html")
    page = read((tmp_path / "report.html").read_text("utf-8"))
    _, answers = page.table("answers")
    assert answers[0][0] == "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}.png"


def test_images_that_could_not_be_used_are_listed_with_the_reason(tmp_path: Path) -> None:
    load_sample("digit_3").save(tmp_path / "good.png")
    (tmp_path / "empty.png").write_bytes(b"")
    report = check(load_model("simple_cnn", device="cpu"), tmp_path)
    page = read(report.to_html())
    heads, rows = page.table("unreadable images")
    assert heads == ["image", "reason"]
    assert rows == [["empty.png", report.unreadable[0].reason]]
    assert "empty (0 bytes)" in rows[0][1]


def test_inputs_stand_side_by_side_with_the_right_one_marked(report: Report, page: Node) -> None:
    cards = page.by_id("input").every("div", "trial")
    assert len(cards) == len(report.input_trials) > 4
    right = [card for card in cards if "right" in card.classes]
    assert [card.every("p", "title")[0].text for card in right] == ["✓ as the weights want it"]
    model = load_model("simple_cnn", device="cpu")
    batch = model.prepare(load_image(bundled_file("digit_3.png")))
    first = outputs_of(model, batch)
    facts = [one.text for one in right[0].every("dd")]
    assert facts[0] == "3"
    assert facts[3] == f"{batch.mean():.3g} ± {batch.std(correction=0):.3g}".replace("-", "−")
    assert facts[4] == f"{first.mean():.3g} ± {first.std(correction=0):.3g}".replace("-", "−")
    assert all(card.every("img")[0].attributes["src"].startswith("data:image/png;base64,") for card in cards)


def outputs_of(model: Model, batch: Tensor) -> Tensor:
    layer = model.module.get_submodule("conv1")
    assert isinstance(layer, nn.Conv2d)
    with torch.no_grad():
        return layer.forward(batch)


def test_answers_have_names_probabilities_labels_and_ranks(page: Node) -> None:
    heads, rows = page.table("answers")
    assert heads == ["image", "answer", "probability", "entropy", "label", "rank"]
    assert rows == [
        ["digit_3.png", "3", "over 99 %", "under 1 %", "3", "1"],
        ["digit_8.png", "8", "over 99 %", "under 1 %", "8", "1"],
    ]
    heads, rows = page.table("steadiness")
    assert [row[0] for row in rows] == ["mirrored", *(f"4 pixels {way}" for way in ("left", "right", "up", "down"))]


def test_of_many_answers_the_first_200_are_listed_and_all_are_counted(report: Report) -> None:
    answers = tuple(Answer(f"{number}.png", number % 10, number / 999, 0.5) for number in range(1_000))
    images = tuple(replace(report.images[0], name=one.image) for one in answers)
    page = read(report_html(replace(report, answers=answers, images=images)))
    for says in ("answers", "images"):
        _, rows = page.table(says)
        assert [row[0] for row in rows] == [f"{number}.png" for number in range(200)]
    assert [one.text for one in page.every("p", "quiet") if "more" in one.text] == ["and 800 images more"] * 2
    assert len(page.by_id("answers").every("svg")) == 2


def test_layers_are_drawn_on_pages_that_fit_on_paper(report: Report) -> None:
    many = replace(report, layers=tuple(report.layers[0] for _ in range(101)))
    page = read(report_html(many))
    described = [one.text for one in page.by_id("layers").every("desc")]
    assert described.count("histograms of the layers' values") == 3
    assert len(page.table("layers")[1]) == 101


def test_figures_take_their_colours_from_the_page(page: Node) -> None:
    for drawing in page.every("svg"):
        styles = " ".join(one.attributes.get("style", "") for one in drawing.walk())
        assert set(re.findall(r"#[0-9a-f]{6}", styles)) <= {"#3b82d0"}
        assert {"var(--ink)", "var(--line)"} <= set(re.findall(r"var\(--\w+\)", styles))


def test_likeness_lists_every_compared_layer(report: Report, page: Node) -> None:
    assert report.compared is not None
    _, rows = page.table("likeness of layers")
    assert [row[1] for row in rows] == [one.layer for one in report.compared.layers]
    expected = ["–" if one.cka is None else four_digits(one.cka) for one in report.compared.layers]
    assert [row[3] for row in rows] == expected


def test_details_tell_this_report_from_another(report: Report, page: Node) -> None:
    details = page.by_id("details")
    known = dict(zip((one.text for one in details.every("dt")), (one.text for one in details.every("dd")), strict=True))
    assert known["sha256"] == report.network.sha256
    assert known["torch"] == torch.__version__.split("+", maxsplit=1)[0] or known["torch"] == torch.__version__
    assert known["parameters"] == f"{sum(one.numel() for one in load_model('simple_cnn').module.parameters()):,}"
    assert {name.replace("_", " ") for name in asdict(report.thresholds)} <= set(known)
    assert known["half overflow"] == "65,504 The largest finite number of float16 (IEEE 754)."
    _, rows = page.table("images")
    assert rows == [[one.name, one.sha256] for one in report.images]


def test_equal_reports_are_equal_files(report: Report, tmp_path: Path) -> None:
    report.save(tmp_path / "one.html")
    checked().save(tmp_path / "other.html")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "other.html").read_bytes()
    assert (tmp_path / "one.html").read_text("utf-8") == report.to_html()


def test_a_date_stands_there_only_where_it_is_given(report: Report) -> None:
    assert "2026-11-30" not in report_html(report)
    assert read(report_html(report, date="2026-11-30")).every("header")[0].text.endswith("2 images · 2026-11-30")


def test_a_check_that_saw_nothing_is_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "empty.png").write_bytes(b"")
    report = check(load_model("simple_cnn", device="cpu"), tmp_path)
    page = read(report.to_html())
    assert [one.attributes["id"] for one in page.every("section")] == ["findings", "unreadable", "layers", "details"]
    assert "nothing to say of the layers" in page.by_id("layers").text
    assert read(report_card(report)).every("p", "verdict")[0].text == report.verdict


def test_a_check_that_was_stopped_says_so(report: Report) -> None:
    assert "stopped before" in read(report_html(replace(report, complete=False))).every("header")[0].text


def test_a_network_without_images_or_classes_is_a_page_too() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(0), nn.Unflatten(0, (1, -1)))
    report = check(net, torch.randn(2, 3, 8, 8), against=None)
    page = read(report.to_html())
    assert [row[1] for row in page.table("layers")[1]] == ["0", "1", "2", "3"]
    assert not page.every("section", "input")


def test_the_card_of_a_notebook_leaves_the_page_around_it_alone(broken: Report) -> None:
    card = read(broken._repr_html_())
    (style,) = card.every("style")
    assert style.text == CARD_STYLE
    selectors = [one.strip() for rule in re.findall(r"([^{}]+)\{", CARD_STYLE) for one in rule.split(",")]
    assert len(selectors) > 10
    assert all(one.startswith(".hookviz-report") for one in selectors)
    assert [one for one in card.walk() if "id" in one.attributes] == []
    assert card.every("p", "verdict")[0].text == broken.verdict
    found = [one.text.replace("\N{NO-BREAK SPACE}", " ") for one in card.every("ul", "found")[0].every("li")]
    assert found == [f"{one.severity}{one.what.replace('`', '')}" for one in broken.findings]
    _, rows = card.table("layers")
    spoken = {layer for one in broken.findings if one.severity != "note" for layer in one.layers}
    assert [row[1] for row in rows if row[1].split()[0] not in spoken] == []
    (picture,) = card.every("img")
    assert picture.attributes["src"].startswith("data:image/")


def test_a_photograph_and_a_deep_network_make_a_file_under_five_megabytes() -> None:
    report = check(load_model("efficientnet_lite0", device="cpu"), str(bundled_file("grace_hopper.jpg")))
    made = report.to_html()
    assert 200_000 < len(made.encode()) < 5_000_000
    page = read(made)
    assert len(page.table("layers")[1]) == len(report.layers) > 100
    assert page.table("answers")[1][0][0] == "grace_hopper.jpg"


@pytest.mark.slow
def test_resnet50_stays_under_five_megabytes() -> None:
    report = check(load_model("resnet50", None, device="cpu"), str(bundled_file("grace_hopper.jpg")))
    assert len(report.to_html().encode()) < 5_000_000
