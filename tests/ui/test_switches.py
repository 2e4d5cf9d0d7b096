"""What is done to channels, as a list, as edits and as part of an address; no page."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookviz.hooks import edit, list_layers
from hookviz.hooks.edit_effect import LayerMove, compare_edits
from hookviz.hooks.edits import AddNoise, Clamp, Edit, KeepOnly, ReplaceByMean, Scale, Zero
from hookviz.hooks.moves import Move
from hookviz.types import LayerInfo, Layout
from hookviz.ui.edit_outcomes import moved_most, watched_layers
from hookviz.ui.edited_prediction import farthest_class, moved_rows
from hookviz.ui.switch_address import read, written
from hookviz.ui.switches import Action, EditPlace, Numbers, Switch, edits_of, fault, place_of, put, words

CONV, RELU = EditPlace("0"), EditPlace("1")


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)
    )


def infos() -> dict[str, LayerInfo]:
    return {info.name: info for info in list_layers(network(), torch.zeros(1, 3, 8, 8))}


def test_a_channel_has_one_action_and_keeps_its_place_in_the_list() -> None:
    first, second = Switch(CONV, 3, "zero"), Switch(RELU, 1, "mean")
    both = put(put((), first), second)
    assert both == (first, second)
    scaled = Switch(CONV, 3, "scale", (0.5,))
    assert put(both, scaled) == (scaled, second)


def test_channels_treated_alike_are_one_edit_and_kept_ones_come_last() -> None:
    second = EditPlace("1", 1, "out", -1)
    switches = (
        Switch(CONV, 5, "keep"),
        Switch(CONV, 3, "zero"),
        Switch(second, 0, "scale", (2.0,)),
        Switch(CONV, 1, "zero"),
        Switch(CONV, 4, "noise", (0.5,)),
        Switch(CONV, 0, "keep"),
        Switch(CONV, 2, "clamp", (None, 1.0)),
        Switch(second, 1, "mean"),
    )
    assert edits_of(switches) == {
        "0": [Zero((3, 1)), AddNoise(0.5, (4,)), Clamp(None, 1.0, (2,)), KeepOnly((5, 0))],
        "1": [Scale(2.0, (0,), call=1, path="out", axis=-1), ReplaceByMean((1,), call=1, path="out", axis=-1)],
    }


@pytest.mark.parametrize(
    ("action", "numbers", "by_hand"),
    [
        ("zero", (), torch.zeros_like),
        ("mean", (), lambda one: one.mean((1, 2), keepdim=True).expand_as(one)),
        ("scale", (-1.5,), lambda one: one * -1.5),
        ("clamp", (0.0, 0.25), lambda one: one.clamp(0.0, 0.25)),
    ],
)
def test_edits_are_what_a_hook_by_hand_does(action: Action, numbers: Numbers, by_hand: object) -> None:
    net, image = network().eval(), torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))

    def hook(_module: nn.Module, _args: object, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, 2] = by_hand(output[:, 2])  # type: ignore[operator]
        return changed

    with torch.no_grad(), edit(net, edits_of([Switch(CONV, 2, action, numbers)])):
        edited = net(image)
    handle = net[0].register_forward_hook(hook)
    with torch.no_grad():
        expected = net(image)
    handle.remove()
    assert torch.equal(edited, expected)
    with torch.no_grad():
        assert not torch.equal(net(image), expected)


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        (Switch(EditPlace("conv_head"), 684, "zero"), "conv_head · channel 684 off"),
        (Switch(EditPlace("relu", 1), 3, "mean"), "relu · call 2 · channel 3 at its mean"),
        (Switch(EditPlace("", None, "0.h"), 3, "scale", (-0.5,)), "whole network · 0.h · channel 3 × −0.5"),
        (Switch(EditPlace("a"), 0, "noise", (1.5,)), "a · channel 0 with noise, sd 1.5"),
        (Switch(EditPlace("a"), 0, "clamp", (0.0, 6.0)), "a · channel 0 within 0 to 6"),
        (Switch(EditPlace("a"), 0, "clamp", (0.0, None)), "a · channel 0 at least 0"),
        (Switch(EditPlace("a"), 0, "clamp", (None, 6.0)), "a · channel 0 at most 6"),
        (Switch(EditPlace("a"), 0, "keep"), "a · channel 0 kept only"),
    ],
)
def test_words(switch: Switch, said: str) -> None:
    assert words(switch) == said


def test_address_is_compact_and_says_everything() -> None:
    odd = EditPlace("a:b%c d", 1, "1.h:x", -1)
    switches = (
        Switch(EditPlace("conv_head"), 684, "zero"),
        Switch(EditPlace("conv_head"), 12, "zero"),
        Switch(EditPlace("conv_head"), 3, "scale", (2.0,)),
        Switch(EditPlace("layer1.0.relu", 1), 3, "keep"),
        Switch(EditPlace("conv_head"), 7, "zero"),
        Switch(odd, 0, "clamp", (None, 0.1)),
        Switch(odd, 1, "clamp", (-1e-7, None)),
        Switch(EditPlace(""), 0, "noise", (1 / 3,)),
        Switch(EditPlace("x"), 0, "mean"),
    )
    texts = written(switches)
    assert texts == [
        "conv_head:684,12:zero",
        "conv_head:3:scale:2",
        "layer1.0.relu:3:keep:call=2",
        "conv_head:7:zero",
        "a%3Ab%25c%20d:0:clamp::0.1:call=2:axis=-1:part=1.h%3Ax",
        "a%3Ab%25c%20d:1:clamp:-1e-07::call=2:axis=-1:part=1.h%3Ax",
        ":0:noise:0.3333333333333333",
        "x:0:mean",
    ]
    assert tuple(one for text in texts for one in read(text) or ()) == switches


@pytest.mark.parametrize(
    "text",
    [
        "",
        "conv",
        "conv:1",
        "conv:1:off",
        "conv:-1:zero",
        "conv:one:zero",
        "conv:1,:zero",
        "conv:99999999:zero",
        "conv:1:scale",
        "conv:1:scale:",
        "conv:1:scale:two",
        "conv:1:scale:nan",
        "conv:1:noise:inf",
        "conv:1:clamp::",
        "conv:1:clamp:1",
        "conv:1:zero:call=0",
        "conv:1:zero:axis=x",
        "conv:1:zero:2",
    ],
)
def test_what_says_no_edit_is_none(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        (Switch(CONV, 5, "zero"), ""),
        (Switch(CONV, 6, "zero"), "and its channels are 0 to 5"),
        (Switch(EditPlace("4", axis=-1), 3, "zero"), ""),
        (Switch(EditPlace("4", axis=2), 3, "zero"), "and that layer returns no such tensor"),
        (Switch(EditPlace("0", path="h"), 0, "zero"), "and that layer returns no such tensor"),
        (Switch(EditPlace("0", 1), 0, "zero"), "and that layer is called 1 times"),
        (Switch(EditPlace("9"), 0, "zero"), "and there is no layer “9” that runs"),
    ],
)
def test_channels_that_a_network_does_not_have_are_known_beforehand(switch: Switch, why: str) -> None:
    assert fault(switch, infos()) == why


@pytest.mark.parametrize(
    ("layout", "shape", "maps", "axis"),
    [
        ("NCHW", (1, 6, 4, 4), 6, 1),
        ("auto", (1, 6, 4, 4), 6, 1),
        ("NHWC", (1, 4, 4, 6), 6, -1),
        ("NLC", (1, 16, 6), 6, -1),
        ("LNC", (16, 1, 6), 6, -1),
        ("NCL", (1, 6, 16), 6, 1),
        ("NC", (1, 6), 6, 1),
        ("auto", (1, 6), 6, 1),
        ("NCDHW", (1, 6, 2, 4, 4), 6, 1),
        ("NDHWC", (1, 2, 4, 4, 6), 6, -1),
        ("CHW", (6, 4, 4), 6, 0),
        ("HWC", (4, 4, 6), 6, -1),
    ],
)
def test_the_axis_of_channels_follows_the_layout(layout: str, shape: tuple[int, ...], maps: int, axis: int) -> None:
    """C12: channels-last networks have them last."""
    info = LayerInfo("x", "Conv2d", 1, 0, calls=1)
    place = place_of(info, 0, "", Layout(layout), shape=shape, maps=maps)
    assert place == EditPlace("x", None, "", axis)
    assert isinstance(place, EditPlace)
    assert shape[place.axis] == maps


@pytest.mark.parametrize(
    ("layout", "shape", "maps"),
    [("NLC", (1, 16, 6), 1), ("auto", (1, 16, 6), 1), ("HW", (4, 4), 1), ("C", (6,), 6), ("scalar", (), 1)],
)
def test_values_without_an_axis_of_channels_are_not_edited(layout: str, shape: tuple[int, ...], maps: int) -> None:
    said = place_of(LayerInfo("x", "Linear", 1, 0, calls=1), 0, "", Layout(layout), shape=shape, maps=maps)
    assert said == "These values have no axis of channels, so none can be switched off."


def test_operations_are_not_edited_and_one_of_several_calls_is_named() -> None:
    """C02: the second call of a layer that runs twice."""
    add = LayerInfo("add", "add", 1, 0, calls=1, is_operation=True)
    said = place_of(add, 0, "", Layout("NCHW"), shape=(1, 6, 4, 4), maps=6)
    assert said == "An operation inside a forward cannot be edited; choose a layer before or after it."
    relu = LayerInfo("relu", "ReLU", 1, 0, calls=2)
    assert place_of(relu, 1, "", Layout("NCHW"), shape=(1, 6, 4, 4), maps=6) == EditPlace("relu", 1)


def test_layers_that_moved_most_leave_out_the_edited_the_network_and_what_passes_on() -> None:
    net, image = network(), torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    effect = compare_edits(net, (image,), edits_of([Switch(CONV, 2, "scale", (50.0,))]))
    assert {one.name for one in effect.moved} == {"0", "1", "2", "3", "4", ""}
    assert sorted(one.name for one in moved_most(effect.moved, 8)) == ["1", "2", "4"]  # 3 flattens what 2 returned
    assert [one.move.relative for one in moved_most(effect.moved, 2)] == sorted(
        (float(one.move.relative or 0) for one in moved_most(effect.moved, 8)), reverse=True
    )[:2]


def test_rows_say_what_no_number_can() -> None:
    def moved(name: str, move: Move, call: int = 0) -> LayerMove:
        return LayerMove(name, call, "", edited=False, move=move)

    rows = moved_rows(
        [
            moved("gone", Move(None, None, None, 0, 0, (1, 2), None)),
            moved("shape", Move(None, None, None, 0, 0, (1, 2), (1, 3))),
            moved("nan", Move(0.5, 1.0, 2.0, 12, 0, (1, 2), (1, 2))),
            moved("dark", Move(float("inf"), 1.0, 0.0, 0, 0, (1, 2), (1, 2))),
            moved("far", Move(0.5, 1.0, 2.0, 0, 0, (1, 2), (1, 2)), call=1),
            moved("near", Move(0.125, 1.0, 2.0, 0, 0, (1, 2), (1, 2))),
        ]
    )
    assert [(row["id"], row["name"], row["share"], row["texts"]) for row in rows] == [
        ("gone", "gone", 1.0, ["other calls"]),
        ("shape", "shape", 1.0, ["other shape"]),
        ("nan", "nan", 1.0, ["12 new NaN, Inf"]),
        ("dark", "dark", 1.0, ["was all 0"]),
        ("far", "far · call 2", 1.0, ["50 %"]),
        ("near", "near", 0.25, ["12.5 %"]),
    ]


def test_where_all_layers_would_be_too_much_the_outer_ones_are_compared() -> None:
    names = ["", "a", "a.0", "a.0.conv", "b"]
    sizes = {"": 1, "a": 10, "a.0": 10, "a.0.conv": 100, "b": 5}
    assert watched_layers(names, sizes, 126) == names
    assert watched_layers(names, sizes, 125) == ["", "a", "a.0", "b"]
    assert watched_layers(names, sizes, 20) == ["", "a", "b"]
    assert watched_layers(names, sizes, 3) == [""]


def test_the_class_that_changed_most_is_told() -> None:
    before, after = (torch.tensor([shares]).log() for shares in ([0.5, 0.3, 0.2], [0.45, 0.15, 0.4]))
    assert farthest_class(before, after, ["cat", "dog", "bird"]) == "bird 20.0 → 40.0 %"
    assert farthest_class(before, before + 1e-5, ["cat", "dog", "bird"]) == "no probability changes by 0.05 % or more"


def test_edits_can_be_told_apart_by_value() -> None:
    assert hash(Switch(CONV, 1, "scale", (2.0,))) == hash(Switch(EditPlace("0"), 1, "scale", (2.0,)))
    edits: list[Edit] = edits_of([Switch(CONV, 1, "zero")])["0"]
    assert edits == [Zero((1,))]
