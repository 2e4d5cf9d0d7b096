"""Every layer and call of whole model zoos; ``pytest -m zoo -s`` prints the table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import timm
import torch
import torchvision

from tests.hooks.timm_choice import CHOSEN, choose, count_parameters
from tests.hooks.zoo import Ledger, visit

TORCHVISION = torchvision.models.list_models()
HANDFUL = [
    "ssdlite320_mobilenet_v3_large",
    "lraspp_mobilenet_v3_large",
    "r3d_18",
    pytest.param("raft_small", marks=pytest.mark.slow),
    "quantized_mobilenet_v2",
    "timm/vit_tiny_patch16_224",
    "timm/test_maxvit",
    "timm/mixer_s32_224",
]


@pytest.fixture(scope="module")
def torchvision_ledger() -> Iterator[Ledger]:
    ledger = Ledger("torchvision")
    yield ledger
    ledger.close()


@pytest.fixture(scope="module")
def timm_ledger() -> Iterator[Ledger]:
    ledger = Ledger("timm")
    yield ledger
    ledger.close()


@pytest.mark.parametrize("name", HANDFUL)
def test_every_layer_and_call_of_one_network_of_each_kind(name: str) -> None:
    torch.set_num_threads(2)
    verdict = visit(name)
    assert (verdict.word, verdict.detail) == ("exact", verdict.detail)
    assert verdict.calls >= verdict.layers > 50


@pytest.mark.zoo
@pytest.mark.parametrize("name", TORCHVISION)
def test_every_layer_and_call_of_torchvision(name: str, torchvision_ledger: Ledger) -> None:
    torch.set_num_threads(2)
    verdict = visit(name)
    torchvision_ledger.note(verdict)
    assert (verdict.word, verdict.detail) == ("exact", verdict.detail)


def test_torchvision_has_121_networks() -> None:
    assert len(TORCHVISION) == 121


@pytest.mark.zoo
@pytest.mark.parametrize("name", CHOSEN)
def test_every_layer_and_call_of_300_networks_of_timm(name: str, timm_ledger: Ledger) -> None:
    torch.set_num_threads(2)
    verdict = visit(f"timm/{name}")
    timm_ledger.note(verdict)
    assert (verdict.word, verdict.detail) == ("exact", verdict.detail)


def test_the_300_networks_of_timm_come_from_all_of_its_families() -> None:
    assert len(set(CHOSEN)) == 300
    chosen_from = {family for family in timm.list_modules() if set(timm.list_models(module=family)) & set(CHOSEN)}
    assert chosen_from == set(timm.list_modules())


def test_the_smallest_of_each_family_come_first_and_the_rest_are_spread_over_the_names() -> None:
    families = {
        f"family{number:02}": {f"{letter}{number:02}": size for size, letter in enumerate("zyxwvu")}
        for number in range(100)
    }
    chosen = choose(families)
    assert len(set(chosen)) == 300
    assert [name for name in chosen if name.startswith("z")] == [f"z{number:02}" for number in range(100)]
    assert chosen[:4] == ["u00", "u02", "u05", "u07"]
    assert choose({"large": {"a": 10**9, "b": 2 * 10**9}} | families)[0] == "a"


@pytest.mark.zoo
def test_the_300_networks_of_timm_are_those_that_the_rule_gives() -> None:
    assert choose(count_parameters()) == CHOSEN
