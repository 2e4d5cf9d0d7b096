from __future__ import annotations

import copy
import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import HookvizError, UnknownLayerError
from hookviz.hooks.edit_effect import EditEffect, Edits, compare_edits
from hookviz.hooks.edits import AddNoise, Clamp, KeepOnly, ReplaceByMean, Scale, Zero
from tests.hooks.networks import NETWORKS, example, network
from tests.nets import FifthFailsNet, Returning, ReusedReLUNet, clones_at_hook_time, fingerprint, same

Change = Callable[[Tensor], Tensor]


def by_hand(net: nn.Module, changes: dict[str, Change], *args: Any) -> tuple[Any, dict[str, list[Any]]]:
    """Torch's own forward hooks on a copy: those that change, then those that look; the output and every layer's."""
    twin = copy.deepcopy(net)
    for name, change in changes.items():
        twin.get_submodule(name).register_forward_hook(lambda _, __, output, change=change: change(output))
    with torch.no_grad():
        return clones_at_hook_time(twin, *args)


def channels(axis: int, chosen: list[int], change: Change) -> Change:
    """A hook's work by hand: split into channels, change the chosen ones, stack them again."""

    def changed(output: Tensor) -> Tensor:
        slices = list(output.unbind(axis))
        return torch.stack([change(one) if number in chosen else one for number, one in enumerate(slices)], axis)

    return changed


def others(axis: int, chosen: list[int], count: int) -> Change:
    return channels(axis, [number for number in range(count) if number not in chosen], torch.zeros_like)


def spread(part: Tensor) -> Tensor:
    """Every position of an (N, H, W) channel becomes the mean of its item."""
    return part.mean((1, 2), keepdim=True).expand_as(part)


def noise(output: Tensor) -> Tensor:
    return output + 0.1 * torch.randn(output.shape, generator=torch.Generator().manual_seed(5))


LAYERS = {
    "simple_cnn": ("conv1", "conv2"),
    "resnet18": ("layer1.0.bn1", "layer3.0.conv1"),
    "mobilenet_v2": ("features.2.conv.0", "features.9.conv.1"),
    "densenet121": ("features.denseblock1.denselayer1.conv1", "features.transition1.conv"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_several_channels_of_several_layers_are_the_hooks_written_by_hand(name: str) -> None:
    """Zero, scale and clamp in one layer, noise in the other; every bit of the output, and of what each layer gave."""
    net, image = network(name), example(name)
    first, second = LAYERS[name]
    before, found = fingerprint(net), torch.get_rng_state()
    edits: Edits = {first: [Zero([0, 3]), Scale(2.0, 1), Clamp(-0.1, 0.1, [2])], second: AddNoise(0.1, seed=5)}
    effect = compare_edits(net, (image,), edits)

    def one_by_one(output: Tensor) -> Tensor:
        doubled = channels(1, [1], lambda part: part * 2.0)(channels(1, [0, 3], torch.zeros_like)(output))
        return channels(1, [2], lambda part: part.clamp(-0.1, 0.1))(doubled)

    plain, plain_layers = by_hand(net, {}, image)
    edited, edited_layers = by_hand(net, {first: one_by_one, second: noise}, image)
    assert torch.equal(effect.before, plain)
    assert torch.equal(effect.after, edited)
    assert not torch.equal(plain, edited)
    assert_moves(effect, plain_layers, edited_layers, {first, second})
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), found)


@pytest.mark.parametrize("name", NETWORKS)
def test_keeping_one_channel_and_averaging_others_is_done_as_by_hand(name: str) -> None:
    net, image = network(name), example(name)
    first, second = LAYERS[name]
    effect = compare_edits(net, (image,), {first: KeepOnly([1, 2]), second: ReplaceByMean([0, 4])})
    count = next(len(one) for one in net.get_submodule(first).parameters())
    edited, _ = by_hand(net, {first: others(1, [1, 2], count), second: channels(1, [0, 4], spread)}, image)
    assert torch.equal(effect.after, edited)


