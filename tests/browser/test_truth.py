from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import expect
from torch import nn

from tests.browser import expected
from tests.browser.visitor import Visitor
from tests.nets import clones_at_hook_time

VIEW = {"model": "resnet18", "weights": "untrained"}


def moment_of_return(layer: str) -> list[torch.Tensor]:
    """What a layer returned, by torch's own hooks that clone at once, on a deepcopy."""
    model = expected.network("resnet18")
    with torch.no_grad():
        _, seen = clones_at_hook_time(model.module, model.prepare(expected.hopper()))
    return seen[layer]


def test_overwritten_layer_is_exact_and_the_switch_shows_what_a_naive_hook_shows(visitor: Visitor) -> None:
    """C01: resnet18's bn1 is overwritten by the ReLU after it."""
    (exact,) = moment_of_return("bn1")
    assert exact.min() < 0
    visitor.open(**VIEW, layer="bn1")
    assert visitor.badges(0) == ["✓ exact", "later overwritten in place by relu"]
    assert visitor.mosaic(0) == expected.picture(exact)
    visitor.toggle("naive-0-bn1-0")
    assert visitor.badges(0) == ["naive: not what the layer computed", "later overwritten in place by relu"]
    assert visitor.mosaic(0) == expected.picture(nn.functional.relu(exact)) != expected.picture(exact)
    visitor.toggle("naive-0-bn1-0")
    assert visitor.mosaic(0) == expected.picture(exact)


def test_layer_that_nothing_overwrites_has_no_switch(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1")
    assert visitor.badges(0) == ["✓ exact"]
    expect(visitor.card(0).get_by_role("switch")).to_have_count(0)


def test_module_that_runs_twice_has_a_choice_of_calls(visitor: Visitor) -> None:
    """C02: layer1.0.relu runs after bn1 and after the residual sum."""
    first, second = moment_of_return("layer1.0.relu")
    visitor.open(**VIEW, layer="layer1.0.relu")
    assert visitor.mosaic(0) == expected.picture(first)
    expect(visitor.widget("call-0").get_by_role("radio")).to_have_text(["call 1", "call 2"])
    visitor.press("call-0", "call 2")
    assert visitor.mosaic(0) == expected.picture(second) != expected.picture(first)


def test_figure_stands_in_for_the_mosaic_and_back(visitor: Visitor) -> None:
    visitor.open(**VIEW, layer="conv1").press("view-0", "Figure")
    expect(visitor.card(0).locator(".hv-mosaic")).to_have_count(0)
    expect(visitor.card(0).get_by_alt_text("Channels of conv1 with numbers, ranges and a colour bar")).to_be_visible()
    visitor.assert_no_broken_picture()
    visitor.press("view-0", "Mosaic")
    assert visitor.mosaic(0) == expected.picture(moment_of_return("conv1")[0])


def test_numbers_are_those_of_the_whole_layer(visitor: Visitor) -> None:
    values = moment_of_return("bn1")[0].double().numpy()
    visitor.open(**VIEW, layer="bn1")
    shown = dict(
        text.split("\n") for text in visitor.card(0).locator(".hv-numbers > span").all_inner_texts() if "\n" in text
    ) or visitor.card(0).locator(".hv-numbers > span").evaluate_all(
        "all => Object.fromEntries(all.map(one => [one.firstChild.textContent, one.lastChild.textContent]))"
    )
    for name, value in {
        "mean": values.mean(),
        "sd (population)": values.std(),
        "min": values.min(),
        "max": values.max(),
    }.items():
        assert float(shown[name].replace("−", "-")) == pytest.approx(value, rel=5e-3, abs=1e-4)
    assert shown["values"] == "802,816"


def test_downloads_hold_the_layer(visitor: Visitor, tmp_path: Path) -> None:
    (exact,) = moment_of_return("layer1.0.bn2")
    visitor.open(**VIEW, layer="layer1.0.bn2")
    with np.load(visitor.download(0, "NPZ", tmp_path)) as arrays:
        assert arrays["values"].dtype == np.float32
        assert np.array_equal(arrays["values"], exact.numpy())
        assert str(arrays["dtype"]) == "float32"
    lines = visitor.download(0, "CSV", tmp_path).read_text()
    rows = [row for row in csv.DictReader(io.StringIO(lines)) if row["channel"].isdigit()]
    means = exact[0].double().mean((1, 2)).tolist()
    assert [float(row["mean"]) for row in rows] == pytest.approx(means, rel=1e-9)
    with Image.open(visitor.download(0, "PNG", tmp_path)) as image:
        image.load()
        assert image.format == "PNG"
    assert "<svg" in visitor.download(0, "SVG", tmp_path).read_text()
    assert visitor.download(0, "PDF", tmp_path).read_bytes().startswith(b"%PDF-")


def test_downloads_of_the_naive_view_hold_the_naive_values(visitor: Visitor, tmp_path: Path) -> None:
    visitor.open(**VIEW, layer="bn1").toggle("naive-0-bn1-0")
    with np.load(visitor.download(0, "NPZ", tmp_path)) as arrays:
        assert np.array_equal(arrays["values"], moment_of_return("bn1")[0].relu().numpy())


def test_only_mosaics_that_are_shrunk_are_smoothed(visitor: Visitor) -> None:
    """896 pixels of conv1 in 550 or so would lose every third line; 7 x 7 maps keep their squares."""
    visitor.open(**VIEW, layer=["conv1", "layer4.0.conv1"])
    for position, rendering in enumerate(("auto", "pixelated")):
        expect(visitor.card(position).locator(".hv-mosaic img")).to_have_css("image-rendering", rendering)
