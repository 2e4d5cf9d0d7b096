"""The page Hooks in Streamlit's own test harness."""

from __future__ import annotations

import pytest
import torch
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from hookviz.hooks import list_layers
from hookviz.ui import resources
from hookviz.ui.start_options import StartOptions, read_options
from tests.nets import fingerprint, hook_count, same
from tests.ui.test_page import APP, address, sentences

pytestmark = pytest.mark.usefixtures("one_thread")


def hooks_page(**view: str | list[str]) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    app._page_hash = calc_hash("hooks")  # switch_page() knows of pages that are files only
    for key, value in ({"model": "simple_cnn", "sample": "digit_3"} | view).items():
        app.query_params[key] = value
    return app.run()


def markup(app: AppTest) -> str:
    return " ".join(one.proto.body for one in app.get("html"))


def test_begins_with_zeroing_the_strongest_channel_of_the_last_convolution() -> None:
    app = hooks_page()
    assert not app.exception
    chosen = {one.key: one.value for one in app.selectbox if one.key and one.key.startswith("hook-")}
    assert chosen == {
        "hook-layer": "conv2",
        "hook-kind": "forward",
        "hook-action": "zero",
        "hook-channels": "strongest",
    }
    assert "changed[:, [15]] = 0" in app.code[0].value
    assert ">changed</span>" in markup(app)


def test_all_modules_can_be_chosen() -> None:
    app = hooks_page()
    network = resources.models()._values
    (module,) = [one.module for one in network.values() if one.name == "simple_cnn"]
    names = [info.name for info in list_layers(module, torch.zeros(1, 3, 32, 32))]
    assert [option.partition(" · ")[0] for option in app.selectbox(key="hook-layer").options] == [
        name or "(whole network)" for name in names
    ]


def test_address_restores_layer_kind_action_and_channels() -> None:
    view = {"layer": "conv1", "kind": "backward_pre", "action": "scale", "channels": "3", "loss": "cross-entropy"}
    app = hooks_page(**view, **{"class": "7"})
    assert not app.exception
    assert sentences(app) == []
    expected = {"model": "simple_cnn", "sample": "digit_3", "class": "7"} | view
    assert address(app) == {key: [value] for key, value in expected.items()}
    assert "changed[:, [3]] = (grad_output[0] * 2.0)[:, [3]]" in app.code[0].value
    assert "cross_entropy(logits, torch.tensor([7]" in app.code[0].value


@pytest.mark.parametrize("parameter", ["layer", "kind", "action", "channels", "tab"])
def test_unknown_value_in_the_address_is_ignored_with_one_sentence(parameter: str) -> None:
    app = hooks_page(**{parameter: "no such thing"})
    assert not app.exception
    assert any("“no such thing”, which there is not" in said for said in sentences(app))


def test_nothing_returned_leaves_the_prediction_and_says_why() -> None:
    app = hooks_page(action="not_returned")
    assert "unchanged, bit for bit" in markup(app)
    assert "returned None, so the network went on with the output it had" in markup(app)
    app.selectbox(key="hook-action").set_value("in_place").run()
    assert "yet wrote zeros into the output, the memory of what conv2 returned" in markup(app)
    assert ">changed</span>" in markup(app)


def test_backward_shows_the_gradients_of_the_layers_before() -> None:
    app = hooks_page(layer="fc1", kind="backward")
    shown = markup(app)
    assert "A backward hook fires after the forward, so the prediction is the same." in shown
    for name in ("fc1", "conv2", "conv1", "the network’s input"):
        assert f'title="{name}"' in shown
    assert 'title="fc2"><' not in shown.partition("Order of firings")[0]


def test_every_action_and_kind_shows_no_error() -> None:
    app = hooks_page()
    for kind in ("forward", "forward_pre", "backward", "backward_pre"):
        app.selectbox(key="hook-kind").set_value(kind)
        for action in app.selectbox(key="hook-action").options[:]:
            app.selectbox(key="hook-action").select(action).run()
            assert not app.exception
            assert sentences(app) == [], (kind, action)


def test_error_of_a_hook_is_one_sentence_and_the_page_goes_on() -> None:
    app = hooks_page(layer="fc1", action="mean")
    assert [said.partition(";")[0] for said in sentences(app)] == [
        "A tensor of shape (1, 128) has no positions to average over"
    ]
    app.selectbox(key="hook-action").set_value("zero").run()
    assert sentences(app) == []


def test_cost_is_measured_when_asked_for() -> None:
    app = hooks_page()
    assert not any("fastest of 10" in one.value for one in app.caption)
    app.button(key="measure cost").click().run()
    assert any("fastest of 10" in one.value for one in app.caption)
    app.selectbox(key="hook-action").set_value("look").run()
    assert not any("fastest of 10" in one.value for one in app.caption)


def test_gradients_of_every_layer_with_clipping() -> None:
    app = hooks_page(tab="Gradients")
    assert not app.exception
    assert "all 4 layers fine" in markup(app)
    app.toggle(key="clip-gradients").set_value(True).run()
    assert any("All gradients together: 122.1 → 1. Each layer keeps its share." in one.value for one in app.caption)
    assert address(app)["tab"] == ["Gradients"]


def test_lint_of_a_network_without_hooks_and_the_comparison_of_both_backward_hooks() -> None:
    """The shapes are those that torch gives for Conv2d(3, 16, 3) and Linear(2048, 128) on one 32x32 image."""
    app = hooks_page(tab="Lint")
    assert not app.exception
    shown = markup(app)
    assert "No hooks on this model" in shown
    conv, linear = shown.split("conv1 Conv2d")[1].split("fc1 Linear")
    assert "<td>input 1 × 3 × 32 × 32</td>" in conv
    assert "<td>input 1 × 3 × 32 × 32<br>weight 16 × 3 × 3 × 3<br>bias 16</td>" in conv
    assert "<td>input 1 × 2048</td>" in linear
    assert "<td>bias 128<br>input 1 × 2048<br>weight transposed 2048 × 128</td>" in linear


def test_shared_network_is_left_as_it_was() -> None:
    hooks_page()
    (module,) = [one.module for one in resources.models()._values.values() if one.name == "simple_cnn"]
    before = fingerprint(module)
    for view in ({"kind": "backward", "action": "in_place"}, {"tab": "Gradients"}, {"tab": "Lint"}):
        hooks_page(**view)
    assert hook_count(module) == 0
    assert same(fingerprint(module), before)


def test_network_without_classes_shows_its_maps() -> None:
    app = hooks_page(model="lraspp_mobilenet_v3_large", weights="untrained", sample="gratings", layer="backbone.0.0")
    assert not app.exception
    assert sentences(app) == []
    assert "This network gives no classes to compare; see the maps." in markup(app)


def test_functions_are_named_at_the_start() -> None:
    assert read_options(["--hook", "a:b", "--model", "c:d", "--hook", "e:f"]) == StartOptions(("c:d",), ("a:b", "e:f"))
