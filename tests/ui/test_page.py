"""The page as Streamlit's own test harness runs it: no browser, this very process."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.ui import resources
from tests.nets import hook_count

pytestmark = pytest.mark.usefixtures("one_thread")

APP = str(Path(__file__).parents[2] / "app.py")


def page(**address: str | list[str]) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    for key, value in address.items():
        app.query_params[key] = value
    return app.run()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def sentences(app: AppTest) -> list[str]:
    return [re.sub(r"\\(.)", r"\1", one.value) for one in (*app.error, *app.warning)]


def address(app: AppTest) -> dict[str, list[str]]:
    values = {key: app.query_params[key] for key in app.query_params}
    return {key: value if isinstance(value, list) else [value] for key, value in values.items()}


def test_defaults() -> None:
    app = page()
    assert not app.exception
    assert sentences(app) == []
    assert {key: app.session_state[key] for key in ("model", "weights", "sample", "sort", "scale", "cmap")} == {
        "model": "efficientnet_lite0",
        "weights": "bundled",
        "sample": "grace_hopper",
        "sort": "index",
        "scale": "channel",
        "cmap": "viridis",
    }
    assert address(app) == {"layer": ["conv_stem", "blocks.4.0.conv_pw", "conv_head"]}


def test_address_sets_every_widget() -> None:
    view = {
        "model": "simple_cnn",
        "weights": "untrained",
        "sample": "digit_8",
        "sort": "sparsity",
        "scale": "shared",
        "cmap": "magma",
    }
    app = page(**view, layer=["fc1", "conv1"])
    assert {key: app.session_state[key] for key in view} == view
    assert app.multiselect(key="layers").value == ["fc1", "conv1"]
    assert address(app) == {key: [value] for key, value in view.items()} | {"layer": ["fc1", "conv1"]}


def test_address_follows_the_widgets_and_leaves_out_defaults() -> None:
    app = page(model="simple_cnn", layer="conv1")
    app.selectbox(key="sort").set_value("max")
    app.selectbox(key="cmap").set_value("gray")
    app.multiselect(key="layers").set_value(["conv2", ""]).run()
    assert address(app) == {"model": ["simple_cnn"], "layer": ["conv2", ""], "sort": ["max"], "cmap": ["gray"]}
    app.selectbox(key="sort").set_value("index")
    app.selectbox(key="cmap").set_value("viridis").run()
    assert address(app) == {"model": ["simple_cnn"], "layer": ["conv2", ""]}


@pytest.mark.parametrize("key", ["model", "weights", "sample", "sort", "scale", "cmap"])
def test_unknown_value_in_the_address_is_ignored_with_one_sentence(key: str) -> None:
    app = page(**({"model": "simple_cnn"} | {key: "no such thing"}))
    assert not app.exception
    (said,) = sentences(app)
    assert said.startswith(f"The address asks for {key} “no such thing”, which there is not; ")
    assert key not in address(app)
    app.selectbox(key="cmap").set_value("magma").run()
    assert sentences(app) == []


def test_unknown_layers_are_left_out_and_the_known_ones_shown_once() -> None:
    app = page(model="simple_cnn", layer=["conv1", "nothing", "conv1"])
    assert app.multiselect(key="layers").value == ["conv1"]
    assert sentences(app) == ["The address asks for layer “nothing”, which simple_cnn does not have; it is left out."]


def test_more_layers_than_the_page_shows_are_cut_to_the_first() -> None:
    names = [
        f"layer{stage}.{block}.{part}" for stage in (1, 2, 3, 4) for block in (0, 1) for part in ("conv1", "conv2")
    ]
    app = page(model="resnet18", weights="untrained", layer=names)
    assert app.multiselect(key="layers").value == names[:12]
    assert sentences(app) == ["The address asks for 16 layers; the page shows 12 at a time, the first of them."]


def test_only_unknown_layers_give_the_first_choice() -> None:
    app = page(model="simple_cnn", layer="nothing")
    assert app.multiselect(key="layers").value == page(model="simple_cnn").multiselect(key="layers").value != []


def test_very_long_values_are_cut_in_the_sentence() -> None:
    (said,) = sentences(page(model="x" * 5000))
    assert len(said) < 300


def test_markup_in_the_address_stays_text() -> None:
    app = page(model="simple_cnn", layer="<img src=x onerror=alert(1)>")
    assert not any("<img src=x" in one.value for one in app.markdown)


def test_upload_in_the_address_is_said_to_be_missing() -> None:
    app = page(model="simple_cnn", upload="1")
    assert sentences(app) == [
        "An uploaded file cannot be part of an address: choose the file again; meanwhile a sample is shown."
    ]
    assert app.session_state["sample"] == "grace_hopper"
    assert "upload" not in address(app)


def test_switching_the_model_keeps_layers_of_the_same_name_and_drops_the_others() -> None:
    """C73."""
    app = page(model="resnet18", weights="untrained", layer=["layer4.1.conv2", "maxpool"])
    app.selectbox(key="model").set_value("simple_cnn").run()
    assert not app.exception
    assert app.multiselect(key="layers").value == ["conv1", "conv2", "pool"]
    app.selectbox(key="model").set_value("efficientnet_lite0").run()
    assert app.multiselect(key="layers").value == ["conv_stem", "blocks.4.0.conv_pw", "conv_head"]
    assert sentences(app) == []


def test_hundred_reruns_leave_no_hook_no_figure_no_memory_and_no_time_behind() -> None:
    """C19, C22, C24."""
    app = page(model="simple_cnn", sample="digit_3", layer=["conv1", "conv2"])
    memory, seconds = {}, []
    for turn in range(1, 101):
        began = time.monotonic()
        app.selectbox(key="cmap").set_value(("magma", "gray", "viridis")[turn % 3])
        app.selectbox(key="sort").set_value(("mean", "index")[turn % 2]).run()
        seconds.append(time.monotonic() - began)
        assert not app.exception
        memory[turn] = resident()
    models = list(resources.models()._values.values())
    assert [one.name for one in models][-1] == "simple_cnn"
    assert sum(hook_count(one.module) for one in models) == 0
    assert memory[100] - memory[10] < 50 * 2**20
    assert sorted(seconds[80:])[10] < 2 * sorted(seconds[:20])[10]

    from matplotlib import pyplot as plt

    assert plt.get_fignums() == []
