from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

from hookviz.hook_lab import (
    Experiment,
    HookLabError,
    LossChoice,
    clipped_norms,
    layer_gradient,
    list_firings,
    measure_cost,
    measure_flow,
    survey_hooks,
    try_hook,
)
from hookviz.models import load_model
from hookviz.models.simple_cnn import SimpleCNN
from hookviz.samples import load_sample
from tests.hooks.networks import network
from tests.models import hooked_networks
from tests.nets import fingerprint, same

pytestmark = pytest.mark.usefixtures("one_thread")

LAB = "tests.models.hooked_networks"
MODEL = load_model("simple_cnn", device="cpu")
BATCH = MODEL.prepare(load_sample("digit_3"))


def by_hand(net: nn.Module, batch: Tensor, *, conv2: Any = None) -> Tensor:
    """The teaching network written out with functions; ``conv2`` changes what that layer returned."""
    values = net.state_dict()
    features = F.max_pool2d(F.relu(F.conv2d(batch, values["conv1.weight"], values["conv1.bias"], padding=1)), 2)
    features = F.conv2d(features, values["conv2.weight"], values["conv2.bias"], padding=1)
    features = features if conv2 is None else conv2(features)
    hidden = F.relu(F.linear(F.max_pool2d(F.relu(features), 2).flatten(1), values["fc1.weight"], values["fc1.bias"]))
    return F.linear(hidden, values["fc2.weight"], values["fc2.bias"])


def logits(value: Tensor | None) -> Tensor:
    assert value is not None
    return value


def one_channel_zero(features: Tensor) -> Tensor:
    strongest = int(features.abs().double().mean((0, 2, 3)).argmax())
    changed = features.clone()
    changed[:, strongest] = 0
    return changed


CHANGES = {
    "zero": one_channel_zero,
    "in_place": one_channel_zero,
    "not_returned": lambda features: features,
    "look": lambda features: features,
}


@pytest.mark.parametrize("action", list(CHANGES))
def test_forward_hook_gives_what_the_network_written_out_gives(action: Any) -> None:
    trial = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", action=action, channels="strongest"))
    with torch.no_grad():
        assert torch.equal(logits(trial.before.logits), by_hand(MODEL.module, BATCH))
        assert torch.equal(logits(trial.after.logits), by_hand(MODEL.module, BATCH, conv2=CHANGES[action]))


def test_all_channels_are_scaled_clamped_and_averaged() -> None:
    changes = {
        "scale": lambda features: features * 3,
        "clamp": lambda features: features.clamp(-3, 3),
        "mean": lambda features: features.mean((2, 3), keepdim=True).expand_as(features),
    }
    for action, change in changes.items():
        experiment = Experiment(layer="conv2", action=action, strength=3.0)  # type: ignore[arg-type]  # one of them
        trial = try_hook(MODEL.module, (BATCH,), experiment)
        with torch.no_grad():
            assert torch.equal(logits(trial.after.logits), by_hand(MODEL.module, BATCH, conv2=change)), action


