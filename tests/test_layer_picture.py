from __future__ import annotations

import numpy as np
import pytest
import torch

from hookviz.layer_picture import Display, Selection, arranged, draw_figure, draw_mosaic, item_name, slice_name
from hookviz.types import LayerInfo, Layout
from hookviz.views import mosaic

DISPLAY = Display(scale="channel", robust=False, cmap="viridis")
WINDOWS = Layout("NHWC", note="window partition: the first axis counts 64 windows of 7 × 7 tokens")
INFO = LayerInfo("block", "Conv", 1, 0)


def counting(*shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def title(tensor: torch.Tensor, layout: Layout | None, selection: Selection) -> str:
    figure = draw_figure(INFO, arranged(tensor, layout, "index", DISPLAY, selection))
    return figure.texts[0].get_text()


def test_item_and_slice_are_drawn_and_named() -> None:
    """C28: slice d of channel c of item n."""
    tensor = counting(2, 3, 4, 5, 6)
    shown = arranged(tensor, Layout("NCDHW"), "index", DISPLAY, Selection(item=1, depth=2))
    assert draw_mosaic(shown).png == mosaic(tensor[1, :, 2].numpy())
    assert shown.part == "item 2 of 2  ·  slice 3 of 4"
    assert (
        title(tensor, Layout("NCDHW"), Selection(1, 2)) == "block  Conv  3 × 4 × 5 × 6  ·  item 2 of 2  ·  slice 3 of 4"
    )


def test_numbers_are_of_the_whole_and_channels_of_what_is_shown() -> None:
    tensor = counting(2, 3, 4, 5, 6)
    shown = arranged(tensor, None, "index", DISPLAY, Selection(item=1, depth=2))
    assert (shown.summary.count, shown.summary.max) == (tensor.numel(), tensor.numel() - 1)
    np.testing.assert_array_equal(shown.statistics.max, tensor[1, :, 2].amax((1, 2)).numpy())


def test_channels_stay_in_their_places_from_slice_to_slice() -> None:
    """Sorted by all slices: in the second alone the order would be the other way round."""
    tensor = torch.zeros(1, 2, 2, 1, 1)
    tensor[0, :, 0, 0, 0], tensor[0, :, 1, 0, 0] = torch.tensor([9.0, 0.0]), torch.tensor([1.0, 2.0])
    for depth in range(2):
        shown = arranged(tensor, None, "mean", DISPLAY, Selection(depth=depth))
        assert shown.order is not None
        assert shown.order.tolist() == [0, 1]


def test_words_of_the_layout_name_its_items_and_slices() -> None:
    assert item_name(WINDOWS) == "window"
    assert [item_name(None), item_name(Layout("NCHW")), slice_name(None)] == ["item"] * 2 + ["slice"]
    assert slice_name(Layout("NCDHW", note="depth is time")) == "frame"
    shown = arranged(counting(64, 7, 7, 2), WINDOWS, "index", DISPLAY, Selection(item=5))
    assert shown.part == "window 6 of 64"


def test_kind_of_number_is_named_where_it_is_not_the_usual_one() -> None:
    """C30."""
    tensor = torch.tensor([[[[3 + 4j, 1j]]]])
    assert arranged(tensor, None, "index", DISPLAY).part == ""
    shown = arranged(tensor, None, "index", DISPLAY, Selection(shows="phase"))
    assert (shown.part, shown.summary.shows, shown.maps.shows) == ("phase", "phase", "phase")


@pytest.mark.parametrize(
    ("shape", "layout", "picture"),
    [
        ((1, 4, 5, 5), "NCHW", "maps"),
        ((1, 4, 6), "NCL", "lines"),
        ((1, 4, 6), "NLC", "maps"),
        ((1, 4, 1, 6), "NCHW", "lines"),
        ((1, 40), "NC", "bars"),
        ((1, 40, 1, 1), "NCHW", "bars"),
        ((40,), "C", "bars"),
        ((), "scalar", "number"),
        ((1, 1), "NC", "number"),
        ((1, 0, 4, 4), "NCHW", "maps"),
    ],
)
def test_picture_is_what_can_be_read_at_once(shape: tuple[int, ...], layout: str, picture: str) -> None:
    """C28: lines for sequences, bars for vectors, a number for one."""
    shown = arranged(torch.ones(shape), Layout(layout), "index", DISPLAY)
    assert shown.picture == picture
    assert len(draw_figure(INFO, shown).texts) > 1


def test_sparse_tensors_are_drawn_dense_with_their_density() -> None:
    """C30."""
    dense = torch.tensor([[[[0.0, 7.0], [0.0, 0.0]]]])
    shown = arranged(dense.to_sparse(), None, "index", DISPLAY)
    assert draw_mosaic(shown).png == mosaic(dense[0].numpy())
    assert shown.maps.note == "sparse: 1 of 4 elements stored (25.0%), the others are zero"
