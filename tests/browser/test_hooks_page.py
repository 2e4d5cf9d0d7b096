from __future__ import annotations

import torch
import torch.nn.functional as F
from playwright.sync_api import expect

from hookviz.samples import load_sample
from tests.browser import expected
from tests.browser.conftest import NewServer, NewVisitor
from tests.browser.server import Server
from tests.browser.visitor import Visitor
from tests.models import hooked_networks

LAB = "tests.models.hooked_networks"


def open_hooks(visitor: Visitor, server: Server, view: str = "") -> Visitor:
    visitor.page.goto(f"{server.url}/hooks{view}")
    visitor.page.wait_for_selector("[data-testid=stTabs]", timeout=90_000)
    return visitor.idle()


def shares(visitor: Visitor) -> list[tuple[str, str, str]]:
    """Each class with its share without and with the hook."""
    rows = visitor.widget("predictions").locator(".classes")
    columns = (rows.locator(name).all_inner_texts() for name in (".name", ".numbers .was", ".numbers .is"))
    return list(zip(*columns, strict=True))


def test_zeroing_the_strongest_channel_of_the_last_convolution_changes_the_bars(
    visitor: Visitor, server: Server
) -> None:
    """And a hook that returns nothing leaves them; both as torch's own hooks on a network loaded anew say."""
    open_hooks(visitor, server)
    model = expected.network("efficientnet_lite0", "default")
    batch = model.prepare(load_sample("grace_hopper"))

    def zero(_: object, __: object, output: torch.Tensor) -> torch.Tensor:
        strongest = int(output.abs().double().mean((0, 2, 3)).argmax())
        changed = output.clone()
        changed[:, strongest] = 0
        return changed

    with torch.no_grad():
        before = model.module(batch)
        handle = model.module.get_submodule("conv_head").register_forward_hook(zero)
        after = model.module(batch)
        handle.remove()
    was, now = (100 * F.softmax(one, 1)[0] for one in (before, after))
    best = [*was.argsort(descending=True)[:5].tolist(), *now.argsort(descending=True)[:5].tolist()]
    rows = [(model.categories[index], f"{was[index]:.1f} %", f"{now[index]:.1f} %") for index in dict.fromkeys(best)]
    assert shares(visitor) == rows
    widths = visitor.widget("predictions").locator(".two").first.locator("span")
    assert widths.nth(0).bounding_box() != widths.nth(1).bounding_box()
    expect(visitor.page.locator(".hv-mosaic .changed")).to_have_count(1)

    visitor.select("hook-action", "Change, return nothing")
    assert shares(visitor) == [(name, first, first) for name, first, _ in rows[:5]]
    expect(visitor.page.get_by_text("unchanged, bit for bit")).to_be_visible()
    expect(visitor.page.locator(".hv-mosaic .changed")).to_have_count(0)
    assert visitor.sentences() == []


def test_lint_finds_the_hooks_that_a_factory_planted(new_server: NewServer, new_visitor: NewVisitor) -> None:
    server = new_server("--model", f"{LAB}:hooked")
    visitor = open_hooks(new_visitor(server), server, "?tab=Lint")
    said = visitor.sentences()
    assert len(said) == 3
    assert any("planted on 0 returns a value" in one for one in said)
    assert any("register_backward_hook mixes" in one for one in said)
    assert any("emulate=True" in one for one in said)
    cells = visitor.page.locator(".hv-table").first.locator("tr").all_inner_texts()
    where = "tests/models/hooked_networks.py"
    line, other = (one.__code__.co_firstlineno for one in (hooked_networks.planted, hooked_networks.noted))
    assert [row.split("\t") for row in cells] == [
        ["kind", "layer", "function", "written at", "registered by"],
        ["forward", "0", "planted", f"{where}:{line}", "others"],
        ["backward", "1", "noted", f"{where}:{other}", "others"],
        ["backward", "5", "noted", f"{where}:{other}", "others"],
    ]


def test_function_named_at_the_start_is_offered(new_server: NewServer, new_visitor: NewVisitor) -> None:
    server = new_server("--hook", f"{LAB}:halved", "--hook", f"{LAB}:broken")
    visitor = open_hooks(new_visitor(server), server, "?model=simple_cnn&sample=digit_3")
    visitor.select("hook-action", "halved()")
    expect(visitor.page.get_by_text("What the hook returned took the place of the output.")).to_be_visible()
    expect(visitor.page.locator("[data-testid=stCode]")).to_contain_text(f"from {LAB} import halved")
    visitor.select("hook-action", "broken()")
    assert visitor.sentences() == [
        "The hook on conv2 raised ValueError: a hook may fail; every hook is off again, and the network as before."
    ]


def test_layers_of_explore_and_the_hook_survive_going_there_and_back(visitor: Visitor) -> None:
    visitor.open(model="simple_cnn", sample="digit_3", layer=["conv1", "fc1"])
    visitor.page.get_by_role("link", name="Hooks", exact=True).click()
    visitor.page.wait_for_selector("[data-testid=stTabs]")
    visitor.idle()
    visitor.select("hook-kind", "Full backward").select("hook-action", "Scale")
    assert visitor.address["kind"] == ["backward"]
    visitor.page.get_by_role("link", name="Explore", exact=True).click()
    visitor.idle()
    visitor.assert_cards("conv1", "fc1")
    assert visitor.address == {"model": ["simple_cnn"], "sample": ["digit_3"], "layer": ["conv1", "fc1"]}
    visitor.page.get_by_role("link", name="Hooks", exact=True).click()
    visitor.page.wait_for_selector("[data-testid=stTabs]")
    visitor.idle()
    assert (visitor.address["kind"], visitor.address["action"]) == (["backward"], ["scale"])


def test_address_restores_the_experiment_in_a_fresh_browser(server: Server, new_visitor: NewVisitor) -> None:
    here = open_hooks(new_visitor(), server, "?model=simple_cnn&sample=digit_8")
    here.select("hook-action", "Clamp").select("hook-channels", "Channel 3")
    there = new_visitor()
    there.page.goto(here.page.url)
    there.page.wait_for_selector("[data-testid=stTabs]")
    there.idle()
    assert there.page.url == here.page.url
    assert shares(there) == shares(here)
    assert (
        there.page.locator("[data-testid=stCode]").all_inner_texts()
        == here.page.locator("[data-testid=stCode]").all_inner_texts()
    )


def test_nothing_is_fetched_from_a_network_and_no_hook_stays(visitor: Visitor, server: Server) -> None:
    server.asked_for.clear()
    for view in ("?model=simple_cnn&kind=backward", "?model=simple_cnn&tab=Gradients", "?model=simple_cnn&tab=Lint"):
        open_hooks(visitor, server, view)
        visitor.assert_no_broken_picture()
    assert not [url for url in visitor.requests if not url.startswith(("data:", "blob:", server.url))]
    assert server.asked_for == []
    assert server.facts()["hooks"] == 0