def test_noise_is_that_of_a_generator_of_its_own_and_the_random_state_stays() -> None:
    before = torch.get_rng_state()
    trial = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", action="noise", strength=0.5))
    noise = torch.randn(1, 32, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = by_hand(MODEL.module, BATCH, conv2=lambda features: features + 0.5 * noise)
    assert torch.equal(logits(trial.after.logits), expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_channels_count_on_the_last_axis_of_tokens() -> None:
    tokens = nn.Sequential(nn.Flatten(2), nn.LazyLinear(5))
    with torch.no_grad():
        tokens(BATCH)
        plain = tokens(BATCH)
    trial = try_hook(tokens, (BATCH,), Experiment(layer="1", action="zero", channels=(2,), layout="NLC"))
    (seen,) = trial.seen
    plain[..., 2] = 0
    assert seen.after is not None
    assert torch.equal(seen.after, plain)


def test_hook_is_told_of_as_torch_calls_it() -> None:
    (seen,) = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", action="zero")).seen
    assert seen.module == repr(MODEL.module.conv2)
    assert seen.given == (("args", "tuple of 1: 1 × 16 × 16 × 16 float32"), ("output", "1 × 32 × 16 × 16 float32"))
    assert seen.returned == "1 × 32 × 16 × 16 float32"
    (seen,) = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", action="not_returned")).seen
    assert seen.returned == "nothing (None)"


def test_hook_of_a_layer_called_twice_fires_twice_and_of_one_not_called_never() -> None:
    assert len(try_hook(MODEL.module, (BATCH,), Experiment(layer="pool")).seen) == 2
    net = SimpleCNN()
    net.spare = nn.Linear(2, 2)
    trial = try_hook(net, (BATCH,), Experiment(layer="spare", action="zero", channels="strongest"))
    assert trial.seen == ()
    assert torch.equal(logits(trial.before.logits), logits(trial.after.logits))


def test_in_place_hook_says_whose_memory_it_wrote_into() -> None:
    trial = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", kind="forward_pre", action="in_place"))
    assert trial.overwritten == ("pool",)
    resnet = network("resnet18")
    trial = try_hook(resnet, (torch.rand(1, 3, 32, 32),), Experiment(layer="layer1.0.relu", action="in_place"))
    assert trial.overwritten == ("layer1.0.bn1", "layer1.0.relu")
    trial = try_hook(MODEL.module, (BATCH,), Experiment(layer="conv1", kind="forward_pre", action="in_place"))
    assert trial.overwritten == ("the network's input",)


def backward_by_torch(kind: str, hook: Any) -> Tensor:
    """The gradient of the input with torch's own hook on conv2 of a network built anew."""
    net = load_model("simple_cnn", device="cpu").module
    getattr(net.conv2, f"register_full_{kind}_hook")(hook)
    batch = BATCH.clone().requires_grad_()
    output = net(batch)
    output[0, output.argmax()].backward()
    return logits(batch.grad)


def test_full_backward_hooks_change_the_input_s_gradient_as_torch_s_own_do() -> None:
    kinds = {
        "backward": lambda module, grad_input, grad_output: (grad_input[0] * 2,),
        "backward_pre": lambda module, grad_output: (grad_output[0] * 2,),
    }
    for kind, hook in kinds.items():
        experiment = Experiment(layer="conv2", kind=kind, action="scale", strength=2.0)  # type: ignore[arg-type]
        trial = try_hook(MODEL.module, (BATCH,), experiment)
        assert torch.equal(logits(trial.after.input_gradient), backward_by_torch(kind, hook))
        assert torch.equal(logits(trial.before.input_gradient), backward_by_torch(kind, lambda *_: None))
        assert not trial.emulated
        assert torch.equal(logits(trial.before.logits), logits(trial.after.logits))


def test_norms_are_those_of_the_gradients_at_the_layers_outputs() -> None:
    trial = try_hook(MODEL.module, (BATCH,), Experiment(layer="fc2", kind="backward", action="zero"))
    values = MODEL.module.state_dict()
    target = int(logits(trial.before.logits).argmax())
    assert trial.before.norms["fc2"] == 1.0
    assert trial.before.norms["fc1"] > 0
    assert {name: norm for name, norm in trial.after.norms.items() if norm} == {"fc2": 1.0, "": 1.0}
    with torch.no_grad():
        rectified = by_hand_hidden() > 0
    expected = (values["fc2.weight"][target] * rectified).double().norm()
    assert trial.before.norms["fc1"] == pytest.approx(float(expected), rel=1e-6)


def by_hand_hidden() -> Tensor:
    values = MODEL.module.state_dict()
    features = F.max_pool2d(F.relu(F.conv2d(BATCH, values["conv1.weight"], values["conv1.bias"], padding=1)), 2)
    features = F.max_pool2d(F.relu(F.conv2d(features, values["conv2.weight"], values["conv2.bias"], padding=1)), 2)
    return F.linear(features.flatten(1), values["fc1.weight"], values["fc1.bias"])[0]


def test_backward_hook_where_torch_s_own_raises_is_emulated() -> None:
    resnet, images = network("resnet18"), torch.rand(1, 3, 32, 32)
    experiment = Experiment(layer="layer1.0.bn1", kind="backward", action="scale", strength=2.0)
    trial = try_hook(resnet, (images,), experiment)
    assert trial.emulated
    plain = Experiment(layer="layer1.0.conv1", kind="backward", action="scale", strength=2.0)
    assert not try_hook(resnet, (images,), plain).emulated
    # Doubling what leaves bn1 backward is doubling what leaves conv1: both lie on one path with nothing between.
    assert torch.allclose(
        logits(trial.after.input_gradient), logits(try_hook(resnet, (images,), plain).after.input_gradient), rtol=1e-4
    )


KINDS = ("forward", "forward_pre", "backward", "backward_pre")
ACTIONS = ("look", "scale", "noise", "clamp", "zero", "mean", "not_returned", "in_place")


@pytest.mark.parametrize("name", ["simple_cnn", "resnet18"])
def test_network_is_left_as_found_by_every_experiment(name: str) -> None:
    net, images = network(name), torch.rand(1, 3, 32, 32)
    layer = "conv2" if name == "simple_cnn" else "layer1.0.bn1"
    before, random = fingerprint(net), torch.get_rng_state()
    for kind in KINDS:
        for action in ACTIONS if name == "simple_cnn" else ("zero", "in_place"):
            try_hook(net, (images,), Experiment(layer=layer, kind=kind, action=action, channels="strongest"))  # type: ignore[arg-type]
    list_firings(net, (images,), Experiment(layer=layer, kind="backward"))
    measure_cost(net, (images,), Experiment(layer=layer, action="zero"), pairs=1)
    measure_flow(net, (images,), LossChoice(kind="cross-entropy"))
    layer_gradient(net, (images,), LossChoice(), layer)
    clipped_norms(net, (images,), LossChoice(), max_norm=0.1)
    survey_hooks(net, (images,))
    assert same(fingerprint(net), before)
    assert torch.equal(torch.get_rng_state(), random)


@pytest.mark.parametrize("kind", KINDS)
def test_network_is_left_as_found_where_the_hook_raises_in_the_middle(kind: Any) -> None:
    net = network("simple_cnn")
    before = fingerprint(net)
    experiment = Experiment(layer="conv2", kind=kind, action="function", function=f"{LAB}:broken")
    with pytest.raises(HookLabError, match="the hook on conv2 raised ValueError: a hook may fail; every hook is off"):
        try_hook(net, (BATCH,), experiment)
    assert same(fingerprint(net), before)


def test_function_of_the_operator_takes_the_place_of_the_output() -> None:
    experiment = Experiment(layer="conv2", action="function", function=f"{LAB}:halved")
    trial = try_hook(MODEL.module, (BATCH,), experiment)
    with torch.no_grad():
        expected = by_hand(MODEL.module, BATCH, conv2=lambda features: features / 2)
    assert torch.equal(logits(trial.after.logits), expected)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("halved", "'halved' names no function; write package.module:function."),
        (f"{LAB}:absent", f"{LAB} has no absent; name a function of it with the hook's signature."),
        ("no_such_package:f", "no_such_package cannot be imported (ModuleNotFoundError"),
        (f"{LAB}:NOT_A_FUNCTION", f"{LAB}:NOT_A_FUNCTION is a int; name a function"),
    ],
)
def test_function_that_cannot_be_had_is_one_sentence(target: str, words: str) -> None:
    with pytest.raises(HookLabError) as caught:
        try_hook(MODEL.module, (BATCH,), Experiment(layer="conv2", action="function", function=target))
    assert str(caught.value).startswith(words)


