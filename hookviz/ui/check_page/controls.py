"""What is checked, and beside what: the choices above the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from hookviz.models import Model
from hookviz.ui import state
from hookviz.ui.check_page.checks import NOTHING, UNTRAINED
from hookviz.ui.check_page.folders import allowed_folders, pictures_in
from hookviz.ui.check_page.sources import (
    MOST_BYTES,
    MOST_IMAGES,
    Images,
    names_classes,
    of_files,
    of_folder,
    of_sidebar,
)
from hookviz.ui.resources import MOVING, digest
from hookviz.ui.sentences import literal
from hookviz.ui.sidebar import ChosenImage

_SOURCE, _FOLDER, _AGAINST, _MOST, _LABELS = "check-images", "check-folder", "check-against", "check-most", "labels"
_IMAGE, _FILES, _IN_FOLDER = "image", "files", "folder"

_TITLES = {_IMAGE: "Sidebar image", _FILES: "Your files", _IN_FOLDER: "Folder"}


def choose_source(model: Model) -> str:
    """Where the images come from; folders are offered where some are allowed, to networks that take one picture."""
    folders = bool(allowed_folders()) and model.task not in MOVING
    options = [_IMAGE, _FILES, *([_IN_FOLDER] if folders else [])]
    state.settle_choice(_SOURCE, options, _IMAGE, parameter="images")
    return str(
        st.segmented_control(
            "Images", options, key=_SOURCE, format_func=_TITLES.__getitem__, required=True, on_change=state.changed
        )
    )


def choose_against(on_change: Callable[[], None]) -> str:
    """What the layers are compared with."""
    options = [UNTRAINED, NOTHING, *state.options(state.MODEL)]
    titles = {UNTRAINED: "The same network untrained", NOTHING: "Nothing"}
    state.settle_choice(_AGAINST, options, UNTRAINED, parameter="against")
    return st.selectbox(
        "Compare layers with",
        options,
        key=_AGAINST,
        format_func=lambda one: titles.get(one, f"{one}, default weights"),
        on_change=on_change,
        help="Layers of the same name are compared on the first images: how alike they respond.",
    )


def choose_images(source: str, model: Model, image: ChosenImage) -> Images | str:
    """The images of a source, or what is still to be done, in a sentence."""
    if source == _FILES:
        return _choose_files(model)
    if source == _IN_FOLDER:
        return _choose_folder(model)
    return of_sidebar(model, image)


def address(source: str, against: str) -> dict[str, str]:
    """What of the choice goes into the address; files cannot."""
    view = {} if against == UNTRAINED else {"against": against}
    if source == _IN_FOLDER:
        view |= {"images": _IN_FOLDER, "folder": state.settled(_FOLDER)}
    return view


def _choose_files(model: Model) -> Images | str:
    shown = st.file_uploader(
        "Images",
        accept_multiple_files=True,
        key=state.FILES,
        label_visibility="collapsed",
        on_change=state.take_files,
    )
    uploads = state.chosen_files()
    if uploads and not shown:
        _show_kept([one.name for one in uploads])
    if not uploads:
        return "Choose one or several files above."
    if len(uploads) > MOST_IMAGES or sum(one.size for one in uploads) > MOST_BYTES:
        return (
            f"These are {len(uploads):,} files of {sum(one.size for one in uploads) / 2**20:,.0f} MB; the page checks "
            f"at most {MOST_IMAGES} and {MOST_BYTES // 2**20} MB at once, check() in Python any number."
        )
    return of_files(model, [ChosenImage(one.getvalue(), one.name) for one in uploads])


def _show_kept(names: Sequence[str]) -> None:
    """The files chosen before another page was shown, which the widget above has forgotten."""
    few = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    with st.container(horizontal=True, vertical_alignment="center", key="kept files"):
        st.caption(f"Still chosen: {literal(few)}", width="content")
        st.button("Take away", key="forget files", type="tertiary", on_click=state.forget_files)


def _choose_folder(model: Model) -> Images | str:
    folders = allowed_folders()
    state.settle_choice(_FOLDER, list(folders), next(iter(folders)), parameter="folder")
    which, how_many, labels = st.columns([3, 1.3, 1.8], gap="medium", vertical_alignment="bottom")
    counts = {name: len(pictures_in(str(path))) for name, path in folders.items()}
    with which:
        name = st.selectbox(
            "Folder",
            list(folders),
            key=_FOLDER,
            format_func=lambda one: f"{one} · {counts[one]:,} picture{'' if counts[one] == 1 else 's'}",
            on_change=state.changed,
        )
    pictures = pictures_in(str(folders[name]))
    if not pictures:
        return "There are no pictures in this folder."
    with how_many:
        most = _choose_most(name, min(MOST_IMAGES, len(pictures)))
    labelled = False
    if names_classes(pictures, model):
        with labels:
            labelled = st.toggle(
                "Folder names are labels",
                key=_LABELS,
                on_change=state.changed,
                help="Each image's class is the name of the folder that it lies in.",
            )
    return of_folder(str(folders[name]), pictures, most, labelled=labelled)


def _choose_most(name: str, most: int) -> int:
    key = f"{_MOST}-{digest(name.encode())[:8]}"
    state.settle_value(key, min(most, 50))
    limits: dict[str, Any] = {"min_value": 1, "max_value": most, "step": 1}
    return int(
        st.number_input("How many", key=key, on_change=state.changed, help="Evenly spread over all of them.", **limits)
    )
