from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision
from safetensors.torch import save_file
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.models import load_model
from hookviz.models.checkpoints import CheckpointError, CheckpointWarning, load_checkpoint
from hookviz.models.initialization import seeded_initialization, skipped_initialization
from hookviz.models.simple_cnn import SimpleCNN


@pytest.fixture
def state() -> dict[str, Tensor]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return dict(SimpleCNN().state_dict())


WRAPPINGS: list[tuple[str, Callable[[dict[str, Tensor]], Any]]] = [
    ("plain.pth", lambda state: state),
    ("wrapped.pt", lambda state: {"state_dict": state, "epoch": 3}),
    ("wrapped2.PTH", lambda state: {"model": state}),
    ("parallel.pth", lambda state: {"state_dict": {f"module.{name}": value for name, value in state.items()}}),
    ("average.bin", lambda state: {"ema": state}),
]


@pytest.mark.parametrize(("file_name", "wrap"), WRAPPINGS, ids=[name for name, _ in WRAPPINGS])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_checkpoint_fills_the_network(
    file_name: str, wrap: Callable[[dict[str, Tensor]], Any], kind: type, state: dict[str, Tensor], tmp_path: Path
) -> None:
    torch.save(wrap(state), tmp_path / file_name)
    model = load_model("simple_cnn", kind(tmp_path / file_name), "cpu")
    assert all(torch.equal(value, state[name]) for name, value in model.module.state_dict().items())
    assert (model.weights, model.trained, model.categories[3]) == (file_name, True, "3")
    assert model.source == f"hookviz simple_cnn, MIT, values of {file_name}"


@pytest.mark.parametrize("name", ["mnasnet0_5", "simple_cnn"])
def test_a_safetensors_checkpoint_fills_the_network(name: str, tmp_path: Path) -> None:
    """MNASNet refuses a state dict without its layers' versions, which safetensors does not keep."""
    expected = load_model(name, None, "cpu").module.state_dict()
    save_file(expected, tmp_path / "own.safetensors")
    loaded = load_model(name, tmp_path / "own.safetensors", "cpu").module.state_dict()
    assert all(torch.equal(value, expected[key]) for key, value in loaded.items())


def refuse(path: Path, sentence: str) -> None:
    with pytest.raises(ModelError, match=f"^{sentence}$"):
        load_model("simple_cnn", path)


def test_differences_are_counted_and_the_first_named(state: dict[str, Tensor], tmp_path: Path) -> None:
    state["fc2.weight"] = torch.zeros(7, 128)
    for name in ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"):
        state[name.replace("conv", "convolution")] = state.pop(name)
    torch.save(state, tmp_path / "other.pth")
    refuse(
        tmp_path / "other.pth",
        re.escape(
            "The checkpoint other.pth does not fit: 4 missing (conv1.weight, conv1.bias, conv2.weight, ...); "
            "4 unexpected (convolution1.weight, convolution1.bias, convolution2.weight, ...); "
            "1 of another shape (fc2.weight is (7, 128) instead of (10, 128)); "
            "conv1, conv2 would stay at a random start."
        ),
    )


@pytest.mark.parametrize("file_name", ["broken.pth", "broken.safetensors"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 50], ids=["empty", "zeros"])
def test_a_damaged_file_is_one_sentence(file_name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / file_name).write_bytes(content)
    refuse(tmp_path / file_name, rf"The checkpoint {file_name} is (empty|neither safetensors).*\.")


@pytest.mark.parametrize("file_name", ["absent.pth", "absent.safetensors"])
def test_a_file_that_is_not_there_is_one_sentence(file_name: str, tmp_path: Path) -> None:
    refuse(tmp_path / file_name, re.escape(f"There is no checkpoint {str(tmp_path / file_name)!r}; check the path."))


def copied(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


def resnet(classes: int) -> nn.Module:
    with seeded_initialization():
        network: nn.Module = torchvision.models.resnet18(weights=None, num_classes=classes)
    return network.eval()


def test_a_checkpoint_of_ten_classes_computes_what_was_saved(tmp_path: Path) -> None:
    """The head is rebuilt to fit, and with it the network gives the very same logits."""
    trained = resnet(10)
    with torch.no_grad():
        trained.get_parameter("fc.weight").mul_(2)
    parallel = nn.DataParallel(trained)
    torch.save({"model": parallel.state_dict(), "epoch": 1}, tmp_path / "ten.pth")
    with skipped_initialization():
        network = torchvision.models.resnet18(weights=None).eval()
    report = load_checkpoint(network, tmp_path / "ten.pth")
    images = torch.linspace(-1, 1, 3 * 64 * 64).reshape(1, 3, 64, 64)
    with torch.no_grad():
        assert torch.equal(network(images), trained(images))
    assert (report.num_classes, report.renamed) == (10, ("model", "module."))
    assert report.verdict == (
        "The checkpoint ten.pth fits: 120 values with the network's names and shapes, after taking off 'model', "
        "'module.'; the head fc gets 10 classes instead of 1000; left aside: epoch."
    )


def test_auxiliary_heads_are_fitted_too() -> None:
    with skipped_initialization():
        network = torchvision.models.inception_v3(weights=None, init_weights=False)
        other = torchvision.models.inception_v3(weights=None, init_weights=False, num_classes=3)
    for value in other.state_dict().values():
        value.fill_(1)
    load_checkpoint(network, other.state_dict())
    assert all(bool((value == 1).all()) for value in network.state_dict().values())
    assert (network.fc.out_features, network.AuxLogits.fc.out_features) == (3, 3)


def test_an_auxiliary_branch_that_is_missing_starts_at_random_values_and_is_said() -> None:
    with skipped_initialization():
        network = torchvision.models.inception_v3(weights=None, init_weights=False)
    for value in network.state_dict().values():
        value.fill_(1)
    state = {name: value.clone() for name, value in network.state_dict().items() if "AuxLogits" not in name}
    with pytest.warns(CheckpointWarning, match="; AuxLogits stays at a random start"):
        report = load_checkpoint(network, state)
    assert report.random_layers == ("AuxLogits",)
    weight = network.AuxLogits.conv0.conv.weight
    assert 0 < float(weight.detach().std()) < 0.1
    assert float(network.AuxLogits.fc.weight.detach().std()) > 0


def test_auxiliary_values_for_a_network_without_are_not_used() -> None:
    with skipped_initialization():
        network = torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False)
        other = torchvision.models.googlenet(weights=None, aux_logits=True, init_weights=False)
    for value in other.state_dict().values():
        value.fill_(1)
    report = load_checkpoint(network, other.state_dict())
    assert {name.partition(".")[0] for name in report.unexpected} == {"aux1", "aux2"}
    assert all(bool((value == 1).all()) for value in network.state_dict().values())


