"""Does a student learn digits better with hints from the bundled ``simple_cnn``? Prints mean and spread over seeds.

The student is a quarter as wide and sees few labelled pictures; the teacher was trained on all pictures but the
held-out ones (``scripts/train_simple_cnn.py``). Both students of a seed start from the same weights and see the same
batches; one also minimizes the distance to the teacher's two convolutions.

Run it from the top of the repository: ``python -m scripts.distill_digits``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import mean, stdev

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.hooks import Distillation, distill
from hookviz.models import load_model
from scripts.train_simple_cnn import correct, digit_pictures, held_out, prepared

SEEDS = range(5)
LABELLED = 200
EPOCHS = 10
BATCH_SIZE = 20
HINT_WEIGHT = 1.0
PAIRS = [("conv1", "conv1"), ("conv2", "conv2")]


class Student(nn.Module):
    """The teacher's shape with a quarter of its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(4, 8, kernel_size=3, padding=1)
        self.fc = nn.Linear(8 * 8 * 8, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, 10) of images (N, 3, 32, 32)."""
        features = F.max_pool2d(F.relu(self.conv1(images)), 2)
        features = F.max_pool2d(F.relu(self.conv2(features)), 2)
        logits: Tensor = self.fc(features.flatten(1))
        return logits


def train(student: nn.Module, hints: Distillation | None, inputs: Tensor, digits: Tensor, seed: int) -> None:
    """Train with Adam, the hints' loss added where there are hints."""
    trained = [*student.parameters(), *(hints.adapters.parameters() if hints else ())]
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(inputs), generator=order).split(BATCH_SIZE):
            loss = F.cross_entropy(student(inputs[batch]), digits[batch])
            if hints:
                loss = loss + HINT_WEIGHT * hints.loss()
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()


@contextmanager
def hinted(teacher: nn.Module, student: nn.Module, example: Tensor) -> Iterator[Distillation]:
    """Hints with their adapters made."""
    with distill(teacher, student, PAIRS) as hints:
        hints.prepare(example)
        yield hints


def main() -> None:
    """Train both students for each seed, and print how many held-out digits they name rightly."""
    torch.set_num_threads(1)  # tensors are so small that threads would only wait for each other
    pictures, digits = digit_pictures()
    inputs, unseen = prepared(pictures), held_out(len(digits))
    few, few_digits = inputs[~unseen][:LABELLED], digits[~unseen][:LABELLED]
    teacher = load_model("simple_cnn", device="cpu").module
    shares: dict[str, list[float]] = {"without hints": [], "with hints": []}
    for seed in SEEDS:
        torch.manual_seed(seed)
        alone = Student()
        taught = Student()
        taught.load_state_dict(alone.state_dict())
        train(alone, None, few, few_digits, seed)
        with hinted(teacher, taught, few[:1]) as hints:
            train(taught, hints, few, few_digits, seed)
        for name, student in zip(shares, (alone, taught), strict=True):
            shares[name].append(100 * correct(student, inputs[unseen], digits[unseen]) / int(unseen.sum()))
    for name, found in shares.items():
        print(f"{name}: {mean(found):.1f} % of the held-out digits right, standard deviation {stdev(found):.1f}")
    gains = [after - before for before, after in zip(*shares.values(), strict=True)]
    print(f"gain per seed: {', '.join(f'{gain:+.1f}' for gain in gains)}")


if __name__ == "__main__":
    main()