def test_tokens_are_edited_along_their_last_axis() -> None:
    torch.set_num_threads(1)
    net = models.vision_transformer.VisionTransformer(32, 8, 3, 2, 24, 48, num_classes=7).eval()
    nn.init.normal_(net.heads.head.weight)
    image, layer = torch.rand(1, 3, 32, 32), "encoder.layers.encoder_layer_1.ln_1"
    effect = compare_edits(net, (image,), {layer: Zero([2, 5], axis=-1)})
    plain, plain_layers = by_hand(net, {}, image)
    edited, edited_layers = by_hand(net, {layer: channels(-1, [2, 5], torch.zeros_like)}, image)
    assert torch.equal(effect.before, plain)
    assert torch.equal(effect.after, edited)
    assert_moves(effect, plain_layers, edited_layers, {layer})


def assert_moves(
    effect: EditEffect, plain: dict[str, list[Any]], edited: dict[str, list[Any]], layers: set[str]
) -> None:
    """Every layer that differs is listed once, with numpy's distances, and no other; the farthest first."""
    expected = {}
    for name, calls in plain.items():
        for call, (old, new) in enumerate(zip(calls, edited[name], strict=True)):
            tensors = zip(old, new, strict=True) if isinstance(old, tuple) else [(old, new)]
            for number, (a, b) in enumerate(tensors):
                if a is not None and not torch.equal(a, b):
                    path = str(number) if isinstance(old, tuple) else ""
                    expected[name, call, path] = distances(a, b)
    found = {(one.name, one.call, one.path): one.move for one in effect.moved}
    assert found.keys() == expected.keys()
    for key, (relative, largest) in expected.items():
        assert found[key].relative == pytest.approx(relative, rel=1e-12)
        assert found[key].largest == largest
        assert found[key].new_nonfinite == found[key].gone_nonfinite == 0
    sizes = [one.move.relative for one in effect.moved]
    assert sizes == sorted(sizes, key=lambda size: -(size or 0))
    assert {one.name for one in effect.moved if one.edited} == layers


def distances(before: Tensor, after: Tensor) -> tuple[float, float]:
    a, b = before.numpy().astype(np.float64), after.numpy().astype(np.float64)
    return float(np.sqrt(((b - a) ** 2).sum()) / np.sqrt((a**2).sum())), float(np.abs(b - a).max())


def test_undone_edits_give_the_logits_back_to_the_last_bit() -> None:
    net, image = network("resnet18"), example("resnet18")
    with torch.no_grad():
        plain = net(image)
        effect = compare_edits(net, (image,), {"layer2.0": Zero([1, 7]), "conv1": Scale(3.0, 5)})
        again = compare_edits(net, (image,), {})
        assert torch.equal(net(image), plain)
    assert not torch.equal(effect.after, plain)
    assert torch.equal(effect.before, plain)
    assert torch.equal(again.after, plain)
    assert again.moved == ()


def test_hooks_that_others_set_are_left_out_and_left_alone() -> None:
    """C58: a hook that returns something replaces the output on the network, and takes no part in the comparison."""
    net, x = nn.Sequential(nn.Linear(2, 2), nn.Identity()), torch.ones(1, 2)
    plain = net(x).detach()
    net[0].register_forward_hook(lambda *_: torch.full((1, 2), 9.0))
    effect = compare_edits(net, (x,), {"1": Scale(2.0)})
    assert torch.equal(effect.before, plain)
    assert torch.equal(effect.after, plain * 2)
    assert net(x).tolist() == [[9.0, 9.0]]


def test_only_what_comes_from_the_edit_on_is_listed() -> None:
    net = nn.Sequential(nn.Identity(), nn.Sequential(nn.Identity(), nn.Identity()), nn.Identity())
    effect = compare_edits(net, (torch.tensor([[3.0, 4.0]]),), {"1.1": Zero(1)})
    assert [one.name for one in effect.moved] == ["1.1", "1", "2", ""]
    assert {(one.move.relative, one.move.largest, one.move.norm) for one in effect.moved} == {(0.8, 4.0, 5.0)}
    assert [one.edited for one in effect.moved] == [True, False, False, False]


