"""What a card's channels are given, and that looking at them otherwise computes nothing anew; no browser."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from hookviz.layer_picture import Display, arranged
from hookviz.look import look
from hookviz.types import Layout
from hookviz.ui import cycle_collector, resources
from hookviz.ui.channel_panel import channel_numbers
from hookviz.ui.channel_readout import block_of, is_double
from hookviz.ui.cycle_collector import collect_set_aside, set_aside

APP = str(Path(__file__).parents[2] / "app.py")
DISPLAY: Display = {"scale": "channel", "robust": False, "cmap": "viridis"}


def page(**address: str | list[str]) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    for key, value in address.items():
        app.query_params[key] = value
    return app.run()


def test_blocks_are_rows_of_the_maps_one_below_the_other() -> None:
    values = torch.randn(5, 3, 4, generator=torch.Generator().manual_seed(0))
    order = (4, 0, 2)
    rows = np.concatenate([values.numpy()[channel] for channel in order])
    for first, count in ((0, 4), (4, 4), (8, 4), (2, 100)):
        assert np.array_equal(block_of(values, order, first, count), rows[first : first + count])
    assert block_of(values, order, 9, 4).size == 0


@pytest.mark.parametrize(
    ("dtype", "double", "value"),
    [
        (torch.float32, False, 0.1),
        (torch.bfloat16, False, 0.1),
        (torch.float64, True, 0.1),
        (torch.int64, True, 2**53 - 1),
        (torch.int32, True, -(2**31)),
        (torch.bool, False, True),
    ],
)
def test_blocks_lose_nothing(dtype: torch.dtype, double: bool, value: float) -> None:
    values = torch.full((1, 1, 1), value, dtype=dtype)
    assert is_double(values) is double
    (said,) = block_of(values, (0,), 0, 1).ravel().tolist()
    assert said == values.item()


def test_numbers_of_a_channel_say_where_its_extremes_are() -> None:
    values = torch.zeros(1, 2, 2, 3)
    values[0, 1] = torch.tensor([[0.0, 7.5, 1.0], [-2.0, float("nan"), float("inf")]])
    shown = arranged(values, Layout("NCHW"), "index", DISPLAY)
    finite = np.array([0.0, 7.5, 1.0, -2.0])
    assert channel_numbers(shown, values[0, 1].double().numpy(), 1) == {
        "mean": f"{finite.mean():.4g}",
        "sd": f"{finite.std():.4g}",
        "min": "−2 at row 1, column 0",
        "max": "7.5 at row 0, column 1",
        "zeros": f"{100 / 6:.1f} %",
        "NaN": "1",
        "+Inf": "1",
    }


def test_number_of_a_channel_with_one_value_is_the_value() -> None:
    values = torch.tensor([[1.5, -0.25]])
    shown = arranged(values, Layout("NC"), "index", DISPLAY)
    assert channel_numbers(shown, np.array([[-0.25]]), 1) == {"value": "−0.25"}


def test_sort_scale_colormap_and_page_run_no_forward_and_record_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """C22: what was captured once is looked at in many ways."""
    looks: list[object] = []
    real = look

    def counted(*arguments: Any, **settings: Any) -> Any:
        looks.append(arguments)
        return real(*arguments, **settings)

    monkeypatch.setattr(resources, "look", counted)
    forwards: list[object] = []
    app = page(model="resnet18", weights="untrained", layer="layer3.0.conv1", sample="gratings")
    handles = [model.module.register_forward_pre_hook(lambda *_: forwards.append(1)) for model in _models()]
    before = len(looks)
    app.selectbox(key="sort").set_value("mean").run()
    app.selectbox(key="cmap").set_value("magma").run()
    app.segmented_control(key="scale").set_value("shared").run()
    app.session_state["page-0"] = 3
    app.run()
    for handle in handles:
        handle.remove()
    assert not app.exception
    assert app.query_params["p0"] in ("3", ["3"])
    assert (len(looks) - before, forwards) == (0, [])


def _models() -> list[Any]:
    return list(resources.models()._values.values())


def test_address_opens_the_channel_and_keeps_what_each_card_shows() -> None:
    asked = {"c0": "7", "p0": "2", "item0": "9", "sort": "max", "robust": "1"}
    app = page(model="simple_cnn", sample="digit_3", layer="fc1", view0="Mosaic", **asked)
    assert not app.exception
    kept = {key: one if isinstance(one := app.query_params[key], str) else one[0] for key in app.query_params}
    expected = {name: asked[name] for name in ("c0", "p0", "sort", "robust")} | {"view0": "Mosaic"}
    assert {name: kept.get(name) for name in expected} == expected
    assert "item0" not in kept


def _hears_of_what_is_gone() -> None:
    import streamlit as st

    from hookviz.ui import state

    state.begin()
    state.take_choice()
    state.take_channel(0)
    state.take_step(0)
    state.take_block(0)
    state.take_position("at", 0)
    st.text(f"{state.row_chosen('rows')} {state.step_taken(0)} {state.channel_turn(0)} {state.position_turn('at', 0)}")


def test_a_choice_in_a_part_of_the_page_that_was_replaced_meanwhile_changes_nothing() -> None:
    app = AppTest.from_function(_hears_of_what_is_gone).run()
    assert not app.exception
    assert [one.value for one in app.text] == ["None None 0 0"]


def test_what_is_set_aside_still_goes_with_its_last_name_and_its_cycles_when_they_are_looked_for() -> None:
    """C75."""

    class Node:
        other: Node | None = None

    alone, first, second = Node(), Node(), Node()
    first.other, second.other = second, first
    collect_set_aside()
    gone = [weakref.ref(one) for one in (alone, first)]
    del alone
    assert gone[0]() is None
    del first, second
    gc.collect()
    assert gone[1]() is not None, "it was not set aside: the test shows nothing"
    collect_set_aside()
    assert gone[1]() is None
    gc.unfreeze()


def test_cycles_that_were_set_aside_are_looked_for_after_a_first_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for = Event()
    monkeypatch.setattr(cycle_collector, "collect_set_aside", looked_for.set)
    with set_aside(first=False):
        pass
    assert not looked_for.wait(1.5)
    with set_aside(first=True):
        pass
    assert not looked_for.is_set(), "the reader waits for it"
    assert looked_for.wait(5)
    gc.unfreeze()
