"""The page Check in Streamlit's own test harness, and what it stands on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from hookviz.errors import HookvizError, ImageError
from hookviz.models import load_model
from hookviz.samples import sample_bytes
from hookviz.sanity import Finding, InputTrial, Inspection, Report, Thresholds
from hookviz.statistics import summarize
from hookviz.ui import resources
from hookviz.ui.check_page import checks as checks_module
from hookviz.ui.check_page import jobs as jobs_module
from hookviz.ui.check_page.charts import trials_markup
from hookviz.ui.check_page.checks import Checks, Order, checks
from hookviz.ui.check_page.findings_view import finding_markup, with_code
from hookviz.ui.check_page.folders import named_folders, pictures_in
from hookviz.ui.check_page.jobs import Job, Jobs
from hookviz.ui.check_page.page import progress_words
from hookviz.ui.check_page.report_files import file_name, strict_json
from hookviz.ui.check_page.sources import names_classes, of_files, of_folder
from hookviz.ui.sidebar import ChosenImage
from hookviz.ui.start_options import StartOptions, read_options, start_options
from tests.nets import fingerprint, hook_count, same
from tests.ui.test_hooks_page import markup
from tests.ui.test_page import APP, address, sentences

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """Every test begins without networks and reports of the others, and without folders."""
    checks.clear()
    resources.models.clear()
    pictures_in.clear()
    start_options.cache_clear()
    yield
    start_options.cache_clear()
    resources.models.clear()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder with two labelled digits and a broken file."""
    root = tmp_path / "digits"
    for name in ("3", "8"):
        (root / name).mkdir(parents=True)
        (root / name / "digit.png").write_bytes(sample_bytes(f"digit_{name}"))
    (root / "8" / "broken.png").write_bytes(b"nothing")
    monkeypatch.setenv("HOOKVIZ_FOLDERS", str(root))
    return root