def test_each_call_of_a_layer_that_runs_twice_is_compared() -> None:
    net, x = ReusedReLUNet(), torch.rand(2, 4)
    _, plain = by_hand(net, {}, x)
    only_second = compare_edits(net, (x,), {"relu": Scale(2.0, call=1)})
    assert [(one.name, one.call) for one in only_second.moved] == [("relu", 1), ("", 0)]
    both = compare_edits(net, (x,), {"relu": Scale(2.0)})
    assert {(one.name, one.call) for one in both.moved} == {("relu", 0), ("second", 0), ("relu", 1), ("", 0)}
    assert next(one for one in both.moved if (one.name, one.call) == ("relu", 0)).move.norm == pytest.approx(
        float(plain["relu"][0].double().norm())
    )


def test_tensors_inside_structures_are_told_apart_by_their_path() -> None:
    net = nn.Sequential(nn.Identity(), Returning(lambda x: {"a": x, "b": (x[:, :1], x[:, 1:] + 1)}))
    effect = compare_edits(net, (torch.tensor([[1.0, 2.0]]),), {"0": Zero(1)})
    assert {(one.name, one.path) for one in effect.moved} == {
        ("0", ""), ("1", "a"), ("1", "b.1"), ("", "a"), ("", "b.1")
    }  # fmt: skip
    assert effect.after["b"][1].tolist() == [[1.0]]
    edited_inside = compare_edits(net, (torch.tensor([[1.0, 2.0]]),), {"1": Scale(5.0, path="b.1")})
    assert [(one.name, one.path, one.move.relative) for one in edited_inside.moved] == [
        ("1", "b.1", 4.0), ("", "b.1", 4.0)
    ]  # fmt: skip


def test_nan_that_stays_has_not_moved_and_nan_that_appears_is_counted() -> None:
    nan, inf = math.nan, math.inf
    net = nn.Sequential(nn.Identity(), Returning(lambda x: x / x.abs()))
    x = torch.tensor([[nan, 0.0, 2.0, inf], [1.0, 5.0, -3.0, inf]])  # becomes nan nan 1 nan, 1 1 -1 nan
    assert [one.name for one in compare_edits(net, (x,), {"1": Scale(1.0)}).moved] == []
    zeroed = compare_edits(net, (x,), {"0": Zero(2)})
    first, *rest = zeroed.moved
    assert (first.name, first.move.new_nonfinite, first.move.gone_nonfinite) == ("1", 2, 0)
    # Of column 2 nothing is finite any more, and the others stay as they were.
    assert (first.move.relative, first.move.largest) == (0.0, 0.0)
    assert {one.name for one in rest} == {"0", ""}
    cured = compare_edits(net, (x,), {"1": Zero(0)}).moved[0].move
    # Finite in both runs: 1 in the first row; 1, 1, -1 in the second. Only its first moved.
    assert (cured.new_nonfinite, cured.gone_nonfinite, cured.largest) == (0, 1, 1.0)
    assert cured.relative == pytest.approx(1 / 2)


def test_an_infinity_that_changes_its_sign_and_one_that_becomes_nan_count_as_new() -> None:
    effect = compare_edits(
        nn.Identity(), (torch.tensor([[math.inf, math.inf]]),), {"": [Scale(-1.0, 0), Scale(0.0, 1)]}
    )
    (one,) = effect.moved
    assert (one.move.relative, one.move.largest, one.move.new_nonfinite) == (None, None, 2)


def test_a_move_away_from_nothing_is_infinitely_far() -> None:
    net = nn.Sequential(nn.Identity(), Returning(lambda x: x - 1))
    effect = compare_edits(net, (torch.ones(1, 3),), {"0": Scale(2.0)})
    assert [(one.name, one.move.relative, one.move.norm) for one in effect.moved] == [
        ("1", math.inf, 0.0), ("", math.inf, 0.0), ("0", 1.0, math.sqrt(3))
    ]  # fmt: skip


