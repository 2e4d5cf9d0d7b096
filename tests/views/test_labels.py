from __future__ import annotations

import pytest

from hookviz.views import number, value_range, value_text
from hookviz.views.labels import fitting_range, numbers_of


@pytest.mark.parametrize(
    ("value", "text"),
    [(-24.534, "−24.53"), (1e-6, "1e−6"), (3e38, "3e38"), (1e-45, "1e−45"), (-0.0, "0"), (100000, "1e5"), (7, "7")],
)
def test_numbers_have_four_digits_and_a_true_minus(value: float, text: str) -> None:
    assert number(value) == text


def test_infinities_are_named() -> None:
    assert number(float("-inf")) == "−inf"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(1, 3, "1 … 3"), (7, 7, "constant 7"), (float("nan"), float("nan"), "no finite values")],
)
def test_a_range_says_when_it_is_none(low: float, high: float, text: str) -> None:
    """C14: the label of a constant channel is its value."""
    assert value_range(low, high) == text


@pytest.mark.parametrize(
    ("characters", "text"), [(20, "−1.23e−6 … 4.57e−6"), (16, "−1.2e−6 … 4.6e−6"), (5, "−1e−6 … 5e−6")]
)
def test_a_range_loses_digits_until_it_fits(characters: int, text: str) -> None:
    assert fitting_range(-1.234e-6, 4.567e-6, characters) == text


@pytest.mark.parametrize(
    ("dtype", "shows", "text"),
    [
        ("int64", "value", "−12,345"),
        ("uint8", "value", "−12,345"),
        ("quint8", "stored integer", "−12,345"),
        ("float32", "value", "−1.234e4"),
        ("quint8", "dequantized value", "−1.234e4"),
    ],
)
def test_integers_have_every_digit(dtype: str, shows: str, text: str) -> None:
    """C31: a class index or a count has no power of ten."""
    assert value_text(-12345, numbers_of(dtype, shows)) == text


def test_booleans_are_words() -> None:
    """C31."""
    assert [value_text(value, numbers_of("bool")) for value in (0.0, 1.0)] == ["false", "true"]
    assert value_range(0, 1, numbers="boolean") == "false … true"
    assert value_range(1, 1, numbers="boolean") == "constant true"