def check_page(**view: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    app._page_hash = calc_hash("check")  # switch_page() knows of pages that are files only
    for key, value in ({"model": "simple_cnn", "sample": "digit_3"} | view).items():
        app.query_params[key] = value
    return app.run()


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def until_done(app: AppTest) -> AppTest:
    """Run the page again, as its own progress does, until nothing goes on."""
    for _ in range(600):
        if title(app) == "button Checked":
            return app
        time.sleep(0.1)
        app.run()
    raise AssertionError("the check did not end")


def title(app: AppTest) -> str:
    (key,) = [one.key for one in app.button if one.key and (one.key.startswith("button ") or one.key == "cancel check")]
    return key


def start(app: AppTest) -> AppTest:
    app.button(key="button Check").click().run()
    return until_done(app)


def captions(app: AppTest) -> list[str]:
    return [one.value for one in app.caption]


def test_nothing_runs_before_the_button() -> None:
    app = check_page()
    assert not app.exception
    assert sentences(app) == []
    assert title(app) == "button Check"
    assert "hv-verdict" not in markup(app).partition("</style>")[2].rpartition("</style>")[2]
    assert address(app) == {"model": ["simple_cnn"], "sample": ["digit_3"]}


def test_one_click_checks_the_image_of_the_sidebar() -> None:
    """The verdict is the library's own on the same image; the address names nothing that is a default."""
    app = start(check_page())
    assert not app.exception
    shown = markup(app)
    assert "Nothing is wrong with simple_cnn, as far as 1 image can tell." in shown
    assert shown.count('<figure class="hv-trial') == 7
    assert shown.count('<figure class="hv-trial right"') == 1
    assert app.button(key="button Checked").disabled
    assert address(app) == {"model": ["simple_cnn"], "sample": ["digit_3"]}


def test_a_second_visitor_sees_the_report_and_runs_nothing() -> None:
    start(check_page())
    app = check_page()
    assert "Nothing is wrong with simple_cnn" in markup(app)
    other = check_page(sample="digit_8")
    assert "Nothing is wrong" not in markup(other)
    assert title(other) == "button Check"


def test_findings_are_cards_and_those_with_layers_lead_to_explore() -> None:
    app = start(check_page(weights="untrained", sample="grace_hopper"))
    shown = markup(app)
    first, second = shown.split('<div class="hv-finding ')[1:]
    assert first.startswith("warning")
    assert "<b>Warning</b> · weights" in first
    assert second.startswith("note")
    assert "most in <code>relu_1</code>: " in second
    (link,) = app.get("page_link")
    assert (link.proto.label, link.proto.page) == ("Open in Explore", "")
    assert parse_qs(link.proto.query_string) == {
        "model": ["simple_cnn"],
        "weights": ["untrained"],
        "sample": ["grace_hopper"],
        "open": ["relu_1"],
    }


def test_another_threshold_judges_again_without_running_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    app = start(check_page(sample="grace_hopper"))
    assert "Nothing is wrong with simple_cnn" in markup(app)
    monkeypatch.setattr(Inspection, "step", lambda _: pytest.fail("an image ran again"))
    app.number_input(key="threshold-entropy").set_value(1e-6).run()
    until_done(app)
    assert not app.exception
    assert "The network is undecided about the image" in markup(app)
    assert any(one.label == "Thresholds · 1 changed" for one in app.expander)
    app.button(key="threshold defaults").click().run()
    assert "Nothing is wrong with simple_cnn" in markup(app)
    assert app.number_input(key="threshold-entropy").value == 0.9


def test_layers_can_be_compared_with_nothing_or_another_network() -> None:
    app = start(check_page(against="nothing"))
    assert "How alike layers respond" not in markup(app)
    assert address(app)["against"] == ["nothing"]
    app.selectbox(key="check-against").set_value("simple_cnn").run()
    until_done(app)
    assert "Beside simple_cnn (bundled)" in markup(app)
    bars = markup(app).split('<div class="hv-likeness">')[1]
    assert bars.count('style="width:100.0%"') == 3  # with itself; of fully connected layers one image tells nothing


def test_an_unknown_folder_or_network_in_the_address_is_ignored_with_one_sentence(folder: Path) -> None:
    app = check_page(images="folder", folder="../../etc", against="no such network")
    assert not app.exception
    assert sentences(app) == [
        "The address asks for against “no such network”, which there is not; untrained is shown instead.",
        "The address asks for folder “../../etc”, which there is not; digits is shown instead.",
    ]


def test_without_allowed_folders_none_are_offered() -> None:
    app = check_page(images="folder")
    assert app.button_group(key="check-images").options == ["Sidebar image", "Your files"]
    assert sentences(app) == ["The address asks for images “folder”, which there is not; image is shown instead."]


def test_a_folder_with_labels(folder: Path) -> None:
    app = check_page(images="folder")
    assert app.selectbox(key="check-folder").options == ["digits · 3 pictures"]
    app.toggle(key="labels").set_value(True).run()
    start(app)
    assert "Nothing is wrong with simple_cnn, as far as 2 images can tell." in markup(app)
    assert "1 image could not be used" in markup(app)
    assert "8/broken.png" in markup(app)
    assert str(folder) not in markup(app)
    (answers,) = [one.value for one in app.dataframe if "label" in one.value]
    assert answers[["image", "answer", "label", "place of the label"]].to_numpy().tolist() == [
        ["3/digit.png", "3", "3", 1],
        ["8/digit.png", "8", "8", 1],
    ]
    assert address(app) == {"model": ["simple_cnn"], "sample": ["digit_3"], "images": ["folder"], "folder": ["digits"]}


def test_cancelling_keeps_what_was_done_and_going_on_looks_at_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may, step = threading.Semaphore(0), Inspection.step

    def held(inspection: Inspection) -> None:
        may.acquire(timeout=60)
        step(inspection)

    monkeypatch.setattr(Inspection, "step", held)
    app = check_page(images="folder")
    app.button(key="button Check").click().run()
    app.button(key="cancel check").click().run()
    assert app.button(key="cancel check").disabled
    may.release()
    for _ in range(600):
        if title(app) == "button Go on":
            break
        time.sleep(0.1)
        app.run()
    wait_for(lambda: not checks().judging._jobs)
    app.run()
    assert "Stopped after 1 of 3 images; “Go on” looks at the others." in captions(app)
    assert "as far as 1 image can tell" in markup(app)
    assert "stopped after 1 of 3 images" in markup(app)
    may.release(2)
    app.button(key="button Go on").click().run()
    until_done(app)
    assert "as far as 2 images can tell" in markup(app)
    assert "stopped after" not in markup(app)


def test_no_usable_image_is_said_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.png").write_bytes(b"nothing")
    monkeypatch.setenv("HOOKVIZ_FOLDERS", str(tmp_path))
    app = start(check_page(images="folder"))
    assert not app.exception
    assert '<span class="hv-mark error"' in markup(app)
    assert "Nothing is wrong" not in markup(app)
    assert "1 image could not be used" in markup(app)


def test_the_shared_network_is_left_as_it_was() -> None:
    check_page()
    (module,) = [one.module for one in resources.models()._values.values() if one.name == "simple_cnn"]
    before = fingerprint(module)
    start(check_page())
    assert hook_count(module) == 0
    assert same(fingerprint(module), before)


def test_folders_come_from_the_words_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_options(["--folder", "a", "--model", "m:f", "--folder", "b"]) == StartOptions(("m:f",), (), ("a", "b"))
    monkeypatch.setenv("HOOKVIZ_FOLDERS", f"x{os.pathsep}{os.pathsep}y")
    start_options.cache_clear()
    assert start_options().folders == ("x", "y")


def test_folders_are_told_apart_by_name(tmp_path: Path) -> None:
    one, other = tmp_path / "a" / "photos", tmp_path / "b" / "photos"
    for path in (one, other):
        path.mkdir(parents=True)
    assert named_folders([str(one), str(other), f"{one}/../photos"]) == {"photos": one, "photos (2)": other}


def test_a_link_out_of_a_folder_is_passed_over_also_when_it_is_put_there_later(tmp_path: Path) -> None:
    root, secret = tmp_path / "photos", tmp_path / "secret.png"
    root.mkdir()
    secret.write_bytes(sample_bytes("digit_3"))
    (root / "inside.png").write_bytes(sample_bytes("digit_8"))
    (root / "link.png").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    (root / "round.png").symlink_to(root / "round.png")
    (root / "again.png").symlink_to(root / "inside.png")
    found = pictures_in(str(root))
    assert [one.name for one in found] == ["again.png", "inside.png"]
    (root / "inside.png").unlink()
    (root / "inside.png").symlink_to(secret)
    with pytest.raises(ImageError, match=r"^inside.png lies outside the folder; copy it there.$"):
        found[1].read()


def test_what_cannot_be_read_does_not_tell_the_folder_s_path(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(sample_bytes("digit_8"))
    (found,) = pictures_in(str(tmp_path))
    (tmp_path / "a.png").unlink()
    with pytest.raises(ImageError) as caught:
        found.read()
    assert str(tmp_path) not in str(caught.value)


def test_a_missing_or_empty_folder_has_no_pictures(tmp_path: Path) -> None:
    assert pictures_in(str(tmp_path)) == []
    assert pictures_in(str(tmp_path / "nowhere")) == []


def test_a_large_folder_is_taken_evenly(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.png").write_bytes(b"")
    pictures = pictures_in(str(tmp_path))
    assert [one.name for one in of_folder("f", pictures, 4, labelled=False).items] == [
        "0.png",
        "2.png",
        "5.png",
        "7.png",
    ]
    assert len(of_folder("f", pictures, 500, labelled=False).items) == 10


def test_labels_are_offered_where_a_folder_is_called_like_a_class(tmp_path: Path) -> None:
    model = load_model("simple_cnn")
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "1.png").write_bytes(b"")
    assert not names_classes(pictures_in(str(tmp_path)), model)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "1.png").write_bytes(b"")
    pictures_in.clear()
    assert names_classes(pictures_in(str(tmp_path)), model)


def test_files_are_known_by_content_and_order() -> None:
    model = load_model("simple_cnn")
    first, second = ChosenImage(sample_bytes("digit_3"), "a.png"), ChosenImage(sample_bytes("digit_8"), "a.png")
    images = of_files(model, [first, second])
    assert [one.name for one in images.items] == ["a.png", "a.png (2)"]
    assert images.key == of_files(model, [first, second]).key
    assert images.key != of_files(model, [second, first]).key


def test_what_no_page_asks_about_ends_and_keeps_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """C75: the tab was closed."""
    monkeypatch.setattr(jobs_module, "PATIENCE", 0.05)
    made, model = Checks(), load_model("simple_cnn")
    images = of_files(model, [ChosenImage(sample_bytes("digit_3"), f"{one}.png") for one in range(40)])
    order = Order("m", images.key, "untrained", Thresholds(), "visitor")
    made.start(order, model, images)
    wait_for(lambda: not made.inspecting._jobs)
    part = made.inspection(order)
    assert part is not None
    assert 0 < part.done < 40


def test_two_visitors_do_not_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    """One stops, the other's goes on; the second sees no part of the first one's."""
    may, step = threading.Semaphore(0), Inspection.step

    def held(inspection: Inspection) -> None:
        may.acquire(timeout=60)
        step(inspection)

    monkeypatch.setattr(Inspection, "step", held)
    made, model = Checks(), load_model("simple_cnn")
    images = of_files(model, [ChosenImage(sample_bytes("digit_3"), f"{one}.png") for one in range(3)])
    one, other = (Order("m", images.key, "untrained", Thresholds(), who) for who in ("one", "other"))
    for order in (one, other):
        made.start(order, model, images)
    made.inspecting.stop(one.own)
    may.release(2)
    wait_for(lambda: made.inspecting.job(one.own) is None)
    assert made.inspection(other) is None
    may.release(3)
    wait_for(lambda: made.inspecting.job(other.own) is None)
    inspection = made.inspection(other)
    assert inspection is not None
    assert inspection.done == 3


def test_the_same_check_of_many_visitors_runs_once_the_turn_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    step = Inspection.step

    def noted(inspection: Inspection) -> None:
        ran.append("image")
        step(inspection)

    monkeypatch.setattr(Inspection, "step", noted)
    made, model = Checks(), load_model("simple_cnn")
    images = of_files(model, [ChosenImage(sample_bytes("digit_3"), "a.png")])
    for visitor in range(10):
        made.start(Order("m", images.key, "untrained", Thresholds(), str(visitor)), model, images)
    wait_for(lambda: not made.inspecting._jobs)
    assert len(ran) <= jobs_module.AT_A_TIME


def test_at_most_two_jobs_work_at_a_time_and_one_that_waits_can_be_left() -> None:
    jobs, may, working = Jobs("failed"), threading.Semaphore(0), []

    def work(job: Job) -> None:
        working.append(job)
        if job.goes_on:
            may.acquire(timeout=60)

    for key in ("one", "two", "three"):
        jobs.start(key, 1, work)
    wait_for(lambda: len(working) == 2)
    third = jobs.job("three")
    assert third is not None
    assert third.waits
    jobs.stop("three")
    may.release(2)
    wait_for(lambda: third.ended)
    assert not third.goes_on


def test_a_failure_is_a_sentence_and_the_next_start_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs("It failed; the log has the details.")

    def refuse(_: Job) -> None:
        raise HookvizError("no such weights")

    def break_down(_: Job) -> None:
        raise ZeroDivisionError

    for work, said in ((refuse, "no such weights"), (break_down, "It failed; the log has the details.")):
        jobs.start("key", 1, work)
        wait_for(lambda: (job := jobs.job("key")) is not None and job.ended)
        job = jobs.job("key")
        assert job is not None
        assert job.failure == said
    assert "ZeroDivisionError" in caplog.text
    jobs.forget_failure("key")
    assert jobs.job("key") is None


def test_reports_and_measurements_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_module, "INSPECTIONS_KEPT", 1)
    made, model = Checks(), load_model("simple_cnn")
    orders = []
    for sample in ("digit_3", "digit_8"):
        images = of_files(model, [ChosenImage(sample_bytes(sample), "a.png")])
        orders.append(Order("m", images.key, "untrained", Thresholds(), "visitor"))
        made.start(orders[-1], model, images)
        wait_for(lambda: not made.inspecting._jobs)
    assert made.inspection(orders[0]) is None
    assert made.inspection(orders[1]) is not None


