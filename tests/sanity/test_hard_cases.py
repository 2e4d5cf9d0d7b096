"""Networks that other tools stumble over, checked."""

from __future__ import annotations

import copy
import json
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

from hookviz import Finding, HookvizError, Report, Thresholds, check, load_model, load_sample
from tests.nets import CheckpointNet, DictOutputNet, FifthFailsNet, ResidualInplaceNet


def images(count: int = 1, size: int = 12) -> Tensor:
    return torch.randn(count, 3, size, size, generator=torch.Generator().manual_seed(0))


def kinds(report: Report, *severities: str) -> set[str]:
    return {one.kind for one in report.findings if one.severity in (severities or ("error", "warning", "note"))}


def of_kind(report: Report, kind: str) -> Finding:
    (one,) = [one for one in report.findings if one.kind == kind]
    return one


def fingerprint(module: nn.Module) -> tuple[object, ...]:
    """Everything that a check must leave as it was."""
    tensors = [(name, one.clone()) for name, one in (*module.named_parameters(), *module.named_buffers())]
    return (
        [(name, value.nan_to_num().sum().item(), value.shape) for name, value in tensors],
        [one.training for one in module.modules()],
        [(one.requires_grad, one.grad is None) for one in module.parameters()],
        [len(one._forward_hooks) + len(one._forward_pre_hooks) + len(one._backward_hooks) for one in module.modules()],
        torch.get_rng_state().sum().item(),
        torch.is_grad_enabled(),
    )


class Makes(nn.Module):
    """Returns what a function makes of its input."""

    def __init__(self, make: object) -> None:
        super().__init__()
        self.make = make

    def forward(self, x: Tensor) -> object:
        return self.make(x)  # type: ignore[operator]


def test_a_network_in_train_mode_is_left_as_it_was_found() -> None:
    """C20: batch norm's statistics, flags, gradients, hooks and the random state, though dropout draws from it."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.LazyLinear(10))
    network(images(2))
    before = fingerprint(network)
    report = check(network, list(images(3)), against=None)
    assert fingerprint(network) == before
    assert {"batch_norm_in_train_mode", "dropout_on"} <= kinds(report, "warning")
    assert of_kind(report, "dropout_on").layers == ("2",)
    assert [one.summary for one in check(network, list(images(3)), against=None).layers] == [
        one.summary for one in report.layers
    ]


def test_values_that_are_not_finite_are_counted_and_named_where_they_begin() -> None:
    """C13: 1 NaN, 1 +Inf, 1 -Inf among finite values; the layers behind are not blamed."""
    values = torch.tensor([[[[1, 2, math.nan, math.inf, -math.inf, 3.0]]]])
    network = nn.Sequential(nn.Identity(), Makes(lambda x: x * 0 + values), nn.ReLU())
    report = check(network, torch.zeros(1, 1, 1, 6), against=None)
    (row,) = [one for one in report.layers if one.layer == "1"]
    assert (row.summary.nan, row.summary.posinf, row.summary.neginf) == (1, 1, 1)
    assert (row.summary.mean, row.summary.min, row.summary.max) == (2.0, 1.0, 3.0)
    one = of_kind(report, "nonfinite")
    assert one.layers == ("1",)
    assert "1 NaN, 1 +Inf, 1 −Inf" in one.what


def test_all_nan_has_no_statistics_and_strict_json() -> None:
    """C13: no finite value at all."""
    report = check(nn.Sequential(Makes(lambda x: x * math.nan)), images(), against=None)
    assert report.layers[0].summary.mean is None
    assert report.layers[0].summary.nan == 3 * 12 * 12
    json.dumps(report.as_dict(), allow_nan=False)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_are_checked_in_their_own(dtype: torch.dtype) -> None:
    """C29, C33: the dtype shown is the real one, the sums are float64's."""
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).to(dtype).eval()
    with torch.no_grad():
        by_hand = network[0](images().to(dtype)).double()
    report = check(network, images(), against=None)
    assert report.layers[0].summary.dtype == str(dtype).removeprefix("torch.")
    assert report.layers[0].summary.mean == pytest.approx(float(by_hand.mean()), rel=1e-12)
    assert report.layers[0].summary.std == pytest.approx(float(by_hand.std(correction=0)), rel=1e-12)
    assert "nonfinite" not in kinds(report)


@pytest.mark.parametrize(
    ("make", "mean"),
    [
        (lambda x: (x > -99).to(torch.uint8) * 255, 255.0),  # C31: sums that wrap in uint8
        (lambda x: (x > -99).to(torch.int8) * -128, -128.0),
        (lambda x: x > -99, 1.0),
        (lambda x: torch.complex(x * 0 + 3, x * 0 + 4), 5.0),  # C30: magnitudes
        (lambda x: torch.quantize_per_tensor(x * 0 + 2.0, 0.5, 0, torch.quint8), 2.0),
        (lambda x: (x * 0 + 7).to_sparse(), None),
    ],
)
def test_outputs_of_every_kind_are_summarized(make: object, mean: float | None) -> None:
    """C30, C31."""
    report = check(nn.Sequential(Makes(make)), images(), against=None)
    (row,) = report.layers
    assert row.summary.count == 3 * 12 * 12
    assert row.summary.mean == (7.0 if mean is None else mean)


def test_empty_outputs_count_nothing() -> None:
    """C34."""
    report = check(nn.Sequential(Makes(lambda x: x[:, :0])), images(), against=None)
    assert report.layers[0].summary.count == 0
    assert report.layers[0].summary.mean is None
    assert report.layers[0].channels is None


