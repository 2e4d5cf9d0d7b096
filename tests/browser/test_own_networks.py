from __future__ import annotations

import numpy as np
import pytest
import torch
from torchvision.transforms import v2

from tests.browser import expected
from tests.browser.conftest import NewServer, NewVisitor
from tests.models import own_networks

NETS = "tests.models.own_networks"


def test_network_named_at_the_start_is_there_first(new_server: NewServer, new_visitor: NewVisitor) -> None:
    server = new_server("--model", f"{NETS}:described", "--model", f"letters={NETS}:grey_digits")
    visitor = new_visitor(server).open()
    assert sorted(visitor.predictions()) == ["bird", "cat", "dog"]
    visitor.assert_cards("0", "1", "2")
    photo = expected.hopper().resize((16, 16))
    batch = v2.functional.to_dtype(v2.functional.pil_to_tensor(photo), torch.float32, scale=True)[None] * 4 - 2
    weights = expected.network(f"{NETS}:described", "default").module.state_dict()
    assert visitor.mosaic(0) == expected.picture(torch.conv2d(batch, weights["0.weight"], weights["0.bias"]))
    assert np.abs(expected.pixels(visitor.input_picture()).astype(int) - np.asarray(photo, int)).max() <= 1
    visitor.select("model", "letters")
    assert visitor.predictions()[0].startswith("class ")
    visitor.select("model", "simple_cnn")
    assert visitor.predictions() == expected.top_labels(expected.network("simple_cnn", "default"), expected.hopper())


def test_network_that_cannot_be_had_is_said_in_one_sentence(new_server: NewServer, new_visitor: NewVisitor) -> None:
    server = new_server("--model", f"{NETS}:fails")
    visitor = new_visitor(server).open()
    (sentence,) = visitor.sentences()
    assert f"{NETS[1:]}:fails failed with RuntimeError: the weights are elsewhere" in sentence
    visitor.select("model", "simple_cnn")
    assert visitor.sentences() == []
    assert "RuntimeError: the weights are elsewhere" in server.log()


def test_visitor_cannot_have_code_loaded(new_visitor: NewVisitor) -> None:
    visitor = new_visitor().open(model=f"{NETS}:described")
    assert visitor.sentences() == [
        f"The address asks for model “{NETS}:described”, which there is not; efficientnet_lite0 is shown instead."
    ]


@pytest.mark.slow
def test_words_that_the_page_does_not_know_are_said(new_server: NewServer, new_visitor: NewVisitor) -> None:
    (sentence,) = new_visitor(new_server("--modle", "x:y")).open().sentences()
    assert "unrecognized arguments: --modle x:y" in sentence
    assert "streamlit run app.py -- --model package.module:factory" in sentence


def test_parts_of_own_networks_by_hand() -> None:
    """The values above are those of the same factory in this process."""
    module = expected.network(f"{NETS}:described", "default").module
    batch = torch.zeros(1, 3, 16, 16)
    assert torch.equal(module(batch), own_networks.three_classes_by_hand(module, batch))
