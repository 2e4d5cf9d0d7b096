from __future__ import annotations

import threading
import time

import pytest

from hookviz.ui.shelf import Shelf


class Rerun(BaseException):
    """As Streamlit's own: no Exception."""


def shelf_of(bound: int) -> Shelf[bytes]:
    return Shelf(bound, len)


def test_least_recently_used_goes_first() -> None:
    """C76: what was looked at last stays."""
    shelf = shelf_of(30)
    for key in "abc":
        shelf.put(key, bytes(10))
    assert shelf.find("a") == bytes(10)
    shelf.put("d", bytes(10))
    assert [key for key in "abcd" if shelf.find(key) is not None] == ["a", "c", "d"]


def test_total_never_exceeds_the_bound() -> None:
    """C75: however much is put in."""
    shelf = shelf_of(100)
    for size in range(60):
        shelf.put(size, bytes(size))
        assert shelf.total <= 100
    assert shelf.total == 59


def test_value_replaced_counts_once() -> None:
    shelf = shelf_of(100)
    shelf.put("a", bytes(60))
    shelf.put("a", bytes(70))
    assert shelf.total == 70


def test_value_larger_than_the_bound_is_given_but_not_kept_and_pushes_nothing_out() -> None:
    shelf = shelf_of(100)
    shelf.put("small", bytes(40))
    assert shelf.get("large", lambda: bytes(101)) == bytes(101)
    assert shelf.find("large") is None
    assert shelf.find("small") == bytes(40)


def test_value_is_made_once_for_all_who_ask_at_once() -> None:
    shelf, made = shelf_of(100), []

    def make() -> bytes:
        made.append(threading.get_ident())
        time.sleep(0.05)
        return b"value"

    values: list[bytes] = []
    threads = [threading.Thread(target=lambda: values.append(shelf.get("key", make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert values == [b"value"] * 8
    assert len(made) == 1


def test_slow_value_keeps_nobody_from_another_one() -> None:
    shelf, release = shelf_of(100), threading.Event()

    def make_slowly() -> bytes:
        release.wait(10)
        return b"slow"

    slow = threading.Thread(target=shelf.get, args=("slow", make_slowly))
    slow.start()
    began = time.monotonic()
    assert shelf.get("quick", lambda: b"quick") == b"quick"
    assert time.monotonic() - began < 5
    release.set()
    slow.join(10)
    assert shelf.find("slow") == b"slow"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Rerun])
def test_making_that_fails_leaves_no_lock_held(error: type[BaseException]) -> None:
    """C23: Streamlit stops a script by an exception that is no Exception."""

    def fail() -> bytes:
        raise error

    shelf = shelf_of(100)
    with pytest.raises(error):
        shelf.get("key", fail)
    values: list[bytes] = []
    other = threading.Thread(target=lambda: values.append(shelf.get("key", lambda: b"value")), daemon=True)
    other.start()
    other.join(10)
    assert values == [b"value"]


def test_locks_do_not_pile_up() -> None:
    shelf = shelf_of(1)
    for key in range(100):
        shelf.get(key, lambda: b"")
    with pytest.raises(Rerun):
        shelf.get("failed", lambda: (_ for _ in ()).throw(Rerun()))
    assert len(shelf._making) == 0