def test_progress_says_how_long_the_rest_takes() -> None:
    job = Job(10, done=2, waits=False, began=time.monotonic() - 6)
    assert progress_words(job) == "2 of 10 images · about 24 s left"
    job.stopping = True
    assert progress_words(job) == "2 of 10 images · stopping after this one"
    assert progress_words(Job(1, waits=False)) == "0 of 1 image · 0 s"
    assert progress_words(Job(1)) == "Waiting for the checks of others"


def test_every_threshold_is_explained_in_the_words_of_the_source() -> None:
    said = Thresholds.about()
    assert list(said) == list(Thresholds.__dataclass_fields__)
    assert said["half_overflow"] == "The largest finite number of float16 (IEEE 754)."
    assert said["gain"].startswith("Factor by which a layer's output may be larger than its input")


def test_names_between_backticks_become_code_and_markup_stays_text() -> None:
    assert with_code("`a<b>` is <i>odd</i>") == "<code>a&lt;b&gt;</code> is &lt;i&gt;odd&lt;/i&gt;"


def test_a_finding_says_how_bad_in_words_and_lists_its_layers() -> None:
    finding = Finding("error", "layers", "kind", "What `a`.", "Why.", "Do.", ("a", ""), amount=0.5, threshold=0.25)
    shown = finding_markup(finding)
    assert "<b>Error</b> · layers" in shown
    assert "measured 0.5 · threshold 0.25" in shown
    assert "<summary>All 2 layers</summary><code>a</code> <code>(whole network)</code>" in shown


