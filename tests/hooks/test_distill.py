from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.errors import AmbiguousCallError, GradientError, HookvizError, UnknownLayerError
from hookviz.hooks.distill import End, Feature, distill
from tests.nets import CheckpointNet, ReusedReLUNet, fingerprint, same


def teacher_net() -> nn.Sequential:
    """BatchNorm and Dropout in train mode, and a ReLU that overwrites what comes before it."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Conv2d(6, 5, 3)
    )


def student_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(inplace=True), nn.Conv2d(4, 5, 1))


@pytest.fixture(autouse=True)
def seeded() -> None:
    """So that no ReLU of these tiny networks happens to be dead."""
    torch.manual_seed(36)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def gradients(net: nn.Module) -> dict[str, Any]:
    return {name: one.grad for name, one in net.named_parameters()}


def features(teacher: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """The teacher's values by hand: a copy in eval mode, run layer by layer, each value copied."""
    twin, values = copy.deepcopy(teacher).eval(), {}
    with torch.no_grad():
        for name, layer in twin.named_children():
            x = layer(x)
            values[name] = x.clone()
    return values


def test_one_step_equals_the_step_written_by_hand() -> None:
    """C61, C01: values before the in-place ReLUs on both sides, an adapter for 4 to 6 channels, pooling 8 to 3."""
    teacher, student, x = teacher_net(), student_net(), picture(2, 3, 8, 8)
    teacher.train()
    before = fingerprint(teacher)
    other = copy.deepcopy(student)
    with distill(teacher, student, [("1", "0"), ("4", "2")]) as hints:
        hints.prepare(x)
        assert [str(one) for one in hints.adapters.values()] == [str(nn.Conv2d(4, 6, 1))]
        out = student(x)
        (out.square().mean() + 0.5 * hints.loss()).backward()
    adapter = copy.deepcopy(hints.adapters["0"])
    adapter.zero_grad()
    targets = features(teacher, x)
    y = other[0](x)
    z = other[2](F.relu(y))
    first = F.mse_loss(adapter(y), F.adaptive_avg_pool2d(targets["1"], (3, 3)))
    second = F.mse_loss(z, F.adaptive_avg_pool2d(targets["4"], (3, 3)))
    (z.square().mean() + 0.5 * (first + second)).backward()
    torch.testing.assert_close(gradients(student), gradients(other), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(gradients(hints.adapters["0"]), gradients(adapter), rtol=1e-6, atol=1e-7)
    assert all(one.abs().max() > 0 for one in gradients(student).values())
    assert targets["1"].min() < 0
    assert same(before, fingerprint(teacher))
    assert all(one.grad is None for one in teacher.parameters())


def test_a_single_feature_gives_the_same_bits() -> None:
    """C61: where the arithmetic is the same, so is the result."""
    teacher, student, x = student_net(), student_net(), picture(2, 3, 8, 8)
    other = copy.deepcopy(student)
    with distill(teacher, student, [("0", "0")]) as hints:
        student(x)
        hints.loss().backward()
    F.mse_loss(other[0](x), features(teacher, x)["0"]).backward()
    assert same(gradients(student), gradients(other))
    assert len(hints.adapters) == 0


def test_an_end_may_be_an_input_or_one_call_of_a_reused_layer() -> None:
    """C02"""
    teacher, student, x = ReusedReLUNet(), ReusedReLUNet(), picture(5, 4)
    other = copy.deepcopy(student)
    pairs: list[tuple[End, End]] = [
        (Feature("relu", call=1), Feature("relu", call=-1)),
        ("first", Feature("relu", side="input", call=0)),
    ]
    with distill(teacher, student, pairs) as hints:
        student(x)
        losses = hints.losses()
        sum(losses, torch.zeros(())).backward()
    with torch.no_grad():
        targets = teacher(x), teacher.first(x)
    hidden = other.first(x)
    expected = F.mse_loss(F.relu(other.second(F.relu(hidden))), targets[0]), F.mse_loss(hidden, targets[1])
    assert same(tuple(one.detach() for one in losses), tuple(one.detach() for one in expected))
    (expected[0] + expected[1]).backward()
    torch.testing.assert_close(gradients(student), gradients(other))


@pytest.mark.parametrize("loss", ["mse", "cosine", "attention"])
def test_losses_equal_their_formulas(loss: Any) -> None:
    teacher, student, x = student_net().double(), student_net().double(), picture(2, 3, 8, 8).double()
    with distill(teacher, student, [("0", "0")], loss=loss) as hints:
        student(x)
        value = hints.loss()
    s, t = student[0](x), features(teacher, x)["0"]
    maps = [(one**2).mean(1).reshape(2, -1) for one in (s, t)]
    q = [one / (one**2).sum(1, keepdim=True).sqrt() for one in maps]
    cosine = (s * t).sum(1) / ((s**2).sum(1).sqrt() * (t**2).sum(1).sqrt())
    expected = {"mse": ((s - t) ** 2).mean(), "cosine": 1 - cosine.mean(), "attention": ((q[0] - q[1]) ** 2).mean()}
    torch.testing.assert_close(value, expected[loss], rtol=1e-12, atol=1e-14)


def test_attention_needs_no_adapters() -> None:
    teacher, student, x = teacher_net(), student_net(), picture(2, 3, 8, 8)
    with distill(teacher, student, [("1", "0")], loss="attention") as hints:
        student(x)
        hints.loss().backward()
    assert len(hints.adapters) == 0
    assert gradients(student)["0.weight"].abs().max() > 0


def test_each_run_replaces_the_one_before() -> None:
    """C43"""
    teacher, student = student_net(), student_net()
    a, b = picture(1, 3, 8, 8), picture(1, 3, 8, 8) * 2
    with distill(teacher, student, [("2", "2")]) as hints:
        student(a)
        first = hints.loss().detach()
        student(b)
        assert not torch.equal(hints.loss(), first)
        student(a)
        assert torch.equal(hints.loss(), first)
        assert torch.equal(hints.teacher_output, teacher(a))


def test_the_student_computes_what_it_would_without_hints() -> None:
    student, x = student_net(), picture(2, 3, 8, 8)
    expected = student(x)
    with distill(teacher_net(), student, [("1", "0")]):
        assert torch.equal(student(x), expected)


def test_a_network_can_teach_itself() -> None:
    net, x = student_net(), picture(1, 3, 8, 8)
    with distill(net, net, [("2", "2")]) as hints:
        net(x)
        assert hints.loss().item() == 0


@pytest.mark.parametrize(
    ("teacher_name", "pairs"),
    [
        ("resnet18", [("bn1", "conv1"), ("layer2", "conv2"), ("fc", "fc2")]),
        ("mobilenet_v2", [("features.0.1", "conv1"), ("classifier", "fc2")]),
    ],
)
def test_real_teachers_of_the_teaching_network(teacher_name: str, pairs: list[tuple[str, str]]) -> None:
    teacher = hookviz.load_model(teacher_name, weights=None, device="cpu").module.train()
    student, x = hookviz.load_model("simple_cnn").module, picture(2, 3, 32, 32)
    before = fingerprint(teacher), fingerprint(student)["attributes"], torch.get_rng_state()
    with distill(teacher, student, pairs) as hints:
        student(x)
        assert torch.equal(torch.get_rng_state(), before[2])
        hints.loss().backward()
        assert sorted(hints.adapters) == [str(number) for number in range(len(pairs))]
    assert same(before[:2], (fingerprint(teacher), fingerprint(student)["attributes"]))
    assert all(one.abs().max() > 0 for one in gradients(student).values())


def test_undone_after_an_error_in_the_middle() -> None:
    teacher, student = teacher_net(), student_net()
    before = fingerprint(teacher), fingerprint(student)
    with pytest.raises(KeyboardInterrupt), distill(teacher, student, [("1", "0")]):
        student(picture(1, 3, 8, 8))
        raise KeyboardInterrupt
    with pytest.raises(RuntimeError), distill(teacher, student, [("1", "0")]):
        student(picture(1, 7, 8, 8))
    assert same(before, (fingerprint(teacher), fingerprint(student)))


def test_what_cannot_be_compared_is_refused_in_a_sentence() -> None:
    teacher, student, x = teacher_net(), student_net(), picture(1, 3, 8, 8)
    with pytest.raises(UnknownLayerError), distill(teacher, student, [("9", "0")]):
        pass
    with distill(teacher, student, [("1", "0")], adapt="none") as hints:
        with pytest.raises(HookvizError, match="run the student"):
            hints.loss()
        student(x)
        with pytest.raises(HookvizError, match=r"\(1, 4, 3, 3\) cannot be compared with the teacher's \(1, 6, 3, 3\)"):
            hints.loss()
    with distill(ReusedReLUNet(), net := ReusedReLUNet(), [("first", "relu")]) as hints:
        net(picture(1, 4))
        with pytest.raises(AmbiguousCallError, match="ran 2 times"):
            hints.loss()


def test_features_without_a_graph_are_refused() -> None:
    """C61: a student whose features are detached learns nothing, silently."""
    student = CheckpointNet(reentrant=True)
    with distill(CheckpointNet(reentrant=None), student, [("block", "block")]) as hints:
        student(picture(2, 3).requires_grad_())
        with pytest.raises(GradientError, match="without gradients"):
            hints.loss()