def test_one_value_per_channel_is_neither_dead_nor_constant() -> None:
    """C32: maps of 1 x 1."""
    report = check(nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.ReLU()), images() - 99, against=None)
    assert report.layers[1].summary.std == 0.0
    assert (report.layers[1].dead, report.layers[1].constant) == (None, None)
    assert not kinds(report) & {"dead_layer", "dead_channels", "constant_channels"}


def test_a_forward_that_fails_names_the_layer_and_the_weights_are_checked_all_the_same() -> None:
    """C65."""
    network = FifthFailsNet()
    network[0].weight.data.view(-1)[0] = math.nan  # type: ignore[operator]
    try:
        network(torch.zeros(1, 4))
        pytest.fail("the network was to fail")
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
    report = check(network.eval(), [torch.zeros(1, 4)], against=None)
    one = of_kind(report, "forward_failed")
    assert one.layers == ("4",)
    assert reason.split(" (")[0].rstrip(".") in one.what
    assert of_kind(report, "nonfinite_parameter").layers == ("0",)
    assert (report.images, report.layers) == ((), ())
    assert len(report.unreadable) == 1


def test_batch_norm_on_one_value_in_train_mode_is_said_and_checked_in_eval_mode() -> None:
    """C82: torch refuses; its own words and the layer's name are shown."""
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(3, 4))
    report = check(network, images(), against=None)
    one = of_kind(report, "forward_failed")
    assert "train mode" in one.what
    assert "Expected more than 1 value per channel" in one.what
    assert one.layers == ("1",)
    assert [row.layer for row in report.layers] == ["0", "1", "2", "3"]
    assert of_kind(report, "batch_norm_in_train_mode").layers == ("1",)


def test_unused_parameters_and_layers_never_called_are_told_from_used_ones() -> None:
    """C48."""

    class Partly(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(4, 4)
            self.never = nn.Linear(4, 4)
            self.spare = nn.Parameter(torch.ones(3))
            self.frozen = nn.Linear(4, 4).requires_grad_(requires_grad=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.frozen(self.used(x))  # type: ignore[no-any-return]

    report = check(Partly().eval(), [torch.ones(1, 4)], against=None)
    assert of_kind(report, "never_called").layers == ("never",)
    assert "`spare`" in of_kind(report, "unused_parameter").what
    assert of_kind(report, "unused_parameter").amount == 1


def test_pruned_layers_are_notes_and_survive_copying() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    prune.ln_structured(network[0], "weight", 0.5, n=2, dim=0)
    report = check(network, images(), against=None)
    one = of_kind(report, "pruned")
    assert (one.severity, one.layers, one.amount) == ("note", ("0",), 0.5)
    assert len(one.channels) == 4


@pytest.mark.parametrize(
    ("network", "image"),
    [
        (ResidualInplaceNet(), torch.randn(1, 3, 12, 12)),
        (CheckpointNet(reentrant=True), torch.randn(1, 3)),
        (CheckpointNet(reentrant=False), torch.randn(1, 3)),
        (DictOutputNet(), torch.randn(1, 3)),
    ],
)
def test_networks_of_unusual_structure_are_checked(network: nn.Module, image: Tensor) -> None:
    report = check(network.eval(), [image])
    assert not report.unreadable
    assert report.layers
    assert "forward_failed" not in kinds(report)


def test_an_untrained_network_is_called_untrained_once() -> None:
    for name, image in (("simple_cnn", "digit_3"), ("resnet18", "grace_hopper"), ("timm/resnet10t", "grace_hopper")):
        report = check(load_model(name, None, "cpu"), load_sample(image), against=None)
        assert kinds(report, "error", "warning") == {"untrained"}
        assert "is untrained" in of_kind(report, "untrained").what


def test_thresholds_are_adjustable_and_checked() -> None:
    image = load_sample("digit_3")
    strict = check("simple_cnn", image, device="cpu", against=None, thresholds=Thresholds(gain=1.2))
    assert {one.layers for one in strict.findings if one.kind == "exploding_scale"} >= {("conv1",), ("conv2",)}
    with pytest.raises(HookvizError, match="gain must be above 0"):
        Thresholds(gain=0)


def test_two_networks_can_be_compared_and_a_copy_is_the_same() -> None:
    model = load_model("simple_cnn", device="cpu")
    same = check(model, load_sample("digit_3"), against=copy.deepcopy(model.module)).compared
    assert same is not None
    assert [one.cka for one in same.layers if one.cka is not None] == pytest.approx([1.0] * 3)
    assert [one.scale for one in same.layers] == pytest.approx([1.0] * len(same.layers))


def test_labels_that_name_no_class_are_said() -> None:
    report = check("simple_cnn", [load_sample("digit_3"), load_sample("digit_8")], device="cpu", labels=["3", "eleven"])
    one = of_kind(report, "unknown_labels")
    assert "'eleven'" in one.what
    assert [answer.rank for answer in report.answers] == [1, None]


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (7, None, "int is no image"),
        ("nowhere.png", None, "There is no file or folder nowhere.png"),
        ([], None, "no images"),
        (torch.zeros(2, 3, 4, 4), ["1"], "one label for each"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_sentence(images: object, labels: object, words: str) -> None:
    with pytest.raises(HookvizError, match=words):
        check("simple_cnn", images, labels=labels)  # type: ignore[arg-type]


def test_something_else_than_a_network_is_refused() -> None:
    with pytest.raises(HookvizError, match="list is no network"):
        check([], load_sample("digit_3"))  # type: ignore[arg-type]
