"""How much of the layers the page keeps, and what it offers where that is too much."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

from hookviz import load_model, load_sample, record
from hookviz.ui import keeping, resources
from tests.nets import Returning

APP = str(Path(__file__).parents[2] / "app.py")
CONV1 = 4 * 64 * 112 * 112


@pytest.fixture(autouse=True)
def room_for_less_than_conv1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "BYTES_PER_VIEW", CONV1 - 1)


@pytest.fixture
def app() -> AppTest:
    app = AppTest.from_file(APP, default_timeout=120)
    for key, value in {"model": "resnet18", "weights": "untrained", "layer": "conv1"}.items():
        app.query_params[key] = value
    return app.run()


def text(app: AppTest) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", one.proto.body) for one in app.get("html"))


def test_layers_beyond_the_bound_are_not_recorded_but_offered_otherwise(app: AppTest) -> None:
    assert "11.7 million parameters · 3.63 billion floating-point operations a forward" in text(app)
    assert "this layer takes 3.1 MB" in text(app)
    assert [one.value for one in app.warning] == [
        "Keeping these layers exactly takes 3.1 MB, and one view may take 3.1 MB: "
        "choose fewer layers, or keep less of each."
    ]
    assert "✓ exact" not in text(app)


def test_half_precision_is_shown_as_such(app: AppTest) -> None:
    app.segmented_control(key="keeping").select("half").run()
    assert "kept in half precision" in text(app)
    assert "float16" in text(app)
    assert "✓ exact" not in text(app)
    assert not app.error


def test_statistics_are_those_of_the_exact_values(app: AppTest) -> None:
    app.segmented_control(key="keeping").select("statistics").run()
    model = load_model("resnet18", None, "cpu")
    with torch.no_grad():
        values = model.module.get_submodule("conv1")(model.prepare(load_sample("grace_hopper"))).double()
    shown = text(app)
    assert "statistics of the exact values; the values were not kept" in shown
    assert f"{values.numel():,}" in shown
    (maximum,) = re.findall(r"max\s+([\d.]+)", shown)
    assert float(maximum) == pytest.approx(values.max().item(), rel=1e-3)
    assert not app.error


def test_fewer_layers_are_exact_again(app: AppTest) -> None:
    app.multiselect(key="layers").set_value(["fc"]).run()
    assert "✓ exact" in text(app)
    assert not app.warning


def test_half_precision_keeps_what_goes_beyond_its_range_exactly() -> None:
    large = torch.tensor([1.0, 70_000.0, float("inf")])
    assert torch.equal(keeping.halved(large), large)
    assert keeping.halved(large).dtype == torch.float32
    small = torch.tensor([1.0001, float("inf"), float("nan")])
    assert keeping.halved(small).dtype == torch.float16
    assert torch.equal(keeping.halved(small)[:2], torch.tensor([1.0, float("inf")], dtype=torch.float16))
    whole = torch.tensor([1, 2])
    assert keeping.halved(whole).dtype == torch.int64
    assert keeping.halved(whole).data_ptr() != whole.data_ptr()


def test_sparse_values_count_as_what_they_take_when_drawn() -> None:
    net = nn.Sequential(Returning(lambda _: torch.eye(3).to_sparse()))
    with record(net, "0") as rec:
        net(torch.zeros(1))
    assert resources.LayerCapture((rec["0"][0],), ()).bytes == 9 * 4
