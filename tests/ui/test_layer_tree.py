"""What the tree of layers is given; what it does with it is tested in Chromium."""

from __future__ import annotations

from hookviz.layer_tree import TreeRow
from hookviz.types import LayerInfo, TensorInfo
from hookviz.ui.layer_tree import row_data


def layer(name: str, calls: int, *shapes: tuple[int, ...], parameters: int = 0, operation: bool = False) -> LayerInfo:
    outputs = tuple((TensorInfo("", shape, "float32"),) for shape in shapes)
    return LayerInfo(name, "Conv2d", 1, parameters, calls, outputs, (None,) * len(outputs), operation)


def test_row_of_a_layer_says_type_output_parameters_and_calls() -> None:
    data = row_data(TreeRow("conv1", 3, layer("layer1.conv1", 1, (1, 64, 56, 56), parameters=36864)))
    assert data == {
        "parent": 3,
        "name": "layer1.conv1",
        "title": "conv1",
        "class": "Conv2d",
        "kind": "",
        "type": "Conv2d",
        "output": "64 × 56 × 56",
        "parameters": "36,864",
        "calls": 1,
        "label": "layer1.conv1, Conv2d, 64 × 56 × 56, 36,864 parameters",
    }


def test_row_of_a_layer_called_twice_says_each_size_once() -> None:
    data = row_data(TreeRow("pool", None, layer("pool", 3, (1, 8, 4, 4), (1, 8, 2, 2), (1, 8, 2, 2))))
    assert (data["output"], data["calls"]) == ("8 × 4 × 4 | 8 × 2 × 2", 3)
    assert data["label"] == "pool, Conv2d, 8 × 4 × 4 | 8 × 2 × 2, 3 calls"


def test_row_of_a_layer_that_never_ran_says_so() -> None:
    data = row_data(TreeRow("aux", None, layer("aux", 0, parameters=5)))
    assert (data["output"], data["calls"], data["label"]) == ("not called", 0, "aux, Conv2d, not called, 5 parameters")


def test_rows_of_the_whole_network_and_of_an_operation_are_named_as_such() -> None:
    whole = row_data(TreeRow("", None, layer("", 1, (1, 10))))
    assert (whole["name"], whole["title"], whole["label"]) == ("", "(whole network)", "whole network, Conv2d, 10")
    operation = row_data(TreeRow("add", 1, layer("block.add", 1, (1, 4), operation=True)))
    assert (operation["kind"], operation["type"]) == ("operation", "Conv2d()")


def test_row_of_repeated_blocks_has_no_name_to_choose() -> None:
    data = row_data(TreeRow("1 – 5", 2, layer("layer1.1", 1, (1, 4), parameters=7), repeats=5))
    assert (data["name"], data["title"], data["type"]) == (None, "1 – 5", "5 × Conv2d")
    assert (data["output"], data["parameters"], data["calls"]) == ("", "", None)
