from __future__ import annotations

import csv
import io
import re
import time

import matplotlib as mpl
import numpy as np
import pytest

from hookviz.errors import ViewError
from hookviz.types import ChannelStatistics
from hookviz.views import channel_grid_figure, figure_bytes, npz_bytes, pdf_bytes, statistics_csv
from hookviz.views.export import FigureFormat
from tests.views.decoding import rgb
from tests.views.summaries import summary_of


@pytest.mark.parametrize(("format_name", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_figures_become_files_that_do_not_depend_on_the_clock(format_name: FigureFormat, magic: bytes) -> None:
    maps = np.random.default_rng(0).normal(size=(3, 5, 5))
    first = figure_bytes(channel_grid_figure(maps, title="conv1"), format_name)
    time.sleep(1.01)  # dates in files count seconds
    assert figure_bytes(channel_grid_figure(maps, title="conv1"), format_name) == first
    assert first.startswith(magic)


def test_every_reference_in_an_svg_has_its_target() -> None:
    svg = figure_bytes(channel_grid_figure(np.array([[[0.0, np.nan]]])), "svg").decode()
    targets, references = set(re.findall(r'id="([^"]+)"', svg)), set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    assert references
    assert references <= targets


def test_a_file_has_the_figures_own_resolution_or_the_one_asked_for() -> None:
    figure = channel_grid_figure(np.zeros((1, 4, 4)))
    own, double = rgb(figure_bytes(figure)), rgb(figure_bytes(figure, dpi=200))
    assert double.shape[:2] == (2 * own.shape[0], 2 * own.shape[1])


def test_figures_leave_matplotlibs_settings_alone() -> None:
    before = dict(mpl.rcParams)
    for format_name in ("png", "svg", "pdf"):
        figure_bytes(channel_grid_figure(np.zeros((1, 4, 4))), format_name)
    assert dict(mpl.rcParams) == before


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(ViewError, match="no figure format 'gif'; choose one of png, svg, pdf"):
        figure_bytes(channel_grid_figure(np.zeros((1, 4, 4))), "gif")  # type: ignore[arg-type]  # wrong on purpose


def test_one_figure_is_the_same_pdf_in_both_ways() -> None:
    maps = np.random.default_rng(0).normal(size=(3, 5, 5))
    one, other = (channel_grid_figure(maps, title="conv1") for _ in range(2))
    assert pdf_bytes([one]) == figure_bytes(other, "pdf")


def test_several_figures_are_the_pages_of_one_pdf() -> None:
    figures = (channel_grid_figure(np.full((1, 4, 4), value)) for value in (1.0, 2.0, 3.0))
    assert len(re.findall(rb"/Type /Page\b", pdf_bytes(figures))) == 3


def test_a_pdf_without_figures_is_refused() -> None:
    with pytest.raises(ViewError, match="at least one figure"):
        pdf_bytes([])


def test_arrays_come_back_from_npz_bit_by_bit_under_any_name() -> None:
    """C29: the raw values in their own dtype, half and bit patterns included."""
    arrays = {
        "layer1.0.conv2": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float16),
        "file": np.array([1 + 2j]),
        "": np.array([0x3F80, 0x7FC0], np.uint16),
        "mask": np.array([True, False]),
        "empty": np.empty((0, 4)),
    }
    loaded = np.load(io.BytesIO(npz_bytes(arrays)), allow_pickle=False)
    assert loaded.files == list(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].tobytes() == array.tobytes()


def test_npz_bytes_do_not_depend_on_the_clock() -> None:
    array = {"a": np.arange(10)}
    first = npz_bytes(array)
    time.sleep(2.01)  # dates in zip files count two seconds
    assert npz_bytes(array) == first


def test_objects_are_refused() -> None:
    with pytest.raises(ViewError, match="array 'a' holds Python objects"):
        npz_bytes({"a": np.array([None])})


def test_statistics_read_back_exactly() -> None:
    values = np.array([[0.1, 0.2, np.nan], [0, 0, 1e-45]])
    channels = ChannelStatistics(
        mean=np.nanmean(values, axis=1),
        std=np.nanstd(values, axis=1),
        min=np.nanmin(values, axis=1),
        max=np.nanmax(values, axis=1),
        zeros=np.array([0, 2]),
        nan=np.array([1, 0]),
        posinf=np.array([0, 0]),
        neginf=np.array([0, 0]),
        count=3,
    )
    rows = list(csv.DictReader(io.StringIO(statistics_csv(summary_of(values), channels))))
    assert [row["channel"] for row in rows] == ["all", "0", "1"]
    assert float(rows[0]["mean"]) == np.nanmean(values)
    assert [float(row["std"]) for row in rows[1:]] == channels.std.tolist()
    assert [(row["nan"], row["zeros"], row["count"]) for row in rows] == [
        ("1", "2", "6"),
        ("1", "0", "3"),
        ("0", "2", "3"),
    ]
    assert float(rows[2]["sparsity"]) == 2 / 3
    assert rows[0]["dtype"] == "float32"


def test_statistics_that_do_not_exist_are_empty_cells() -> None:
    """C34: an empty tensor has a count and nothing else."""
    (row,) = csv.DictReader(io.StringIO(statistics_csv(summary_of(np.empty(0)))))
    assert (row["count"], row["mean"], row["std"], row["min"], row["max"], row["sparsity"]) == ("0", "", "", "", "", "")
