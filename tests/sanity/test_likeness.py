from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz import HookvizError, compare_layers, linear_cka
from hookviz.sanity.paired_maps import paired_maps


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def unbiased_hsic_by_sums(k: np.ndarray, m: np.ndarray) -> float:
    """Song et al. (2012), equation 5, written out over all pairs."""
    n = len(k)
    k, m = k * (1 - np.eye(n)), m * (1 - np.eye(n))
    ones = np.ones(n)
    trace = sum(k[i, j] * m[j, i] for i in range(n) for j in range(n))
    product = (ones @ k @ ones) * (ones @ m @ ones) / ((n - 1) * (n - 2))
    cross = 2 / (n - 2) * (ones @ k @ m @ ones)
    return float((trace + product - cross) / (n * (n - 3)))


def test_it_is_the_unbiased_estimate() -> None:
    x, y = randn(12, 5), randn(12, 7, seed=1)
    y[:, :3] += x[:, :3]
    k, m = (x @ x.T).numpy(), (y @ y.T).numpy()
    expected = unbiased_hsic_by_sums(k, m) / (unbiased_hsic_by_sums(k, k) * unbiased_hsic_by_sums(m, m)) ** 0.5
    assert linear_cka(x, y) == pytest.approx(expected, rel=1e-9)


def test_rotation_scale_and_shift_change_nothing() -> None:
    x = randn(50, 6)
    rotation = torch.linalg.qr(randn(6, 6, seed=2))[0]
    assert linear_cka(x, 3.7 * x @ rotation + 11) == pytest.approx(1.0, abs=1e-9)


def test_unrelated_features_are_unlike_even_where_they_outnumber_the_examples() -> None:
    """The usual estimate would say 0.9 here."""
    values = [linear_cka(randn(40, 1000, seed=2 * seed), randn(40, 1000, seed=2 * seed + 1)) for seed in range(5)]
    assert all(abs(one or 0.0) < 0.1 for one in values)


def test_no_variety_and_few_examples_have_no_likeness() -> None:
    assert linear_cka(torch.ones(9, 3), randn(9, 3)) is None
    assert linear_cka(randn(3, 3), randn(3, 3)) is None
    with pytest.raises(HookvizError, match="same examples"):
        linear_cka(randn(5, 3), randn(6, 3))


def test_layers_are_compared_at_the_same_positions_of_the_same_images() -> None:
    one, other = (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, 3)).eval() for _ in range(2))
    inputs = [(torch.randn(1, 3, 10, 10),), (torch.randn(1, 3, 10, 10),)]
    found = {row.layer: row for row in compare_layers(one, other, inputs)}
    assert list(found) == ["0", "1", "2"]
    with torch.no_grad():
        for depth in range(3):
            ours, theirs = (
                torch.cat([net[: depth + 1](x)[0].flatten(1).T for (x,) in inputs]).double() for net in (one, other)
            )
            assert found[str(depth)].cka == pytest.approx(linear_cka(ours, theirs), rel=1e-9)
            scale = float(theirs.square().mean().sqrt() / ours.square().mean().sqrt())
            assert found[str(depth)].scale == pytest.approx(scale, rel=1e-6)


def test_layers_of_another_size_have_no_likeness_and_missing_ones_are_left_out() -> None:
    one = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.ReLU()).eval()
    other = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3, stride=2)).eval()
    found = compare_layers(one, other, [(torch.randn(1, 3, 12, 12),)])
    assert [(row.layer, row.cka is None) for row in found] == [("0", False), ("1", True)]


def test_maps_side_by_side_are_what_each_network_returned_first() -> None:
    one, other = (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)).train() for _ in range(2))
    image = torch.randn(1, 3, 9, 9)
    ours, theirs = paired_maps(one, other, (image,), "0")
    with torch.no_grad():
        np.testing.assert_array_equal(ours.maps, one[0](image)[0].numpy())
        np.testing.assert_array_equal(theirs.maps, other[0](image)[0].numpy())
    with pytest.raises(HookvizError):
        paired_maps(one, other, (image,), "2")
