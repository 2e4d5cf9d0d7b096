"""Which 300 of timm's architectures stand for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import timm
import torch

CHOSEN = Path(__file__).with_name("timm_choice.txt").read_text().split()
"""What ``choose(count_parameters())`` gives; building every network takes minutes, so it is written down."""

MANY = 300
MOST_PARAMETERS = 12_000_000


def choose(parameters: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Of every family the network of fewest parameters; then others up to 300, evenly spaced in the order of names.

    The others have at most 12 million parameters. A family is one of timm's modules.
    """
    smallest = [min(family, key=lambda name: (family[name], name)) for family in parameters.values()]
    others = sorted(
        name
        for family in parameters.values()
        for name, count in family.items()
        if count <= MOST_PARAMETERS and name not in smallest
    )
    missing = MANY - len(smallest)
    return sorted(smallest + [others[index * len(others) // missing] for index in range(missing)])


def count_parameters() -> dict[str, dict[str, int]]:
    """The parameters of every network that timm lists, by family; on the meta device, where they take no memory."""
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    for family in timm.list_modules():
        for name in timm.list_models(module=family):
            with torch.device("meta"):
                network = timm.create_model(name)
            counted[family][name] = sum(one.numel() for one in network.parameters())
    return dict(counted)