def test_a_trial_without_answer_or_picture_is_shown_by_its_name() -> None:
    import torch

    trial = InputTrial("squashed", False, summarize(torch.zeros(1)), "conv", None, None, None, None)
    assert trials_markup([trial], []) == (
        '<div class="hv-trials"><figure class="hv-trial"><div class="picture"></div><figcaption><div class="way">'
        "squashed</div></figcaption></figure></div>"
    )


def test_json_has_no_numbers_that_are_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    import json

    finding = Finding("error", "layers", "gain", "what", "why", "advice", amount=float("inf"))
    model = load_model("simple_cnn")
    order = Order("m", "k", "nothing", Thresholds(), "visitor")
    made = Checks()
    images = of_files(model, [ChosenImage(sample_bytes("digit_3"), "a.png")])
    made.start(order, model, images)
    wait_for(lambda: not made.inspecting._jobs)
    inspection = made.inspection(order)
    assert inspection is not None
    inspection.findings.append(finding)
    key = made.report_key(order)
    made.judge(key, inspection, lambda: None)
    wait_for(lambda: made.report(key))
    report = made.report(key)
    assert isinstance(report, Report)

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    read = json.loads(strict_json(report), parse_constant=refuse)
    assert read["findings"][0]["amount"] == "inf"
    assert read["verdict"] == "simple_cnn on 1 image: 1 error."
    assert file_name(report, "json") == "check-simple_cnn.json"
