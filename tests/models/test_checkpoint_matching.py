from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchvision
from torch import Tensor, nn

from hookviz.models.checkpoints import match_checkpoint
from hookviz.models.initialization import seeded_initialization

State = dict[str, Tensor]


class BackboneNet(nn.Module):
    """A convolution with its batch norm, and a head of five classes."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, classes)

    def forward(self, images: Tensor) -> Tensor:
        return self.fc(self.norm(self.conv(images)).mean((2, 3)))  # type: ignore[no-any-return]  # modules are untyped


NAMES = (
    "conv.weight",
    "conv.bias",
    "norm.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
    "fc.weight",
    "fc.bias",
)


def values(classes: int = 5) -> State:
    with seeded_initialization():
        return dict(BackboneNet(classes).state_dict())


def under(prefix: str, state: State) -> State:
    return {prefix + name: value for name, value in state.items()}


def without(state: State, *starts: str) -> State:
    return {name: value for name, value in state.items() if not name.startswith(starts)}


AROUND: list[tuple[tuple[str, ...], Callable[[State], Any]]] = [
    ((), lambda state: state),
    (("state_dict",), lambda state: {"state_dict": state, "epoch": 1}),
    (("model",), lambda state: {"model": state}),
    (("model_state_dict",), lambda state: {"model_state_dict": state}),
    (("ema",), lambda state: {"ema": state}),
    (("state_dict_ema",), lambda state: {"state_dict_ema": state}),
    (("ema", "shadow"), lambda state: {"ema": {"shadow": state, "decay": 0.99}}),
    (("module.",), lambda state: under("module.", state)),
    (("_orig_mod.",), lambda state: under("_orig_mod.", state)),
    (("model.",), lambda state: under("model.", state)),
    (("net.",), lambda state: under("net.", state)),
    (("backbone.",), lambda state: under("backbone.", state)),
    (("module.", "_orig_mod."), lambda state: under("module._orig_mod.", state)),
    (("_orig_mod.", "module."), lambda state: under("_orig_mod.module.", state)),
    (("state_dict", "module.", "encoder_q."), lambda state: {"state_dict": under("module.encoder_q.", state)}),
    (("state_dict", "model.backbone."), lambda state: {"state_dict": under("model.backbone.", state)}),
    (("module.",), lambda state: {name.replace(".", ".module.", 1): value for name, value in state.items()}),
    (("module.",), lambda state: {**under("module.", state), "n_averaged": torch.tensor(9)}),
]


@pytest.mark.parametrize(("removed", "wrap"), AROUND, ids=["/".join(removed) for removed, _ in AROUND])
def test_what_lies_around_the_values_is_taken_off_and_named(
    removed: tuple[str, ...], wrap: Callable[[State], Any]
) -> None:
    """C53: wrapped models, whatever wrapped them."""
    report = match_checkpoint(BackboneNet(), wrap(values()))
    assert (report.fits, report.renamed, report.matched) == (True, removed, NAMES)
    assert (report.missing, report.wrong_shape, report.num_classes) == ((), (), 5)


@pytest.mark.parametrize("wrap", [nn.DataParallel, torch.compile], ids=["DataParallel", "compiled"])
def test_a_wrapped_network_takes_plain_names(wrap: Callable[[nn.Module], nn.Module]) -> None:
    """C53, C56: here the network has the prefix and the file does not."""
    report = match_checkpoint(wrap(BackboneNet()), values())
    assert (report.fits, len(report.matched), report.missing) == (True, 9, ())


def test_of_several_prefixes_the_one_with_most_matching_shapes_counts() -> None:
    state = under("student.", without(values(), "fc")) | under("teacher.", values()) | {"queue": torch.zeros(7, 3)}
    report = match_checkpoint(BackboneNet(), state)
    assert (report.fits, report.renamed) == (True, ("teacher.",))
    assert report.unexpected == (*(f"student.{name}" for name in NAMES[:7]), "queue")


@pytest.mark.parametrize("first", ["student", "teacher"])
def test_of_prefixes_alike_the_trained_network_counts_and_not_its_average(first: str) -> None:
    second = {"student": "teacher", "teacher": "student"}[first]
    state = under(f"{first}.backbone.", values()) | under(f"{second}.backbone.", values())
    assert match_checkpoint(BackboneNet(), state).renamed == ("student.backbone.",)


@pytest.mark.parametrize("first", ["ema", "model"])
def test_of_a_model_and_its_average_the_model_counts_and_the_verdict_says_so(first: str) -> None:
    second = {"ema": "model", "model": "ema"}[first]
    report = match_checkpoint(BackboneNet(), {first: values(), second: values(), "epoch": 7})
    assert (report.renamed, report.ignored) == (("model",), ("ema", "epoch"))
    assert report.verdict == (
        "The checkpoint fits: 9 values with the network's names and shapes, after taking off 'model'; "
        "left aside: ema, epoch."
    )


def test_a_head_beside_its_backbone_is_found() -> None:
    state = under("encoder.", without(values(), "fc")) | {name: values()[name] for name in ("fc.weight", "fc.bias")}
    report = match_checkpoint(BackboneNet(), state)
    assert (report.fits, report.matched, report.unexpected) == (True, NAMES, ())


def test_another_number_of_classes_fits_and_is_said() -> None:
    report = match_checkpoint(BackboneNet(), under("module.", values(3)))
    assert (report.fits, report.num_classes, report.head) == (True, 3, "fc")
    assert report.wrong_shape == (("fc.weight", (5, 4), (3, 4)), ("fc.bias", (5,), (3,)))
    assert report.matched == NAMES[:7]
    assert report.verdict == (
        "The checkpoint fits: 7 values with the network's names and shapes, after taking off 'module.'; "
        "the head fc gets 3 classes instead of 5."
    )


WRONG_HEADS: dict[str, State] = {
    "weight and bias disagree": {"fc.weight": torch.zeros(3, 4), "fc.bias": torch.zeros(2)},
    "only the weight differs": {"fc.weight": torch.zeros(3, 4)},
    "another width": {"fc.weight": torch.zeros(3, 8), "fc.bias": torch.zeros(3)},
    "no class": {"fc.weight": torch.zeros(0, 4), "fc.bias": torch.zeros(0)},
    "another axis": {"fc.weight": torch.zeros(3, 4, 1, 1), "fc.bias": torch.zeros(3)},
    "not the head": {"conv.weight": torch.zeros(6, 3, 3, 3), "conv.bias": torch.zeros(6)},
}


@pytest.mark.parametrize("kind", WRONG_HEADS)
def test_other_wrong_shapes_do_not_fit(kind: str) -> None:
    report = match_checkpoint(BackboneNet(), values() | WRONG_HEADS[kind])
    assert not report.fits
    assert {name for name, *_ in report.wrong_shape} == set(WRONG_HEADS[kind])


def test_a_whole_head_may_be_missing_and_is_said() -> None:
    report = match_checkpoint(BackboneNet(), under("backbone.", without(values(), "fc")))
    assert (report.fits, report.missing) == (True, ("fc.weight", "fc.bias"))
    assert (report.random_layers, report.num_classes) == (("fc",), None)
    assert report.verdict == (
        "The checkpoint fits: 7 values with the network's names and shapes, after taking off 'backbone.'; "
        "fc stays at a random start, since the file has no values for it."
    )


def test_a_projection_in_the_heads_place_is_said_to_be_unused() -> None:
    state = without(values(), "fc") | {"fc.0.weight": torch.zeros(4, 4), "fc.2.weight": torch.zeros(5, 4)}
    report = match_checkpoint(BackboneNet(), state)
    assert (report.fits, report.random_layers, report.unexpected) == (True, ("fc",), ("fc.0.weight", "fc.2.weight"))
    assert report.verdict.endswith("; 2 other tensors not used (fc.0.weight, fc.2.weight).")


@pytest.mark.parametrize(
    ("missing", "layer"), [("fc.bias", "fc"), ("conv.weight", "conv"), ("norm.running_mean", "norm"), ("conv", "conv")]
)
def test_a_missing_value_does_not_fit_and_its_layer_is_named(missing: str, layer: str) -> None:
    report = match_checkpoint(BackboneNet(), without(values(), missing))
    assert (report.fits, report.random_layers) == (False, (layer,))
    assert report.verdict.endswith(f"; {layer} would stay at a random start.")


def test_missing_counters_change_nothing_and_are_said() -> None:
    report = match_checkpoint(BackboneNet(), without(values(), "norm.num_batches_tracked"))
    assert (report.fits, report.missing, report.random_layers) == (True, ("norm.num_batches_tracked",), ())
    assert report.verdict.endswith("; 1 counter not in the file, which changes no prediction.")


@pytest.mark.parametrize(("extra", "fits"), [("conv.gate.weight", False), ("extra", False), ("conv.total_ops", True)])
def test_unexpected_values_do_not_fit_unless_they_count(extra: str, fits: bool) -> None:
    """Values that the network has no place for were part of what was trained, so it would compute something else."""
    report = match_checkpoint(BackboneNet(), values() | {extra: torch.zeros(1)})
    assert (report.fits, report.unexpected) == (fits, (extra,))


@pytest.mark.parametrize(("dtype", "fits"), [(torch.float16, True), (torch.float64, True), (torch.int8, False)])
def test_integers_are_no_weights(dtype: torch.dtype, fits: bool) -> None:
    report = match_checkpoint(BackboneNet(), values() | {"conv.weight": torch.zeros(4, 3, 3, 3, dtype=dtype)})
    assert report.fits is fits
    assert report.wrong_dtype == (() if fits else (("conv.weight", "float32", "int8"),))


def test_another_networks_checkpoint_is_said_to_be_one() -> None:
    report = match_checkpoint(BackboneNet(), {"stem.weight": torch.zeros(4, 3, 3, 3), "head.bias": torch.zeros(5)})
    assert (report.fits, report.matched, report.missing) == (False, (), NAMES)
    assert report.verdict == ("The checkpoint is of another network: no name and shape in it is one of this network's.")


def test_the_first_differences_of_each_kind_are_named() -> None:
    state = without(values(), "norm", "conv.bias") | {"fc.weight": torch.zeros(3, 4)}
    state |= {f"extra.{number}": torch.zeros(1) for number in range(4)}
    assert match_checkpoint(BackboneNet(), state).verdict == (
        "The checkpoint does not fit: 6 missing (conv.bias, norm.weight, norm.bias, ...); "
        "4 unexpected (extra.0, extra.1, extra.2, ...); "
        "1 of another shape (fc.weight is (3, 4) instead of (5, 4)); conv, norm would stay at a random start."
    )


class TiedNet(nn.Module):
    """One weight under two names, of which safetensors stores one."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.out.weight = self.into.weight


