from __future__ import annotations

from dataclasses import replace
from statistics import mean

import pytest
import torch
from torch import Tensor, nn

from hookviz.models import load_model
from scripts.distill_digits import EVERY, LABELLED, Digits, Setting, batches, share_right, split, trained
from scripts.train_simple_cnn import digit_pictures, prepared
from tests.nets import fingerprint, same

ALONE = Setting(lr=1e-3)
HINTED = Setting(lr=3e-3, pairs=EVERY, hint_weight=0.3)


@pytest.fixture(scope="module")
def parts() -> tuple[Digits, Digits, Digits]:
    torch.set_num_threads(1)
    pictures, digits = digit_pictures()
    return split(Digits(prepared(pictures), digits))


@pytest.fixture
def teacher() -> nn.Module:
    torch.set_num_threads(1)
    return load_model("simple_cnn", device="cpu").module


def rows(inputs: Tensor) -> set[bytes]:
    return {one.numpy().tobytes() for one in inputs}


def test_the_three_parts_are_disjoint_and_the_teacher_never_saw_the_reported_one(
    parts: tuple[Digits, Digits, Digits],
) -> None:
    pictures, digits = digit_pictures()
    training, _, reported = parts
    assert [len(part) for part in parts] == [1077, 360, 360]
    assert torch.equal(reported.inputs, prepared(pictures)[::5])
    assert torch.equal(reported.digits, digits[::5])
    assert sum(len(rows(part.inputs)) for part in parts) == len(rows(prepared(pictures)))
    assert len(training.inputs[:LABELLED]) == 60


def test_batches_are_the_same_for_the_same_seed_and_cover_everything() -> None:
    made = batches(10, 5, seed=3)
    first = torch.cat([next(made), next(made)])
    assert sorted(first.tolist()) == list(range(10))
    again = batches(10, 5, seed=3)
    assert torch.equal(torch.cat([next(again), next(again)]), first)


def test_a_few_steps_with_hints_train_the_student_and_leave_the_teacher(
    parts: tuple[Digits, Digits, Digits], teacher: nn.Module
) -> None:
    """C61: the teacher gets no gradient and keeps its state; the student moves away from where it started."""
    before = fingerprint(teacher)
    start = trained(teacher, parts[0], replace(HINTED, steps=0), seed=0)
    student = trained(teacher, parts[0], replace(HINTED, steps=3), seed=0)
    assert same(fingerprint(teacher), before)
    pairs = zip(start.parameters(), student.parameters(), strict=True)
    assert not any(torch.equal(old, new) for old, new in pairs)


def test_both_students_of_a_seed_start_from_the_same_weights(
    parts: tuple[Digits, Digits, Digits], teacher: nn.Module
) -> None:
    alone, hinted = (trained(teacher, parts[0], replace(one, steps=0), seed=4) for one in (ALONE, HINTED))
    assert same(fingerprint(alone), fingerprint(hinted))


@pytest.mark.slow
def test_hints_help_on_digits_that_neither_network_saw(
    parts: tuple[Digits, Digits, Digits], teacher: nn.Module
) -> None:
    """Three seeds of the ten that the script reports: 6.6 points on average, 1.9 the least."""
    gains = [
        share_right(trained(teacher, parts[0], HINTED, seed), parts[2])
        - share_right(trained(teacher, parts[0], ALONE, seed), parts[2])
        for seed in range(3)
    ]
    assert mean(gains) > 3
    assert min(gains) > 0