def test_values_are_compared_in_float64() -> None:
    """In half precision 300² is infinite already."""
    effect = compare_edits(nn.Identity(), (torch.full((1, 4), 300.0, dtype=torch.float16),), {"": Zero(0)})
    assert effect.moved[0].move.relative == 0.5
    assert effect.moved[0].move.norm == 600.0


def test_complex_values_move_by_magnitude() -> None:
    effect = compare_edits(nn.Identity(), (torch.tensor([[3 + 4j, 12.0]]),), {"": Zero(0)})
    assert (effect.moved[0].move.largest, effect.moved[0].move.norm) == (5.0, 13.0)


class Gate(nn.Module):
    """What runs, and the shape of what is returned, depend on the values."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.other = nn.Identity(), nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        return x[x > 0] if bool(x.sum() > 1) else self.other(x)


def test_what_has_another_shape_or_comes_in_one_run_only_stands_first_without_a_number() -> None:
    effect = compare_edits(Gate(), (torch.tensor([[1.0, 2.0]]),), {"stem": Zero()})
    shapes = [(one.name, one.move.shape_before, one.move.shape_after, one.move.relative) for one in effect.moved]
    assert shapes == [("other", None, (1, 2), None), ("", (2,), (1, 2), None), ("stem", (1, 2), (1, 2), 1.0)]
    back = compare_edits(Gate(), (torch.tensor([[0.5, 0.25]]),), {"stem": Scale(4.0)})
    assert ("other", (1, 2), None) in [(one.name, one.move.shape_before, one.move.shape_after) for one in back.moved]


class Restless(nn.Module):
    """Draws, counts in a buffer and counts in an attribute, in eval mode too."""

    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()
        self.register_buffer("count", torch.zeros(()))
        self.times = 0

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1
        self.times += 1
        return torch.dropout(self.inner(x), 0.5, True) + self.count + self.times


def test_both_runs_start_from_the_same_state() -> None:
    net, x = Restless(), torch.rand(1, 64)
    state = torch.get_rng_state()
    effect = compare_edits(net, (x,), {"inner": Scale(1.0)})
    assert effect.moved == ()
    assert torch.equal(effect.before, effect.after)
    assert (net.times, float(net.count)) == (0, 0.0)
    assert torch.equal(torch.get_rng_state(), state)


def test_networks_in_train_mode_run_in_eval_mode_and_stay_in_train_mode() -> None:
    net, x = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5)).train(), torch.rand(4, 3)
    before = fingerprint(net)
    effect = compare_edits(net, (x,), {"0": Zero(0)})
    assert torch.equal(effect.before, by_hand(copy.deepcopy(net).eval(), {}, x)[0])
    assert same(fingerprint(net), before)


def test_only_watched_layers_are_compared_and_held() -> None:
    net, image = network("resnet18"), example("resnet18")
    edits = {"layer1.0": Zero([2])}
    wide = {(one.name, one.call): one.move for one in compare_edits(net, (image,), edits).moved}
    narrow = compare_edits(net, (image,), edits, watch=["layer3.*.relu", "fc", nn.MaxPool2d])
    assert {(one.name, one.call): one.move for one in narrow.moved} == {
        key: one for key, one in wide.items() if key[0] in {"layer3.0.relu", "layer3.1.relu", "fc"}
    }


@pytest.mark.parametrize("watch", ["*", "0.linear1", []])
def test_a_layer_that_torch_fuses_is_computed_alike_in_both_runs(watch: Any) -> None:
    """C59: torch runs this layer fused where no hook sits on it."""
    torch.set_num_threads(1)
    layers = [nn.TransformerEncoderLayer(16, 2, 32, batch_first=True) for _ in range(2)]
    net, x = nn.Sequential(*layers).eval(), torch.rand(1, 5, 16)
    effect = compare_edits(net, (x,), {"1.linear1": Scale(1.0)}, watch=watch)
    assert torch.equal(effect.before, effect.after)
    with torch.no_grad():
        assert float((effect.before - net(x)).abs().max()) <= 1e-5


def test_keywords_and_a_bare_tensor_are_taken() -> None:
    net, x = nn.Bilinear(2, 2, 2), torch.ones(1, 2)
    effect = compare_edits(net, (x,), {"": Zero(0)}, kwargs={"input2": x * 3})
    assert torch.equal(effect.before, net(x, input2=x * 3).detach())
    assert compare_edits(nn.Identity(), x, {"": Scale(3.0)}).after.tolist() == [[3.0, 3.0]]  # type: ignore[arg-type]
    with pytest.raises(HookvizError, match=r"as a tuple, such as \(image,\), not as list"):
        compare_edits(nn.Identity(), [x], {})  # type: ignore[arg-type]


def test_arguments_that_a_network_writes_into_stay_as_they_were() -> None:
    x = torch.ones(1, 2)
    effect = compare_edits(Returning(lambda x: x.add_(1)), (x,), {"": Zero(0)})
    assert effect.after.tolist() == [[0.0, 2.0]]
    assert x.tolist() == [[1.0, 1.0]]


def test_works_where_gradients_are_off_and_inside_inference_mode() -> None:
    net, image = network("simple_cnn"), example("simple_cnn")
    expected = compare_edits(net, (image,), {"conv2": Zero(3)})
    with torch.inference_mode():
        inside = compare_edits(net, (image,), {"conv2": Zero(3)})
    assert torch.equal(inside.after, expected.after)
    assert not inside.after.requires_grad
    assert not inside.after.is_inference()


def test_errors_come_before_anything_runs_or_leave_nothing_behind() -> None:
    """C22: whatever breaks off, no hook stays."""
    ran: list[Tensor] = []
    net = nn.Sequential(Returning(ran.append))
    with pytest.raises(UnknownLayerError, match="no layer 'nowhere'"):
        compare_edits(net, (torch.ones(1, 2),), {"nowhere": Zero()})
    with pytest.raises(UnknownLayerError, match="matches 'nothing"):
        compare_edits(net, (torch.ones(1, 2),), {"0": Zero()}, watch="nothing*")
    assert ran == []
    failing = FifthFailsNet()
    before = fingerprint(failing)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        compare_edits(failing, (torch.rand(1, 4),), {"0": Zero(0)})
    with pytest.raises(HookvizError, match="layer '': there is no channel 9 among the 5 of axis 1"):
        compare_edits(failing[0], (torch.rand(1, 4),), {"": Zero(9)})
    assert same(fingerprint(failing), before)


def test_scripted_networks_are_refused_in_one_sentence() -> None:
    """C54."""
    with pytest.warns(FutureWarning, match="deprecated"):
        scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(HookvizError, match="TorchScript module has no Python layers"):
        compare_edits(scripted, (torch.ones(1, 2),), {"0": Zero()})


def test_compiled_networks_go_by_their_eager_names() -> None:
    net, image = network("simple_cnn"), example("simple_cnn")
    effect = compare_edits(torch.compile(net), (image,), {"conv1": Zero(2)})  # type: ignore[arg-type]
    assert torch.equal(effect.after, by_hand(net, {"conv1": channels(1, [2], torch.zeros_like)}, image)[0])


def test_nothing_is_held_of_what_was_before_the_edit() -> None:
    alive: list[int] = []

    def look(x: Tensor) -> Tensor:
        alive.append(sum(type(one) is Tensor and one.numel() == 12345 for one in gc.get_objects()))
        return x[:, :2]

    net, x = nn.Sequential(Returning(lambda x: x + 1), Returning(look), nn.Identity()), torch.zeros(1, 12345)
    compare_edits(net, (x,), {"2": Zero(0)})
    compare_edits(net, (x,), {"0": Zero(0)})
    behind, _, before, after = alive
    assert before == behind + 1  # what the first layer returned in the first run, kept for the second
    assert after == behind  # and let go once it has been compared
