"""A layer beside another one, and for another image: the same channels in the same colours."""

from __future__ import annotations

import base64

import pytest
import torch

from hookviz import load_model
from hookviz.samples import load_sample
from hookviz.views import mosaic_picture
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def pictures(visitor: Visitor) -> list[bytes]:
    sources = visitor.widget("comparison-0").locator(".hv-mosaic img").evaluate_all("all => all.map(one => one.src)")
    return [base64.b64decode(source.partition(",")[2]) for source in sources]


def test_another_image_and_another_layer_stand_beside_the_card(visitor: Visitor) -> None:
    """Expected are torch's own values, coloured together; a link restores the view."""
    model = load_model("simple_cnn", device="cpu")
    one, other = (model.prepare(load_sample(name)) for name in ("digit_3", "digit_8"))
    with torch.no_grad():
        first, second = (model.module.get_submodule("conv1")(batch)[0].numpy() for batch in (one, other))
        pooled = torch.nn.functional.max_pool2d(torch.relu(torch.from_numpy(first)), 2).numpy()
    visitor.open(
        model="simple_cnn", sample="digit_3", layer=["conv1", "pool"], view0="Compare", beside0="image: digit_8"
    )
    numbers = range(16)
    assert pictures(visitor) == [
        mosaic_picture(first, order=list(numbers), like=second).png,
        mosaic_picture(second, order=list(numbers), like=first).png,
    ]
    visitor.select("beside-0", "layer: pool")
    expected = [
        mosaic_picture(first, order=list(numbers), like=pooled).png,
        mosaic_picture(pooled, order=list(numbers), like=first).png,
    ]
    assert pictures(visitor) == expected
    assert visitor.address["beside0"] == ["layer: pool"]
    visitor.page.reload()
    assert pictures(visitor.idle()) == expected
