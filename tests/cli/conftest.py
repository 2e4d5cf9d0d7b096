from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.models.conftest import torch_home

__all__ = ["interrupts_are_heeded", "torch_home"]


@pytest.fixture(autouse=True)
def interrupts_are_heeded() -> Iterator[None]:
    """Jobs in the background ignore SIGINT, and hand that down to what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
