"""The folding tree of layers and the quick choices, by mouse and keys, in real Chromium."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import NewVisitor
from tests.browser.server import Server
from tests.browser.visitor import Visitor

FIRST_TWELVE = [f"layer{stage}.{block}.conv{number}" for stage in (1, 2, 3) for block in (0, 1) for number in (1, 2)]


def filter_by(visitor: Visitor, text: str) -> None:
    visitor.page.get_by_role("searchbox", name="Filter layers").fill(text)


def matched(visitor: Visitor) -> list[str]:
    """Full names of the rows that match, as opposed to those around them."""
    rows = visitor.page.locator(".row:not(.aside)")
    return sorted(rows.evaluate_all("all => all.map(one => one.title)"))


def count(visitor: Visitor) -> str:
    return visitor.page.locator(".layer-tree .count").inner_text()


def scroll_top(visitor: Visitor) -> float:
    top: float = visitor.page.get_by_role("tree").evaluate("tree => tree.scrollTop")
    return top


def resnet18(visitor: Visitor, *layers: str) -> Visitor:
    return visitor.open(model="resnet18", weights="untrained", layer=list(layers)).open_tree()


@pytest.fixture(scope="module")
def reader(chromium: Browser, server: Server) -> Iterator[Visitor]:
    """Somebody who filters the tree of resnet18 and chooses nothing: tests that do no more share the page."""
    context = chromium.new_context(viewport={"width": 1440, "height": 1000})
    yield resnet18(Visitor(context.new_page(), server.url), "layer2.0.conv2")
    context.close()


def test_row_says_type_output_parameters_and_calls(reader: Visitor) -> None:
    filter_by(reader, "MAXPOOL2D")
    expect(reader.tree_row("maxpool").locator("> span")).to_have_text(
        ["", "maxpool", "MaxPool2d", "64 × 56 × 56", "", "1"]
    )
    filter_by(reader, "layer1.0.conv1")
    expect(reader.tree_row("layer1.0.conv1")).to_have_accessible_name(
        "layer1.0.conv1, Conv2d, 64 × 56 × 56, 36,864 parameters"
    )
    filter_by(reader, "layer1.0.add")
    expect(reader.tree_row("layer1.0.add")).to_have_accessible_name("layer1.0.add, add(), 64 × 56 × 56")


def test_chips_and_tree_always_agree(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    expect(visitor.tree_row("conv1")).to_be_checked()
    visitor.mark("maxpool").idle().assert_cards("conv1", "maxpool")
    visitor.remove_layer("conv1").assert_cards("maxpool")
    expect(visitor.tree_row("conv1")).not_to_be_checked()
    visitor.mark("maxpool").idle()
    assert visitor.titles() == []
    visitor.page.get_by_role("button", name="Output", exact=True).click()
    visitor.idle().assert_cards("(whole network)")
    expect(visitor.tree_row("(whole network)")).to_be_checked()


def test_choosing_moves_nothing_in_the_tree(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    tree = visitor.page.get_by_role("tree")
    visitor.page.get_by_role("button", name="Fold all").click()
    visitor.tree_row("layer4").click()
    visitor.tree_row("layer4.1").click()
    tree.evaluate("tree => tree.scrollTop = 100")
    before = (tree.bounding_box(), scroll_top(visitor), visitor.tree_rows())
    visitor.mark("layer4.1.conv2").idle().assert_cards("conv1", "layer4.1.conv2")
    assert (tree.bounding_box(), scroll_top(visitor), visitor.tree_rows()) == before
    assert before[1] == 100


def test_quick_clicks_are_all_heard(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    for name in ("bn1", "relu", "maxpool"):
        visitor.mark(name)
    visitor.idle().assert_cards("conv1", "bn1", "relu", "maxpool")
    for name in ("conv1", "bn1", "relu", "maxpool"):
        expect(visitor.tree_row(name)).to_be_checked()


def test_thirteenth_layer_is_refused_with_a_sentence(visitor: Visitor) -> None:
    resnet18(visitor, *FIRST_TWELVE)
    asked = visitor.runs_asked_for
    visitor.mark("maxpool")
    expect(visitor.page.get_by_role("alert").filter(has_text="12")).to_have_text(
        "At most 12 layers show at once: take one away first."
    )
    expect(visitor.tree_row("maxpool")).not_to_be_checked()
    assert visitor.idle().titles() == FIRST_TWELVE
    assert visitor.runs_asked_for == asked


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(
            "Downsample.0", ["layer2.0.downsample.0", "layer3.0.downsample.0", "layer4.0.downsample.0"], id="part"
        ),
        pytest.param("linear", ["fc"], id="type"),
        pytest.param("layer4.*.conv?", [f"layer4.{block}.conv{n}" for block in (0, 1) for n in (1, 2)], id="glob"),
        pytest.param("layer3*.conv[!2]", ["layer3.0.conv1", "layer3.1.conv1"], id="not in a set"),
        pytest.param("conv1*", ["conv1"], id="a glob means the full name"),
        pytest.param("type:Sequential layer2", ["layer2", "layer2.0.downsample"], id="type and part"),
        pytest.param("type:max*", ["maxpool"], id="glob of types"),
        pytest.param("layer1.[", [], id="brackets that stay open"),
    ],
)
def test_filter(reader: Visitor, text: str, names: list[str]) -> None:
    asked = reader.runs_asked_for
    filter_by(reader, text)
    assert matched(reader) == names
    assert count(reader) == f"{len(names)} of 77"
    expect(reader.page.get_by_text("No layer matches.")).to_be_visible(visible=not names)
    assert reader.runs_asked_for == asked


def test_type_that_is_one_exactly_leaves_out_those_it_is_part_of(visitor: Visitor) -> None:
    visitor.open(model="mobilenet_v2", weights="untrained").open_tree()
    filter_by(visitor, "type:Conv2d")
    assert count(visitor).startswith("52 of ")
    filter_by(visitor, "type:Conv2")
    assert int(count(visitor).split()[0]) > 52


def test_matches_show_inside_what_they_fold_into_and_the_folds_come_back(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    visitor.page.get_by_role("button", name="Fold all").click()
    folded = visitor.tree_rows()
    filter_by(visitor, "layer3.0.downsample.1")
    assert visitor.tree_rows() == ["layer3", "0", "downsample", "1"]
    visitor.tree_row("layer3").click()
    assert visitor.tree_rows() == ["layer3"]
    visitor.page.keyboard.press("ArrowRight")
    assert visitor.tree_rows() == ["layer3", "0", "downsample", "1"]
    filter_by(visitor, "")
    assert visitor.tree_rows() == folded


def test_layers_that_never_ran_say_so_and_can_be_left_out(visitor: Visitor) -> None:
    visitor.open(model="swin_t", weights="untrained", layer="norm").open_tree()
    filter_by(visitor, "features.1.0.attn.qkv")
    row = visitor.tree_row("features.1.0.attn.qkv")
    expect(row.locator(".output")).to_have_text("not called")
    visitor.mark("features.1.0.attn.qkv").idle().assert_cards("norm", "features.1.0.attn.qkv")
    visitor.page.get_by_label("only called").check()
    assert count(visitor).startswith("0 of ")
    expect(row).to_have_count(0)


def test_repeated_blocks_fold_into_one_row_that_counts_what_is_chosen_inside(visitor: Visitor) -> None:
    visitor.open(model="resnet50", weights="untrained", layer="layer3.2.conv1").open_tree()
    group = visitor.tree_row("1 – 5").filter(has_text="5 × Bottleneck")
    expect(group).to_have_attribute("aria-expanded", "true")
    assert group.get_attribute("aria-checked") is None
    group.click()
    expect(group).to_have_attribute("aria-expanded", "false")
    expect(group.locator(".inside")).to_have_text("1 chosen")
    expect(visitor.tree_row("layer3.2")).to_have_count(0)


def test_tree_by_keyboard(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    press = visitor.page.keyboard.press
    active = visitor.page.locator(".row.active")
    visitor.page.get_by_role("button", name="Fold all").click()
    visitor.page.get_by_role("searchbox", name="Filter layers").press("ArrowDown")
    expect(visitor.page.get_by_role("tree")).to_be_focused()
    for key, name in (
        ("End", "flatten"),
        ("Home", "(whole network)"),
        ("ArrowDown", "conv1"),
        ("PageDown", "flatten"),
        ("Home", "(whole network)"),
    ):
        press(key)
        expect(active).to_have_attribute("title", name)
    for _ in range(5):
        press("ArrowDown")
    press("ArrowRight")
    expect(visitor.tree_row("layer1")).to_have_attribute("aria-expanded", "true")
    press("ArrowRight")
    expect(active).to_have_attribute("title", "layer1.0")
    assert visitor.page.get_by_role("tree").get_attribute("aria-activedescendant") == active.get_attribute("id")
    press("Space")
    visitor.idle().assert_cards("conv1", "layer1.0")
    expect(active).to_have_attribute("title", "layer1.0")
    press("Enter")
    visitor.idle().assert_cards("conv1")
    press("ArrowLeft")
    press("ArrowLeft")
    expect(visitor.tree_row("layer1")).to_have_attribute("aria-expanded", "false")


def test_rows_say_their_place_in_the_tree(reader: Visitor) -> None:
    filter_by(reader, "")
    row = reader.tree_row("layer2.0.conv2")
    names = ("aria-level", "aria-posinset", "aria-setsize")
    assert [row.get_attribute(name) for name in names] == ["3", "4", "7"]


def test_another_network_begins_with_a_tree_of_its_own(visitor: Visitor) -> None:
    resnet18(visitor, "conv1")
    filter_by(visitor, "layer4")
    visitor.select("model", "simple_cnn")
    assert visitor.tree_rows()[:4] == ["(whole network)", "conv1", "pool", "conv2"]
    assert visitor.page.get_by_role("searchbox", name="Filter layers").input_value() == ""


def test_quick_choices_of_stages_and_of_grad_cam(visitor: Visitor) -> None:
    visitor.open(model="resnet18", weights="untrained", layer="conv1")
    visitor.page.get_by_role("button", name="Grad-CAM layer", exact=True).click()
    visitor.idle().assert_cards("layer4")
    visitor.page.get_by_role("button", name="Stages", exact=True).click()
    visitor.widget("stage-2").get_by_text("28 × 28").wait_for()
    visitor.widget("stage-2").get_by_role("button", name="All", exact=True).click()
    visitor.idle().assert_cards("layer2.0.conv1", "layer2.0.downsample.0", "layer2.1.conv2")
    visitor.widget("stage-5").get_by_role("button", name="First", exact=True).click()
    firsts = ["conv1", "layer1.0.conv1", "layer2.0.conv1", "layer3.0.conv1", "layer4.0.conv1"]
    visitor.idle().assert_cards(*firsts)


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_of_the_tree_is_cut_off(new_visitor: NewVisitor, width: int) -> None:
    visitor = new_visitor()
    visitor.page.set_viewport_size({"width": width, "height": 900})
    resnet18(visitor, "layer4.0.conv1", "conv1")
    visitor.page.locator(".layer-tree").scroll_into_view_if_needed()
    cut = visitor.page.locator(".row > *, .row .title, .tools > *, .layer-tree").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth).map(one => one.outerHTML)"
    )
    assert cut == []
    right = visitor.page.locator(".layer-tree").evaluate("tree => tree.getBoundingClientRect().right")
    assert right <= width


# Times in one browser, one right after the other, so that a busy machine slows both alike.

_INTERACTIONS = """async place => {
  const root = place.getRootNode(), filter = root.querySelector('.filter'), view = root.querySelector('.view')
  const pause = () => new Promise(resolve => setTimeout(resolve))
  const timed = async act => {
    await pause()
    const began = performance.now()
    act()
    view.getBoundingClientRect()
    return performance.now() - began
  }
  const type = text => () => { filter.value = text; filter.dispatchEvent(new InputEvent('input')) }
  const fold = () => root.querySelector('.all').click()
  const times = []
  for (const act of [type('c'), type('conv'), type('*.conv2'), type('type:Conv2d'), type(''), fold, fold]) {
    times.push(await timed(act))
  }
  return times
}"""


def interaction(visitor: Visitor) -> list[float]:
    times: list[float] = visitor.page.locator(".layer-tree").evaluate(_INTERACTIONS)
    return times


@pytest.mark.slow
def test_tree_of_more_than_four_hundred_layers_is_as_quick_as_a_small_one(new_visitor: NewVisitor) -> None:
    small = resnet18(new_visitor(), "conv1")
    large = new_visitor().open(model="resnet152", weights="untrained", layer="conv1").open_tree()
    assert count(large) == "474 layers"
    for one in (small, large):
        interaction(one)
    times: dict[str, list[float]] = {"small": [], "large": []}
    for _ in range(15):
        times["small"].append(sum(interaction(small)))
        times["large"].append(sum(interaction(large)))
    assert sorted(times["large"])[7] < 2 * sorted(times["small"])[7]
