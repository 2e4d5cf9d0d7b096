"""Hours of playing in minutes: memory stays where it was, and no hook is left."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from statistics import median

import pytest

from tests.browser.server import Server
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

ROUND = 155
"""Steps until all networks were there; the second round of as many does the same again."""
WARM = 50
MODELS = {
    "efficientnet_lite0": ["conv_stem", "blocks.2.0.conv_dw", "conv_head"],
    "simple_cnn": ["conv1", "conv2", "fc1"],
    "resnet18": ["layer1.0.relu", "layer2.0.conv1", "avgpool"],
    "mobilenet_v3_small": ["features.0", "features.4.block.2", "classifier"],
    "densenet121": ["features.conv0", "features.denseblock2", "features.norm5"],
}
MB = 2**20
FREED = 256 * MB
"""What may be kept of freed memory, as ``docs/hosting.md`` states."""
FORWARD = 256 * MB
"""What a densely connected network takes while every layer of it is recorded, before and after an edit."""


def steps(visitor: Visitor) -> Iterator[Callable[[], object]]:
    """What a person does, again and again, on one network after the other."""
    page = visitor.page
    tiles = itertools.count(3, 5)
    for model, layers in itertools.cycle(MODELS.items()):
        weights = {} if model in {"efficientnet_lite0", "simple_cnn"} else {"weights": "untrained"}
        yield lambda model=model, weights=weights, layers=layers: visitor.open(model=model, **weights, layer=layers)  # type: ignore[misc]
        for sample in ("Gratings", "Grace Hopper"):
            yield lambda sample=sample: page.get_by_role("radio", name=sample).click()  # type: ignore[misc]
            for order, scale, cmap in (
                ("Mean, largest first", "Shared", "magma"),
                ("Channel number", "Channel", "viridis"),
            ):
                yield lambda order=order: visitor.select("sort", order)  # type: ignore[misc]
                yield lambda scale=scale: visitor.press("scale", scale)  # type: ignore[misc]
                yield lambda cmap=cmap: visitor.select("cmap", cmap)  # type: ignore[misc]
                for _ in range(3):
                    yield lambda: open_tile(visitor, next(tiles))
            yield lambda: switch_off(visitor)
            yield lambda: undo(visitor)


def open_tile(visitor: Visitor, number: int) -> None:
    tiles = visitor.widget("mosaic-0").get_by_role("gridcell")
    tiles.nth(number % tiles.count()).click()


def undo(visitor: Visitor) -> None:
    visitor.widget("edits").get_by_role("button").first.click()


def switch_off(visitor: Visitor) -> None:
    if not visitor.widget("channel-0").count():
        open_tile(visitor, 1)
        visitor.idle()
    visitor.widget("channel-0").get_by_role("button", name="Switch off", exact=True).click()


@pytest.mark.slow
def test_memory_is_flat_and_no_hook_is_left(server: Server, visitor: Visitor) -> None:
    """C22, C75, C76, C77: three hundred interactions over five networks."""
    in_use: list[int] = []
    resident: list[int] = []
    for step in itertools.islice(steps(visitor), 2 * ROUND):
        step()
        visitor.idle()
        facts = server.facts()
        in_use.append(facts["in_use"])
        resident.append(facts["resident"])
        assert facts["hooks"] == 0
        assert facts["pyplot_figures"] == 0
    visitor.assert_no_broken_picture()
    read = [f"{used // MB} of {held // MB}" for used, held in zip(in_use, resident, strict=True)]
    print("MB in use, of those resident, every fifth step:", ", ".join(read[::5]))  # noqa: T201 - what a soak is for
    assert max(in_use[ROUND:]) - max(in_use[WARM:ROUND]) < 20 * MB, read
    assert median(resident[ROUND + WARM :]) - median(resident[WARM:ROUND]) < 50 * MB, read
    freed = [held - used for used, held in zip(in_use, resident, strict=True)]
    assert max(freed) - min(freed[:WARM]) < FREED + FORWARD, read
    assert visitor.console_errors == []
    assert "Traceback" not in server.log()
