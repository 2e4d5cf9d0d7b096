"""The script that a card offers, run, gives the very picture that the card shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hookviz.bundled import bundled_file
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser


def run(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    (folder / "image.jpg").write_bytes(bundled_file("digit_3.png").read_bytes())  # by content, whatever its name
    script = script.replace('"simple_cnn.safetensors"', repr(str(bundled_file("simple_cnn.safetensors"))))
    defined: dict[str, Any] = {}
    exec(compile(script, "shown.py", "exec"), defined)  # noqa: S102  # the very text that the page shows
    return defined


def test_both_scripts_of_a_card_give_what_it_shows(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.open(model="simple_cnn", sample="digit_3", layer="conv2", sort="mean", scale="shared", cmap="magma", c0="9")
    visitor.card(0).get_by_role("button", name="Copy as Python").click()
    visitor.idle()
    texts = visitor.page.locator("[data-testid=stPopoverBody] [data-testid=stCode] code")
    with_hookviz, alone = (run(str(texts.nth(one).text_content()), tmp_path, monkeypatch) for one in (0, 1))
    assert with_hookviz["png"] == visitor.mosaic(0)
    assert alone["page"].tolist() == visitor.channel_numbers(0)
    assert np.array_equal(alone["maps"], with_hookviz["maps"].maps)
    assert np.array_equal(with_hookviz["channel"], alone["maps"][9])


def test_both_scripts_of_edits_give_the_probabilities_that_are_shown(
    visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor.open(model="simple_cnn", sample="digit_3", layer="conv2", edit=["conv1:3,5:zero", "conv2:9:scale:2"])
    visitor.widget("predictions").get_by_role("button", name="Copy as Python").click()
    visitor.idle()
    texts = visitor.page.locator("[data-testid=stPopoverBody] [data-testid=stCode] code")
    shown = visitor.widget("predictions").locator(".hv-versus .numbers").first.inner_text()
    for one in (0, 1):
        defined = run(str(texts.nth(one).text_content()), tmp_path, monkeypatch)
        before, after = (defined[name].softmax(1).max().item() for name in ("before", "after"))
        assert shown.split() == [f"{100 * before:.1f}", "%", "→", f"{100 * after:.1f}", "%"]
