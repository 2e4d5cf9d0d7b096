from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hookviz.hooks.operations import list_all
from hookviz.layer_tree import TreeRow, layer_rows, opened
from hookviz.types import LayerInfo


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, channels, 1), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)) + x)


class FourBlocksNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 1)
        self.layers = nn.Sequential(*(Block(4) for _ in range(4)))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layers(self.stem(x))
        return found


def rows_of(net: nn.Module, *shape: int) -> list[TreeRow]:
    x = torch.ones(shape or (1, 3, 4, 4))
    return layer_rows(list_all(net.eval(), x))


def outline(rows: list[TreeRow], within: int | None = None) -> list[object]:
    """Titles, each followed by the list of what folds into it, where there is something."""
    result: list[object] = []
    for number, row in enumerate(rows):
        if row.parent == within:
            inside = outline(rows, number)
            result += [row.title, inside] if inside else [row.title]
    return result


def modules(*named: tuple[str, str]) -> list[LayerInfo]:
    return [LayerInfo(name, kind, name.count(".") + 1 if name else 0, 0) for name, kind in named]


def test_blocks_that_repeat_fold_into_one_row_and_operations_stand_where_they_run() -> None:
    rows = rows_of(FourBlocksNet())
    block = ["conv", "norm", "add", "relu"]
    repeated = ["0", block, "1", block, "2", block, "3", block]
    assert outline(rows) == ["", "stem", "layers", ["0 – 3", repeated]]
    (group,) = [row for row in rows if row.repeats]
    assert (group.repeats, group.info.name) == (4, "layers.0")


def test_every_layer_has_one_row_and_a_group_names_none() -> None:
    net = FourBlocksNet().eval()
    x = torch.ones(1, 3, 4, 4)
    layers = list_all(net, x)
    rows = layer_rows(layers)
    assert sorted(row.info.name for row in rows if not row.repeats) == sorted(info.name for info in layers)
    assert all(row.parent is None or row.parent < number for number, row in enumerate(rows))


def test_block_of_another_structure_stays_outside_the_group() -> None:
    """As the first block of a ResNet stage, which has a downsample."""
    others = [("b.1", "B"), ("b.1.conv", "Conv2d"), ("b.2", "B"), ("b.2.conv", "Conv2d"), ("b.3", "B")]
    listed = modules(
        ("", "Net"), ("b", "Sequential"), ("b.0", "B"), ("b.0.down", "Conv2d"), *others, ("b.3.conv", "Conv2d")
    )
    conv = ["conv"]
    assert outline(layer_rows(listed)) == ["", "b", ["0", ["down"], "1 – 3", ["1", conv, "2", conv, "3", conv]]]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["0", "1"], id="two are no repetition worth a row"),
        pytest.param(["0", "2", "3"], id="a gap in the numbers"),
        pytest.param(["a", "b", "c"], id="names without numbers"),
        pytest.param(["a0", "b1", "c2"], id="names of different stems"),
    ],
)
def test_what_does_not_count_on_does_not_fold(names: list[str]) -> None:
    assert outline(layer_rows(modules(*((name, "Block") for name in names)))) == names


def test_names_with_a_stem_fold_as_densenet_has_them() -> None:
    rows = layer_rows(modules(*((f"denselayer{number}", "_DenseLayer") for number in range(8, 12))))
    assert (rows[0].title, rows[0].repeats) == ("denselayer8 – denselayer11", 4)


def test_stages_of_one_structure_stay_apart() -> None:
    """resnet18: layer2 to layer4 are plain containers, each a stage that one looks for by its name."""
    stages = modules(*((f"layer{number}", "Sequential") for number in (2, 3, 4)))
    assert outline(layer_rows(stages)) == ["layer2", "layer3", "layer4"]


def test_layers_that_never_ran_keep_their_place() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Identity(), nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            kept: Tensor = self.used(x)
            return kept

    rows = rows_of(Idle())
    assert [(row.title, row.info.calls) for row in rows] == [("", 1), ("used", 1), ("unused", 0)]


def test_small_network_begins_open_and_a_deep_one_folded() -> None:
    rows = rows_of(FourBlocksNet())
    whole = {number for number, row in enumerate(rows) if any(one.parent == number for one in rows)}
    assert set(opened(rows, [])) == whole
    assert opened(rows, [], most=7) == [2]  # layers shows the group, and its four blocks would be too many
    assert opened(rows, [], most=3) == []


def test_chosen_layers_show_whatever_else_is_folded() -> None:
    rows = rows_of(FourBlocksNet())
    path = opened(rows, ["layers.2.norm"], most=3)
    assert [rows[number].title for number in path] == ["layers", "0 – 3", "2"]


def test_the_rows_shown_at_first_are_at_most_forty() -> None:
    net = nn.Sequential(*(nn.Sequential(*(Block(3) for _ in range(5))) for _ in range(30)))
    rows = rows_of(net)
    shown = [row for row in rows if row.parent is None or row.parent in opened(rows, [])]
    assert [row.title for row in shown if row.parent is None] == ["", "0 – 29"]
    assert len(shown) == 2 + 30
