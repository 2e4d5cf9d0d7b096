from __future__ import annotations

import numpy as np
import pytest
import torch

from hookviz.errors import LayoutError
from hookviz.sanity.channel_tally import ChannelTally, by_channel


def tally_of(*images: torch.Tensor) -> ChannelTally:
    """Over (channels, values) each."""
    first, *others = (ChannelTally.of(one) for one in images)
    for other in others:
        first.merge(other)
    return first


def test_merging_gives_numpy_s_statistics_of_everything() -> None:
    parts = [torch.randn(3, count, generator=torch.Generator().manual_seed(count)) * 1e3 + 1e6 for count in (1, 7, 50)]
    tally, together = tally_of(*parts), torch.cat(parts, 1).double().numpy()
    np.testing.assert_allclose(tally.mean, together.mean(1), rtol=1e-14)
    np.testing.assert_allclose(tally.variance, together.var(1), rtol=1e-10)
    np.testing.assert_array_equal(tally.low, together.min(1))
    np.testing.assert_array_equal(tally.high, together.max(1))
    assert tally.elements == 58


def test_values_that_are_not_finite_are_left_out_and_make_no_channel_constant() -> None:
    rows = torch.tensor([[1.0, float("nan"), 1.0], [float("nan")] * 3, [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    tally = tally_of(rows)
    np.testing.assert_array_equal(tally.values, [2, 0, 3, 3])
    np.testing.assert_array_equal(tally.mean, [1, 0, 2, 0])
    np.testing.assert_array_equal(tally.constant, [False, False, True, False])
    np.testing.assert_array_equal(tally.dead, [False, False, False, True])
    assert np.isnan(tally.variance[1])


def test_a_channel_is_a_duplicate_only_if_it_is_one_on_every_image() -> None:
    first = torch.tensor([[1.0, 2, 3], [1, 2, 3], [1, 2, 3], [3, 2, 1], [0, 0, 0], [0, 0, 0]])
    second = torch.tensor([[4.0, 5, 6], [4, 5, 6], [4, 5, 7], [6, 5, 4], [0, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(tally_of(first).duplicated, [False, True, True, False, False, False])
    np.testing.assert_array_equal(tally_of(first, second).duplicated, [False, True, False, False, False, False])


def test_duplicates_are_told_from_channels_with_the_same_values_elsewhere() -> None:
    rows = torch.randn(40, 64, generator=torch.Generator().manual_seed(0))
    moved = torch.stack([row[torch.randperm(64, generator=torch.Generator().manual_seed(1))] for row in rows])
    assert not tally_of(torch.cat([rows, moved])).duplicated.any()
    assert tally_of(torch.cat([rows, rows])).duplicated.sum() == 40


def test_minus_zero_is_zero() -> None:
    assert tally_of(torch.tensor([[0.0, 1.0], [-0.0, 1.0]])).duplicated.tolist() == [False, True]


def test_saturated_channels_stand_at_an_end() -> None:
    rows = torch.tensor([[6.0] * 19 + [1.0], [6.0] * 18 + [1.0] * 2])
    tally = ChannelTally.of(rows, (-np.inf, 6.0))
    assert tally.saturated(0.95).tolist() == [True, False]


def test_a_state_goes_on_where_it_was() -> None:
    one, other = torch.randn(4, 9), torch.randn(4, 9)
    resumed = ChannelTally.of_state(tally_of(one).state())
    resumed.merge(tally_of(other))
    for name, array in tally_of(one, other).state().items():
        np.testing.assert_array_equal(resumed.state()[name], array)


def test_another_number_of_channels_is_refused() -> None:
    with pytest.raises(LayoutError, match="Expected 3 channels"):
        tally_of(torch.zeros(3, 4), torch.zeros(2, 4))


@pytest.mark.parametrize(
    ("layout", "shape", "axis"),
    [
        ("NCHW", (2, 3, 4, 5), 1),
        ("NHWC", (2, 4, 5, 3), 3),
        ("NLC", (2, 7, 3), 2),
        ("LNC", (7, 2, 3), 2),
        ("NC", (2, 3), 1),
        ("NCDHW", (2, 3, 4, 5, 6), 1),
    ],
)
def test_channels_are_where_the_layout_has_them(layout: str, shape: tuple[int, ...], axis: int) -> None:
    tensor = torch.randn(shape)
    rows = by_channel(tensor, layout)
    assert rows is not None
    for channel in range(3):
        np.testing.assert_array_equal(rows[channel].sort()[0], tensor.select(axis, channel).flatten().sort()[0])


def test_axes_without_channels_and_empty_tensors_have_none() -> None:
    assert by_channel(torch.zeros(2, 5, 5), "NHW") is None
    assert by_channel(torch.zeros(2, 0, 5, 5), "NCHW") is None
    with pytest.raises(LayoutError, match="needs 4 axes"):
        by_channel(torch.zeros(2, 5), "NCHW")