def test_a_missing_head_starts_at_seeded_values_whatever_was_there_before() -> None:
    """What skipped construction leaves there is undefined, and must never be shown."""
    state = {name: value for name, value in resnet(10).state_dict().items() if not name.startswith("fc.")}
    network = resnet(7)
    with torch.no_grad():
        network.get_parameter("fc.weight").fill_(float("nan"))
    with pytest.warns(CheckpointWarning, match="; fc stays at a random start, since the file has no values for it"):
        load_checkpoint(network, state)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        expected = nn.Linear(512, 7)
    assert torch.equal(network.get_parameter("fc.weight"), expected.weight)
    assert torch.equal(network.get_parameter("fc.bias"), expected.bias)


@pytest.mark.parametrize("change", ["missing", "shape", "unexpected", "integers"])
def test_a_checkpoint_that_does_not_fit_leaves_the_network_as_it_was(change: str, state: dict[str, Tensor]) -> None:
    """O5, with a head of another size besides, which must not be rebuilt then."""
    state |= {"fc2.weight": torch.zeros(3, 128), "fc2.bias": torch.zeros(3)}
    if change == "missing":
        del state["conv1.bias"]
    else:
        state |= {
            "shape": {"conv1.bias": torch.zeros(9)},
            "unexpected": {"conv1.gate": torch.zeros(9)},
            "integers": {"conv1.bias": torch.zeros(16, dtype=torch.int8)},
        }[change]
    network = SimpleCNN()
    before, names = copied(network), {name: id(value) for name, value in network.named_parameters()}
    with pytest.raises(CheckpointError, match=r"^The checkpoint does not fit: ") as caught:
        load_checkpoint(network, state)
    assert caught.value.report is not None
    assert not caught.value.report.fits
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert {name: id(value) for name, value in network.named_parameters()} == names
    assert network.fc2.out_features == 10


class RefusingNet(SimpleCNN):
    """A network whose own way to load refuses what has the right names and shapes."""

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError("no")


def test_a_network_that_refuses_while_loading_is_left_as_it_was(state: dict[str, Tensor]) -> None:
    network = RefusingNet()
    before = copied(network)
    state |= {"fc2.weight": torch.zeros(3, 128), "fc2.bias": torch.zeros(3)}
    with pytest.raises(CheckpointError, match=r"^The checkpoint does not fit, though .* refuses its values\.$"):
        load_checkpoint(network, state)
    assert network.fc2.out_features == 10
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_what_is_not_a_value_stays_as_it_was(state: dict[str, Tensor]) -> None:
    """O5: modes, ``requires_grad``, hooks and the random state."""
    network = SimpleCNN()
    network.conv1.eval()
    network.fc1.weight.requires_grad = False
    network.fc2.register_forward_hook(lambda *_: None)
    other, random_state = copy.deepcopy(network), torch.random.get_rng_state()
    load_checkpoint(network, state)
    assert {name: one.training for name, one in network.named_modules()} == {
        name: one.training for name, one in other.named_modules()
    }
    assert [one.requires_grad for one in network.parameters()] == [one.requires_grad for one in other.parameters()]
    assert len(network.fc2._forward_hooks) == 1
    assert torch.equal(torch.random.get_rng_state(), random_state)


def test_halves_become_the_networks_own_dtype(state: dict[str, Tensor]) -> None:
    network = SimpleCNN()
    load_checkpoint(network, {name: value.half() for name, value in state.items()})
    assert all(torch.equal(value, state[name].half().float()) for name, value in network.state_dict().items())


@pytest.mark.slow
def test_the_checkpoint_of_the_digits_script_loads_with_its_ten_classes(tmp_path: Path) -> None:
    """The whole way: train briefly, write, read, rebuild the head, and name unseen digits."""
    from hookviz.class_names import read_class_names
    from scripts import train_digits_resnet as script

    script.main(tmp_path)
    with skipped_initialization():
        network = torchvision.models.resnet18(weights=None).eval()
    report = load_checkpoint(network, tmp_path / script.WEIGHTS_FILE)
    assert (report.num_classes, len(report.matched), report.missing) == (10, 120, ())
    names = read_class_names(tmp_path / script.NAMES_FILE, expected=report.num_classes)
    assert names == script.CLASS_NAMES
    inputs, digits = script.digit_inputs()
    assert script.correct(network, inputs[::5], digits[::5]) >= 324  # nine in ten; 345 where it was written
