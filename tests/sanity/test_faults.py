"""Planted faults, each to be named in words at the right layer, on three networks.

What a fault must be called is written down by hand. A fault that changes nothing is not in the table: grey digits are
the same in BGR, and a square picture is the same squashed; a network without batch norm has none in train mode.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import functional as transforms

from hookviz import Finding, Model, Report, check
from scripts import train_digits_resnet
from tests.sanity import networks
from tests.sanity.networks import Known


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits")
    train_digits_resnet.main(folder)
    return folder / train_digits_resnet.WEIGHTS_FILE


@pytest.fixture(
    params=[
        pytest.param("lite0", marks=pytest.mark.slow),  # each test takes seconds; ``ON_BOTH`` has it run always
        "teaching",
        pytest.param("digits", marks=pytest.mark.slow),  # a minute of training
    ]
)
def known(request: pytest.FixtureRequest) -> Known:
    if request.param == "digits":
        return networks.digits_resnet(request.getfixturevalue("checkpoint"))
    return {"lite0": networks.lite0, "teaching": networks.teaching}[request.param]()


ON_BOTH = pytest.mark.parametrize(
    "known", ["lite0", "teaching", pytest.param("digits", marks=pytest.mark.slow)], indirect=True
)


def found(report: Report, kind: str) -> Finding:
    """The one finding of a kind, which must be there."""
    some = [one for one in report.findings if one.kind == kind]
    assert len(some) == 1, f"{kind} not in {[one.kind for one in report.findings]}"
    return some[0]


def unit(model: Model, image: Image.Image) -> Tensor:
    """What the network sees of an image, from 0 to 1, (3, H, W)."""
    values: Tensor = transforms.to_tensor(model.view(image))
    return values


def normalised(model: Model, values: Tensor) -> Tensor:
    made: Tensor = transforms.normalize(values, *model.normalization)
    return made


def squashed(model: Model, image: Image.Image) -> Tensor:
    size = model.view(image).size
    return normalised(model, transforms.to_tensor(image.resize(size, Image.Resampling.BICUBIC)))


INPUTS: dict[str, tuple[Callable[[Model, Image.Image], Tensor], str, str]] = {
    "no normalisation": (unit, "input_not_normalised", "not normalised"),
    "normalised twice": (
        lambda model, image: normalised(model, normalised(model, unit(model, image))),
        "input_normalised_twice",
        "normalised twice",
    ),
    "0..255": (lambda model, image: unit(model, image) * 255, "input_in_0_255", "0 to 255"),
    "BGR": (lambda model, image: normalised(model, unit(model, image).flip(0)), "input_bgr", "BGR"),
    "squashed": (squashed, "input_squashed", "squashed"),
    "squashed and BGR": (
        lambda model, image: (
            squashed(model, image).flip(0)
            if model.normalization[0][0] == model.normalization[0][2]
            else normalised(model, transforms.to_tensor(image.resize(model.view(image).size)).flip(0))
        ),
        "input_bgr_squashed",
        "BGR and squashed",
    ),
}


@ON_BOTH
@pytest.mark.parametrize("mistake", INPUTS)
def test_an_input_prepared_wrongly_is_named(known: Known, mistake: str) -> None:
    if ("BGR" in mistake and known.is_grey) or ("squashed" in mistake and known.is_square):
        pytest.skip("changes nothing on these images")
    model = known.load()
    wrong, kind, words = INPUTS[mistake]
    report = check(model, list(known.images), prepare=lambda image: wrong(model, image), against=None)
    one = found(report, kind)
    assert one.severity == "warning"
    assert words in one.what
    assert [other.kind for other in report.findings if other.area == "input"] == [kind]


@pytest.mark.parametrize("mistake", ["no normalisation", "normalised twice", "0..255"])
def test_a_prepared_tensor_tells_by_its_values(known: Known, mistake: str) -> None:
    model = known.load()
    wrong, kind, words = INPUTS[mistake]
    tensors = [wrong(model, image).unsqueeze(0) for image in known.images]
    assert words in found(check(model, tensors, against=None), kind).what


@ON_BOTH
def test_the_right_preparation_raises_no_alarm(known: Known) -> None:
    model = known.load()
    for report in (
        check(model, list(known.images), prepare=lambda image: normalised(model, unit(model, image)), against=None),
        check(model, [model.prepare(image) for image in known.images], against=None),
    ):
        assert [one for one in report.findings if one.area == "input"] == []


@ON_BOTH
def test_a_nan_weight_is_named_with_its_layer_and_where_it_shows(known: Known) -> None:
    model = known.load()
    networks.layer(model, known.inner).weight.data.view(-1)[5] = float("nan")
    report = check(model, list(known.images), against=None)
    in_weights, in_forward = found(report, "nonfinite_parameter"), found(report, "nonfinite")
    assert in_weights.layers == in_forward.layers == (known.inner,)
    assert in_weights.severity == in_forward.severity == "error"
    assert f"`weight` of `{known.inner}` holds 1 value" in in_weights.what
    assert f"`{known.inner}` is the first" in in_forward.what
    assert "`weight`" in in_forward.what or f"`{known.inner}.weight`" in in_forward.what


def test_an_overflow_in_half_precision_is_named_at_the_layer_that_makes_it(known: Known) -> None:
    model = known.load()
    model.module.half()
    networks.layer(model, known.inner).weight.data.mul_(20_000).clamp_(-60_000, 60_000)
    with torch.no_grad():  # by torch alone: the layer's own output is infinite, its input is not
        seen: list[tuple[bool, bool]] = []
        handle = networks.layer(model, known.inner).register_forward_hook(
            lambda _, args, output: seen.append((bool(args[0].isfinite().all()), bool(output.isinf().any())))
        )
        model.module(model.prepare(known.images[0]).half())
        handle.remove()
    assert seen == [(True, True)]
    one = found(check(model, list(known.images), against=None), "nonfinite")
    assert one.layers == (known.inner,)
    assert "half precision" in one.what
    assert "Inf" in one.what


def test_a_layer_without_weights_is_named(known: Known) -> None:
    model = known.load()
    inner = networks.layer(model, known.inner)
    inner.weight.data.zero_()
    if inner.bias is not None:
        inner.bias.data.zero_()
    report = check(model, list(known.images), against=None)
    assert found(report, "zero_layer").layers == (known.inner,)
    assert found(report, "dead_layer").layers[0] == known.inner
    assert f"`{known.inner}` is dead" in found(report, "dead_layer").what


def test_a_layer_that_its_bias_switches_off_is_named(known: Known) -> None:
    """No weight is wrong, and every value is negative: the rectifier behind it gives only zeros."""
    model = known.load()
    inner = networks.layer(model, known.inner)
    if inner.bias is None:  # the batch norm behind it has the bias
        name = {"blocks.2.0.conv_pwl": "blocks.2.0.bn2", "layer2.0.conv1": "layer2.0.bn1"}[known.inner]
        norm = model.module.get_submodule(name)
        assert isinstance(norm, nn.BatchNorm2d)
        norm.bias.data.fill_(-1e4)
    else:
        name = known.inner
        inner.bias.data.fill_(-1e4)
    report = check(model, list(known.images), against=None)
    errors = [one for one in report.findings if one.severity == "error"]
    assert errors
    assert any(layer == name or layer.startswith(f"{name}.") for one in errors for layer in one.layers)


def test_a_layer_that_was_never_loaded_is_named(known: Known) -> None:
    model = known.load()
    with torch.random.fork_rng():
        torch.manual_seed(3)
        networks.layer(model, known.inner).reset_parameters()
    one = found(check(model, list(known.images), against=None), "never_loaded")
    assert one.layers == (known.inner,)
    assert one.what.startswith(f"`{known.inner}` was never trained or loaded")


def test_a_head_of_the_architecture_s_own_initial_values_is_named(known: Known) -> None:
    model = known.load()
    head = networks.layer(model, known.head)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        head.reset_parameters()
    assert found(check(model, list(known.images), against=None), "never_loaded").layers == (known.head,)


def test_a_layer_scaled_by_a_thousand_is_named(known: Known) -> None:
    model = known.load()
    networks.layer(model, known.inner).weight.data.mul_(1000)
    one = found(check(model, list(known.images), against=None), "exploding_scale")
    assert one.layers == (known.inner,)
    assert one.severity == "warning"


@ON_BOTH
def test_batch_norms_in_train_mode_are_named(known: Known) -> None:
    model = known.load()
    norms = [name for name, one in model.module.named_modules() if isinstance(one, nn.BatchNorm2d)]
    if not norms:
        pytest.skip("has no batch norm")
    some = norms[2:4]
    for name in some:
        model.module.get_submodule(name).train()
    one = found(check(model, list(known.images), against=None), "batch_norm_in_train_mode")
    assert list(one.layers) == some
    assert all(f"`{name}`" in one.what for name in some)


def test_zeroed_filters_are_named_with_their_numbers(known: Known) -> None:
    model = known.load()
    weight = networks.layer(model, known.inner).weight
    rows = list(range(1, len(weight), 4))
    weight.data[rows] = 0
    one = next(one for one in check(model, list(known.images), against=None).findings if one.kind == "zero_filters")
    assert one.severity == "warning"
    assert one.layers == (known.inner,)
    assert set(rows[:100]) <= set(one.channels)


def test_a_shuffled_head_is_named_where_images_have_labels(known: Known) -> None:
    model = known.load()
    head = networks.layer(model, known.head)
    order = torch.roll(torch.arange(len(head.weight)), 1)
    head.weight.data, head.bias.data = head.weight.data[order], head.bias.data[order]  # type: ignore[union-attr]
    one = found(check(model, list(known.images), labels=known.labels, against=None), "wrong_labels")
    assert one.layers == (known.head,)
    assert "another order" in one.why


def test_the_right_head_is_not_suspected(known: Known) -> None:
    report = check(known.load(), list(known.images), labels=known.labels, against=None)
    assert not any(one.area == "answer" and one.severity != "note" for one in report.findings)
    assert all(one.rank is not None for one in report.answers)


@ON_BOTH
def test_stock_networks_give_notes_at_most(known: Known) -> None:
    report = check(known.load(), list(known.images))
    assert {one.severity for one in report.findings} <= {"note"}, str(report)
    assert report.compared is not None
    assert report.compared.layers[0].layer == known.first