def test_hook_that_returns_what_does_not_fit_is_one_sentence() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4), nn.Linear(4, 2))
    experiment = Experiment(layer="1", action="function", function="torch:numel")
    with pytest.raises(HookLabError, match="the hook on 1 raised TypeError"):
        try_hook(net, (BATCH,), experiment)
    with pytest.raises(HookLabError, match="there is no class 7; choose from 0 to 1"):
        try_hook(net, (BATCH,), Experiment(layer="1", kind="backward", loss=LossChoice(target=7)))


def test_firings_are_marked_by_pass() -> None:
    forward = list_firings(MODEL.module, (BATCH,), Experiment(layer="conv2"))
    assert [(one.kind, one.layer) for one in forward[:5]] == [
        ("forward_pre", ""),
        ("forward_pre", "conv1"),
        ("forward", "conv1"),
        ("forward_pre", "pool"),
        ("forward", "pool"),
    ]
    both = list_firings(MODEL.module, (BATCH,), Experiment(layer="conv2", kind="backward"))
    assert len(forward) == 14
    assert [one.kind for one in both[14:16]] == ["backward_pre", "backward_pre"]
    assert both[-1].kind == "backward"


def test_clipping_leaves_each_layer_its_share() -> None:
    net = load_model("simple_cnn", device="cpu").module
    output = net(BATCH)
    output[0, output.argmax()].backward()
    norms = {
        name: float(torch.cat([one.grad.double().flatten() for one in getattr(net, name).parameters()]).norm())
        for name in ("conv1", "conv2", "fc1", "fc2")
    }
    total = sum(norm**2 for norm in norms.values()) ** 0.5
    clipped = clipped_norms(MODEL.module, (BATCH,), LossChoice(), max_norm=1.0)
    assert clipped.total == pytest.approx((total, 1.0), rel=1e-6)
    for name, norm in norms.items():
        assert clipped.layers[name] == pytest.approx((norm, norm / total), rel=1e-5)
    unclipped = clipped_norms(MODEL.module, (BATCH,), LossChoice(), max_norm=1e6)
    assert all(was == now for was, now in unclipped.layers.values())


