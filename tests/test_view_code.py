"""The scripts of a view are run here, and give what the view shows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hookviz import load_model, record
from hookviz.bundled import bundled_file
from hookviz.errors import HookvizError
from hookviz.hooks import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero, edit
from hookviz.hooks.layers import list_layers
from hookviz.hooks.operations import list_operations
from hookviz.known_layouts import known_layout
from hookviz.layer_picture import Selection, Shown, arranged, draw_mosaic
from hookviz.look import look
from hookviz.models import Model
from hookviz.samples import load_sample
from hookviz.types import ChannelOrder, LayerInfo, Layout
from hookviz.view_code import View, edited_hookviz_script, edited_torch_script, hookviz_script, torch_script
from hookviz.views import channel_picture

pytestmark = pytest.mark.usefixtures("one_thread")

FILES = {"grace_hopper": "grace_hopper.jpg", "digit_3": "digit_3.png"}


def run(script: str, image: str, folder: Path) -> dict[str, Any]:
    """Run a script in a folder, with the image in the place of the one it names; what it defined."""
    script = script.replace('"image.jpg"', repr(str(bundled_file(FILES[image]))))
    script = script.replace('"simple_cnn.safetensors"', repr(str(bundled_file("simple_cnn.safetensors"))))
    defined: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(folder)
    try:
        exec(compile(script, "view.py", "exec"), defined)  # noqa: S102  # the very text that the page shows
    finally:
        os.chdir(before)
    return defined


def layer_of(model: Model, inputs: tuple[Any, ...], name: str) -> LayerInfo:
    layers = [*list_layers(model.module, *inputs), *list_operations(model.module, *inputs)]
    return next(one for one in layers if one.name == name)


def shown_by_page(
    model: Model, inputs: tuple[Any, ...], info: LayerInfo, settings: dict[str, Any]
) -> tuple[View, Shown]:
    """What the page shows of a layer, by the functions that the page calls, and its description."""
    edits: dict[str, list[Edit]] = settings.pop("edits", {})
    index, path = settings.pop("call", 0), settings.pop("path", "")
    calls = calls_of(model, inputs, info.name, edits)
    call = calls[index]
    layout = settings.pop("layout", None) or known_layout(info, call, path) or Layout("auto")
    order: ChannelOrder = settings.pop("order", "index")
    selection = settings.pop("selection", Selection())
    display = {"scale": "channel", "robust": False, "cmap": "viridis"} | settings.pop("display", {})
    tensor = call.output
    for part in path.split(".") if path else ():
        tensor = tensor[int(part)] if part.isdigit() else tensor[part]
    shown = arranged(tensor, layout, order, display, selection)
    view = View(
        layer=info.name,
        is_operation=info.is_operation,
        call=index,
        calls=len(calls),
        output=call.output,
        path=path,
        layout=Layout(shown.maps.layout, layout.grid),
        selection=selection,
        shows=shown.maps.shows,
        order=order,
        display=display,
        edits=edits,
        **settings,
    )
    return view, shown


def calls_of(model: Model, inputs: tuple[Any, ...], name: str, edits: dict[str, list[Edit]]) -> Any:
    if not edits:
        return look(model.module, inputs, [name]).calls[name]
    with torch.no_grad(), edit(model.module, edits), record(model.module, name) as rec:
        model.module(*inputs)
    return rec[name]


CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": ("simple_cnn", "conv1", {}),
    "sorted": ("simple_cnn", "conv2", {"order": "mean", "display": {"scale": "symmetric", "cmap": "coolwarm"}}),
    "by_spread": ("simple_cnn", "conv2", {"order": "spread", "display": {"scale": "shared"}}),
    "by_sparsity": ("simple_cnn", "pool", {"order": "sparsity", "call": 1}),
    "by_maximum": ("simple_cnn", "conv1", {"order": "max", "display": {"robust": True}}),
    "third_page": ("efficientnet_lite0", "conv_head", {"order": "mean", "page": 2}),
    "channel": ("efficientnet_lite0", "conv_stem", {"channel": 17}),
    "whole_network": ("efficientnet_lite0", "", {}),
    "operation": ("efficientnet_lite0", "blocks.1.1.add", {}),
    "zeroed": ("simple_cnn", "conv2", {"edits": {"conv1": [Zero(channels=(0, 3))]}}),
    "several_edits": (
        "simple_cnn",
        "pool",
        {
            "call": 1,
            "edits": {
                "conv1": [Scale(2.0, channels=(1,)), Clamp(low=0.0, channels=(2,))],
                "pool": [
                    KeepOnly(channels=(0, 1, 2, 5)),
                    AddNoise(0.1, channels=(0,), seed=3),
                    Zero(channels=(1,), call=1),
                ],
                "conv2": [ReplaceByMean(channels=(4,), call=0)],
            },
        },
    ),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_both_scripts_give_what_the_page_shows(case: str, tmp_path: Path) -> None:
    name, layer, settings = CASES[case]
    image = "digit_3" if name == "simple_cnn" else "grace_hopper"
    model = load_model(name, device="cpu")
    inputs = model.inputs(load_sample(image))
    view, shown = shown_by_page(model, inputs, layer_of(model, inputs, layer), dict(settings))
    ours = run(hookviz_script(model, view), image, tmp_path)
    assert np.array_equal(ours["maps"].maps, shown.maps.maps, equal_nan=True)
    picture = draw_mosaic(shown, view.page)
    assert ours["png"] == picture.png == (tmp_path / view.file).read_bytes()
    if view.channel is not None:
        assert np.array_equal(ours["channel"], shown.maps.maps[view.channel])
        assert ours["large"] == channel_picture(shown.maps, view.channel, **view.display)
    if view.is_operation:
        with pytest.raises(HookvizError, match="No hook of torch reaches a functional operation"):
            torch_script(model, view)
        return
    alone = run(torch_script(model, view), image, tmp_path)
    assert "hookviz" not in torch_script(model, view) or name == "simple_cnn"
    assert np.array_equal(alone["maps"], shown.maps.maps, equal_nan=True)
    assert alone["page"].tolist() == list(picture.geometry.channels)
    assert (tmp_path / view.file).stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "layer", "settings"),
    [
        ("resnet18", "layer1.0.relu", {"call": 1}),
        pytest.param("swin_v2_t", "features.1.0.mlp.0", {}, marks=pytest.mark.slow),
        ("vit_b_16", "encoder.layers.encoder_layer_0.self_attention", {"path": "0", "channel": 5}),
        pytest.param("lraspp_mobilenet_v3_large", "backbone", {"path": "high"}, marks=pytest.mark.slow),
        pytest.param("r3d_18", "layer1", {"selection": Selection(depth=3), "order": "mean"}, marks=pytest.mark.slow),
    ],
)
def test_scripts_of_other_layouts_and_of_untrained_networks(
    name: str, layer: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    model = load_model(name, weights=None, device="cpu")
    inputs = model.inputs(load_sample("grace_hopper"))
    view, shown = shown_by_page(model, inputs, layer_of(model, inputs, layer), dict(settings))
    ours = run(hookviz_script(model, view), "grace_hopper", tmp_path)
    alone = run(torch_script(model, view), "grace_hopper", tmp_path)
    assert np.array_equal(ours["maps"].maps, shown.maps.maps, equal_nan=True)
    assert ours["png"] == draw_mosaic(shown, view.page).png
    assert np.array_equal(alone["maps"], shown.maps.maps, equal_nan=True)
    assert alone["page"].tolist() == list(draw_mosaic(shown, view.page).geometry.channels)


def test_both_scripts_of_edits_give_the_logits_before_and_after(tmp_path: Path) -> None:
    """By a hook written by hand: channel 684 of the last convolution is zeroed, and the first is halved."""
    model = load_model("efficientnet_lite0", device="cpu")
    batch = model.prepare(load_sample("grace_hopper"))

    def halve(module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        return torch.cat([output[:, :1] * 0.5, output[:, 1:]], dim=1)

    def zero(module: torch.nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, 684] = 0
        return changed

    with torch.no_grad():
        before = model.module(batch)
        handles = [
            model.module.get_submodule("conv_stem").register_forward_hook(halve),
            model.module.get_submodule("conv_head").register_forward_hook(zero),
        ]
        after = model.module(batch)
    for handle in handles:
        handle.remove()
    edits: dict[str, list[Edit]] = {"conv_stem": [Scale(0.5, channels=(0,))], "conv_head": [Zero(channels=(684,))]}
    for script in (edited_hookviz_script(model, edits), edited_torch_script(model, edits)):
        defined = run(script, "grace_hopper", tmp_path)
        assert torch.equal(defined["before"], before)
        assert torch.equal(defined["after"], after)


def test_an_edit_inside_a_tuple_has_no_short_hook() -> None:
    model = load_model("simple_cnn", device="cpu")
    view = View(
        layer="conv1",
        layout=Layout("NCHW"),
        display={"scale": "channel", "robust": False, "cmap": "viridis"},
        edits={"conv1": [Zero(channels=(0,), path="0")]},
    )
    with pytest.raises(HookvizError, match="inside a tuple or dict"):
        torch_script(model, view)
