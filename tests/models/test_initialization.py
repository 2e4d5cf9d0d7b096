from __future__ import annotations

import torch
from torch import nn

from hookviz.models.initialization import seeded_initialization, skipped_initialization


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_seeded_draws_are_those_of_a_generator_of_their_own() -> None:
    before = torch.get_rng_state()
    with seeded_initialization():
        drawn = torch.empty(9).normal_(), torch.rand(3), nn.init.uniform_(torch.empty(5), -1, 1), torch.randperm(6)
    assert torch.equal(torch.get_rng_state(), before)
    generator = seeded()
    expected = (
        torch.empty(9).normal_(generator=generator),
        torch.rand(3, generator=generator),
        torch.empty(5).uniform_(-1, 1, generator=generator),
        torch.randperm(6, generator=generator),
    )
    assert all(torch.equal(one, other) for one, other in zip(drawn, expected, strict=True))


def test_skipping_leaves_out_whole_initializers() -> None:
    with skipped_initialization():
        for initialize in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            tensor = torch.full((4, 4), 50.0)
            assert initialize(tensor) is tensor
            assert torch.equal(tensor, torch.full((4, 4), 50.0))


def test_a_draw_inside_an_initializer_is_never_left_out() -> None:
    """Else trunc_normal_, which draws until every value is in range, would never end on memory that is not."""
    before = torch.get_rng_state()
    with skipped_initialization():
        drawn = torch.full((20,), 50.0).normal_()
        truncated = nn.init.trunc_normal_(torch.full((1000,), 50.0), std=1.0, a=-1.0, b=1.0)
    assert torch.equal(drawn, torch.empty(20).normal_(generator=seeded()))
    assert truncated.abs().max().item() <= 1
    assert torch.equal(torch.get_rng_state(), before)