def test_layer_gradient_is_autograd_s_own() -> None:
    found = layer_gradient(MODEL.module, (BATCH,), LossChoice(kind="cross-entropy", target=5), "conv2")
    kept: list[Tensor] = []

    def keep(features: Tensor) -> Tensor:
        kept.append(features.detach().requires_grad_())
        return kept[0]

    loss = F.cross_entropy(by_hand(MODEL.module, BATCH, conv2=keep), torch.tensor([5]))
    (expected,) = torch.autograd.grad(loss, kept[0])
    assert torch.equal(logits(found.activation), kept[0])
    assert torch.allclose(logits(found.gradient), expected, rtol=1e-5, atol=1e-8)


def test_flow_speaks_of_the_class_that_was_chosen() -> None:
    flow = measure_flow(MODEL.module, (BATCH,), LossChoice(target=5))
    assert [layer.name for layer in flow.layers] == ["conv1", "conv2", "fc1", "fc2"]
    # The logit's gradient reaches one row of fc2's weight, where it is fc1's rectified output, and one bias.
    hidden = F.relu(by_hand_hidden()).detach().double()
    assert flow["fc2"].norm == pytest.approx(float((hidden.square().sum() + 1).sqrt()), rel=1e-6)


def test_cost_names_the_layer_s_bytes_and_refuses_backward() -> None:
    cost = measure_cost(MODEL.module, (BATCH,), Experiment(layer="conv2", action="zero"), pairs=2)
    assert cost.recording.bytes == 32 * 16 * 16 * 4
    assert min(cost.plain, cost.hooked, cost.ratio) > 0
    with pytest.raises(HookLabError, match="measured on forward hooks"):
        measure_cost(MODEL.module, (BATCH,), Experiment(layer="conv2", kind="backward"))


def test_survey_finds_what_a_factory_planted() -> None:
    net = hooked_networks.hooked().module.eval()
    before = fingerprint(net)
    survey = survey_hooks(net, (torch.rand(1, 3, 16, 16),))
    assert [(one.layer, one.kind, one.function) for one in survey.hooks] == [
        ("0", "forward", "planted"),
        ("1", "backward", "noted"),
        ("5", "backward", "noted"),
    ]
    assert [(one.layer, one.serious) for one in survey.remarks] == [("1", True), ("5", True), ("0", False)]
    raising, deprecated, replacing = survey.remarks
    assert "the forward raises with it" in raising.sentence
    assert "Tensor.register_post_accumulate_grad_hook" in deprecated.sentence
    assert "the forward hook planted on 0 returns a value" in replacing.sentence.lower()
    assert same(fingerprint(net), before)


def test_survey_knows_what_is_part_of_the_model() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3))
    prune.l1_unstructured(net[0], "weight", 0.5)
    parametrizations.weight_norm(net[1])
    survey = survey_hooks(net)
    assert [(one.layer, one.sentence, one.serious) for one in survey.remarks] == [
        ("0", "L1Unstructured on 0 is part of the model, and no hook to remove.", False),
        ("1", "1 computes its weight by WeightNorm, a parametrization: part of the model.", False),
    ]
    assert survey_hooks(SimpleCNN()).remarks == ()
