"""Fields found in the background: the latest first, each once, and never an error for the page; no browser."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from hookviz.errors import GradientError
from hookviz.hooks import ReceptiveField
from hookviz.models import load_model
from hookviz.samples import load_sample
from hookviz.ui import receptive_fields
from hookviz.ui.channel_photo import filled
from hookviz.ui.receptive_fields import Field, FieldFinder

APP = str(Path(__file__).parents[2] / "app.py")


def field(top: int, bottom: int, left: int, right: int, *, exact: bool = True, note: str = "") -> ReceptiveField:
    return ReceptiveField(top, bottom, left, right, np.zeros((10, 20), np.float32), "conv", (0, 0), exact, note)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            field(1, 4, 2, 7),
            Field((2 / 20, 1 / 10, 7 / 20, 4 / 10), "receptive field 5 × 3 px of the network’s input"),
        ),
        (field(0, 10, 0, 20), Field((0.0, 0.0, 1.0, 1.0), "receptive field: the whole image")),
        (
            field(0, 10, 0, 5, exact=False, note="it may be smaller"),
            Field(
                (0.0, 0.0, 0.25, 1.0), "receptive field at most 5 × 10 px of the network’s input", "it may be smaller"
            ),
        ),
        (field(0, 0, 0, 0, note="padding alone"), Field(None, "no receptive field", "padding alone")),
    ],
)
def test_a_field_is_said_width_first_in_the_input_s_pixels(found: ReceptiveField, expected: Field) -> None:
    assert Field.of(found) == expected


def test_a_detector_s_maps_reach_beyond_the_photo_where_it_adds_a_border() -> None:
    """512 × 600 becomes 320 × 375, with a border 320 × 384."""
    model = load_model("fasterrcnn_mobilenet_v3_large_320_fpn", None, "cpu")
    assert filled(("detector", "hopper"), model, model.prepare(load_sample("grace_hopper"))) == (1.0, 375 / 384)


def test_the_one_asked_for_last_is_found_first_and_each_is_made_once() -> None:
    finder, go, made = FieldFinder(), threading.Event(), []

    def make(name: str) -> ReceptiveField:
        go.wait(10)
        made.append(name)
        return field(0, 1, 0, 1)

    for name in "abc":
        assert finder.find(name, lambda name=name: make(name), seconds=0.05) is None  # type: ignore[misc]
    go.set()
    assert [finder.find(name, lambda name=name: make(name), seconds=10) is None for name in "abc"] == [False] * 3  # type: ignore[misc]
    assert made == ["a", "c", "b"]
    assert finder.find("d", None, seconds=10) is None


def test_what_waits_is_bounded_and_what_is_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receptive_fields, "WISHES_KEPT", 2)
    monkeypatch.setattr(receptive_fields, "FIELDS_KEPT", 2)
    finder, go = FieldFinder(), threading.Event()

    def make() -> ReceptiveField:
        go.wait(10)
        return field(0, 1, 0, 1)

    for number in range(5):
        finder.find(number, make, seconds=0.05)
    go.set()
    assert finder.find(5, make, seconds=10) == Field.of(field(0, 1, 0, 1))
    assert [finder.find(number, None, seconds=0) is None for number in range(4)] == [True, True, True, True]
    assert finder.find(6, make, seconds=10) == Field.of(field(0, 1, 0, 1))


def test_an_error_is_a_note_and_the_next_is_found_all_the_same() -> None:
    finder = FieldFinder()

    def refuse() -> ReceptiveField:
        raise GradientError("No gradient leads there.")

    assert finder.find("int8", refuse, seconds=10) == Field(None, "no receptive field", "No gradient leads there.")
    broken = finder.find("broken", lambda: 1 / 0, seconds=10)  # type: ignore[arg-type, return-value]
    assert broken == Field(None, "no receptive field", "it could not be found; the log says why")
    assert finder.find("whole", lambda: field(0, 1, 0, 1), seconds=10) == Field.of(field(0, 1, 0, 1))


def test_a_position_that_there_is_not_is_left_out_with_a_sentence() -> None:
    """C73."""
    app = AppTest.from_file(APP, default_timeout=120)
    asked = {"model": "simple_cnn", "sample": "digit_3", "layer": "conv1", "c0": "1", "at0": "999,0"}
    for key, value in asked.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert [one.value for one in app.warning] == [
        "The address asks for at0\\=999\\,0\\, and there are rows 0 to 31 and columns 0 to 31\\; it is left out\\."
    ]
    assert "at0" not in app.query_params


def test_groups_are_as_many_as_the_address_asks_for() -> None:
    app = AppTest.from_file(APP, default_timeout=120)
    asked = {"model": "simple_cnn", "sample": "digit_3", "layer": "conv1", "view0": "Overview", "k0": "3"}
    for key, value in asked.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    assert app.slider(key="groups-0").value == 3
    app.slider(key="groups-0").set_value(5).run()
    assert "k0" not in app.query_params
