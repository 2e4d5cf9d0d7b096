"""What the page's process holds of freed memory."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator, which is left alone")

_FREED_BY_THREADS = """
import threading
import torch
from hookviz.hooks.warm_memory import BYTES_KEPT_WARM, keep_memory_warm
from hookviz.ui.freed_memory import give_back, resident_bytes

assert keep_memory_warm()
kept, all_there = [], threading.Barrier(4)

def compute():
    values = [torch.ones(2**20) for _ in range(60)]  # 240 MB
    kept.append(torch.ones(100))  # behind them: glibc gives back by itself what is free at a heap's end
    all_there.wait()

before = resident_bytes()
for _ in range(4):
    threading.Thread(target=compute).start()
while len(kept) < 4 or threading.active_count() > 1:
    pass
freed = resident_bytes()
same = give_back(freed)
after = give_back(before)
less = give_back(after + 2**20)
print(freed - before, BYTES_KEPT_WARM, same - freed, after - before, less - after)
"""


def test_freed_memory_of_many_threads_is_given_back_once_it_passes_the_bound() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _FREED_BY_THREADS], capture_output=True, text=True, timeout=120, check=False
    )
    freed, bound, same, after, less = map(int, run.stdout.split())
    assert freed > bound, "glibc gave it back by itself: the test shows nothing"
    assert abs(same) < 2**20, "given back within the bound"
    assert after < 40 * 2**20
    assert less < 2**20, "what is resident without giving back counts where it is less"


def test_an_allocator_that_somebody_tuned_is_left_alone() -> None:
    code = "from hookviz.ui.freed_memory import hold_freed_memory; hold_freed_memory(); print('returned')"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", "MALLOC_ARENA_MAX": "2"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.stdout.split() == ["returned"], run.stderr