def test_a_tied_weight_is_not_missing() -> None:
    report = match_checkpoint(TiedNet(), {"into.weight": torch.ones(3, 3)})
    assert (report.fits, report.missing, report.matched) == (True, (), ("into.weight", "out.weight"))


OLD_NAMES: list[tuple[str, Callable[[str], str]]] = [
    ("vit_b_32", lambda name: name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2.")),
    (
        "densenet121",
        lambda name: (
            name.replace("norm1", "norm.1")
            .replace("norm2", "norm.2")
            .replace("conv1", "conv.1")
            .replace("conv2", "conv.2")
            if "denselayer" in name
            else name
        ),
    ),
]


@pytest.mark.parametrize(("name", "older"), OLD_NAMES, ids=[name for name, _ in OLD_NAMES])
def test_names_of_torchvisions_own_older_files_are_known(name: str, older: Callable[[str], str]) -> None:
    with torch.device("meta"):
        network = torchvision.models.get_model(name, weights=None)
    state = {older(key): torch.zeros(()).expand(value.shape) for key, value in network.state_dict().items()}
    assert set(state) != set(network.state_dict())
    counters = [key for key in state if key.endswith("num_batches_tracked")]
    report = match_checkpoint(network, {**state, **{key: torch.tensor(0) for key in counters}})
    assert (report.fits, report.missing, report.unexpected) == (True, (), ())


def test_the_state_and_the_network_are_left_as_they_were() -> None:
    """O5: comparing changes nothing."""
    network, state = BackboneNet(), values(3)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    match_checkpoint(network, {"state_dict": state})
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(torch.equal(value, state[name]) for name, value in values(3).items())
