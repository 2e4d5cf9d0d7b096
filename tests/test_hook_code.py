"""Every code text that the page shows is run here, and gives what the page shows."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn

from hookviz import attach
from hookviz.bundled import bundled_file
from hookviz.hook_lab import NOTES, Experiment, LossChoice, Note, hook_code, loading_code, try_hook
from hookviz.hook_lab.experiment import Action, LabKind
from hookviz.hook_lab.trial import Trial
from hookviz.models import Model, load_model, own
from hookviz.samples import load_sample
from tests.models.conftest import torch_home as torch_home  # noqa: PLC0414  # pytest finds fixtures by name
from tests.models.test_timm import hub_cache as hub_cache  # noqa: PLC0414  # the same
from tests.models.test_timm import put_in_hub_cache, random_state
from tests.nets import same

pytestmark = pytest.mark.usefixtures("one_thread")

LAB = "tests.models.hooked_networks"
FILES = {"grace_hopper": "grace_hopper.jpg", "digit_3": "digit_3.png"}


def run(code: str, image: str, weights: Path | None = None) -> tuple[dict[str, Any], str]:
    """Run a text with the files in the place of those that it names; what it defined, and what it printed."""
    code = code.replace('"image.jpg"', repr(str(bundled_file(FILES[image]))))
    code = code.replace('"simple_cnn.safetensors"', repr(str(bundled_file("simple_cnn.safetensors"))))
    code = code if weights is None else code.replace('"weights.pt"', repr(str(weights)))
    defined: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "shown.py", "exec"), defined)  # noqa: S102  # the very text that the page shows
    return defined, printed.getvalue()


def code_of(trial: Trial, model: Model, *, own_file: bool = False) -> str:
    tensor = trial.seen[0].before
    assert tensor is not None
    loading = loading_code(model, own_file=own_file)
    return hook_code(trial.experiment, loading, tensor.ndim, emulated=trial.emulated)


def assert_same(trial: Trial, defined: dict[str, Any]) -> None:
    """What the page shows, to the last bit."""
    after = trial.after
    assert after.logits is not None
    assert torch.equal(defined["logits"], after.logits)
    if trial.experiment.is_backward:
        given: Tensor = defined["batch"] if "batch" in defined else defined["arguments"][0]
        assert after.input_gradient is not None
        assert given.grad is not None
        assert torch.equal(given.grad, after.input_gradient)


KINDS: tuple[LabKind, ...] = ("forward", "forward_pre", "backward", "backward_pre")
ACTIONS: tuple[Action, ...] = ("look", "scale", "noise", "clamp", "zero", "mean", "not_returned", "in_place")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ACTIONS)
def test_code_on_the_teaching_network_gives_what_the_page_shows(kind: LabKind, action: Action) -> None:
    model = load_model("simple_cnn", device="cpu")
    batch = model.prepare(load_sample("digit_3"))
    for channels in ("strongest", None, (1, 3)):
        experiment = Experiment(layer="conv2", kind=kind, action=action, strength=0.5, channels=channels)
        trial = try_hook(model.module, (batch,), experiment)
        code = code_of(trial, model)
        assert "hookviz import" not in code
        defined, _ = run(code, "digit_3")
        assert_same(trial, defined)
        assert not defined["layer"]._forward_hooks
        assert not defined["layer"]._backward_hooks


@pytest.mark.parametrize(
    "loss", [LossChoice(target=5), LossChoice(kind="cross-entropy"), LossChoice(kind="cross-entropy", target=1)]
)
def test_code_takes_the_gradients_of_the_class_that_was_chosen(loss: LossChoice) -> None:
    model = load_model("simple_cnn", device="cpu")
    trial = try_hook(
        model.module,
        (model.prepare(load_sample("digit_3")),),
        Experiment(layer="pool", kind="backward", action="scale", loss=loss),
    )
    defined, printed = run(code_of(trial, model), "digit_3")
    assert_same(trial, defined)
    assert printed.startswith("norm of the input's gradient: ")


@pytest.mark.parametrize("kind", KINDS)
def test_code_on_the_first_network_shown_gives_what_the_page_shows(kind: LabKind) -> None:
    model = load_model("efficientnet_lite0", device="cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    experiment = Experiment(layer="conv_head", kind=kind, action="zero", channels="strongest")
    trial = try_hook(model.module, (batch,), experiment)
    defined, printed = run(code_of(trial, model), "grace_hopper")
    assert_same(trial, defined)
    assert torch.equal(defined["batch"].detach(), batch)
    if kind == "forward":
        assert trial.after.logits is not None
        shares = trial.after.logits.softmax(1)[0]
        best = shares.argsort(descending=True)[:5].tolist()
        assert printed.splitlines() == [f"{shares[index]:.1%}  class {index}" for index in best]


@pytest.mark.parametrize(
    "layer", ["layer1.0.bn1", pytest.param("layer2.0.relu", marks=pytest.mark.slow), "layer4.1.conv2"]
)
@pytest.mark.parametrize("kind", ["backward", "backward_pre"])
def test_code_where_torch_s_own_hook_raises_sets_it_on_tensors(layer: str, kind: LabKind) -> None:
    """Of an untrained network, whose values are hookviz's own, the code says so."""
    model = load_model("resnet18", None, "cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    trial = try_hook(model.module, (batch,), Experiment(layer=layer, kind=kind, action="scale", strength=2.0))
    code = code_of(trial, model)
    assert trial.emulated == (layer != "layer4.1.conv2")
    assert ("register_full_backward" in code) != trial.emulated
    assert "# Untrained: the random values of the page come from hookviz's own seed." in code
    assert_same(trial, run(code, "grace_hopper")[0])


def test_code_loads_weights_of_torchvision(torch_home: Path) -> None:
    entry = torchvision.models.SqueezeNet1_1_Weights.DEFAULT
    torch_home.mkdir(parents=True)
    torch.manual_seed(7)
    torch.save(torchvision.models.squeezenet1_1(weights=None).state_dict(), torch_home / Path(entry.url).name)
    model = load_model("squeezenet1_1", device="cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    trial = try_hook(model.module, (batch,), Experiment(layer="features.3", action="clamp", strength=0.1))
    code = code_of(trial, model)
    assert 'get_model_weights("squeezenet1_1")["IMAGENET1K_V1"]' in code
    defined, _ = run(code, "grace_hopper")
    assert_same(trial, defined)


def test_code_loads_weights_of_timm(hub_cache: Path) -> None:
    put_in_hub_cache(hub_cache, "timm/test_vit.r160_in1k", random_state("test_vit"))
    model = load_model("timm/test_vit", device="cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    experiment = Experiment(layer="blocks.2", action="zero", channels=(3,), layout="NLC")
    trial = try_hook(model.module, (batch,), experiment)
    code = code_of(trial, model)
    assert 'timm.create_model("test_vit.r160_in1k", pretrained=True)' in code
    assert "changed[:, :, [3]] = 0" in code
    defined, _ = run(code, "grace_hopper")
    assert_same(trial, defined)


def test_code_of_an_own_network_says_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own, "_offered", {})
    own.offer([f"mine={LAB}:hooked"])
    model = load_model("mine", device="cpu")
    arguments = model.inputs(load_sample("grace_hopper"))
    trial = try_hook(model.module, arguments, Experiment(layer="0", action="function", function=f"{LAB}:halved"))
    code = code_of(trial, model)
    assert f"# Your own network; it is what {LAB}:hooked gives." in code
    assert f"from {LAB} import halved" in code
    assert "model = private_copy(loaded.module)  # without the hooks that sit on it already" in code
    monkeypatch.setattr(own, "_offered", {})  # the name is one of the page's process alone
    defined, _ = run(code, "grace_hopper")
    assert_same(trial, defined)


def test_code_for_weights_given_as_a_file(tmp_path: Path) -> None:
    torch.manual_seed(3)
    path = tmp_path / "mine.pt"
    torch.save(torchvision.models.resnet18(weights=None).state_dict(), path)
    model = load_model("resnet18", path, "cpu")
    batch = model.prepare(load_sample("grace_hopper"))
    trial = try_hook(model.module, (batch,), Experiment(layer="layer4", action="zero", channels="strongest"))
    code = code_of(trial, model, own_file=True)
    assert "# The weights that were chosen as a file on the page." in code
    defined, _ = run(code, "grace_hopper", path)
    assert_same(trial, defined)


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("ssdlite320_mobilenet_v3_large", "backbone.features.0.0"),
        pytest.param("lraspp_mobilenet_v3_large", "backbone.0", marks=pytest.mark.slow),
        pytest.param("mc3_18", "stem.0", marks=pytest.mark.slow),
        ("raft_small", "feature_encoder.convnormrelu"),
    ],
)
def test_code_of_networks_that_are_no_classifiers_of_pictures(name: str, layer: str) -> None:
    model = load_model(name, None, "cpu")
    arguments = model.inputs(load_sample("digit_3"))
    trial = try_hook(model.module, arguments, Experiment(layer=layer, action="zero", channels=(1, 2)))
    defined, printed = run(code_of(trial, model), "digit_3")

    def zeroed(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        return torch.cat([output[:, :1], torch.zeros_like(output[:, 1:3]), output[:, 3:]], 1)

    with torch.no_grad(), attach(model.module, {layer: zeroed}):
        assert same(defined["logits"], model.module(*arguments))
    assert printed


def test_code_of_an_8_bit_network_looks() -> None:
    model = load_model("quantized_mobilenet_v2", None, "cpu")
    arguments = model.inputs(load_sample("digit_3"))
    trial = try_hook(model.module, arguments, Experiment(layer="features.0", action="look"))
    defined, printed = run(code_of(trial, model), "digit_3")
    with torch.no_grad():
        assert torch.equal(defined["logits"], model.module(*arguments))
    assert "torch.quint8" in printed


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.claim[:30])
def test_code_of_every_note_prints_what_the_page_says(note: Note) -> None:
    assert run(note.code, "digit_3")[1] == note.printed
