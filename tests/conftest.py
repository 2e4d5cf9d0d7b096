from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def threads_as_found() -> Iterator[None]:
    """Leave torch's threads as they were: convolutions round differently with another number of them."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def one_thread(threads_as_found: None) -> None:
    """Compute with one thread: other tests share the machine, and more would get into each other's way."""
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Give every test the same networks and images, whichever tests ran before it."""
    torch.manual_seed(0)
