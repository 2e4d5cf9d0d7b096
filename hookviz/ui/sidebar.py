"""The sidebar: which model, which image."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from hookviz.models import list_weights
from hookviz.models.device import available_devices
from hookviz.models.model import UNTRAINED
from hookviz.samples import list_samples, sample_bytes
from hookviz.ui import resources, state
from hookviz.ui.resources import MOVING
from hookviz.ui.style import show


@dataclass(frozen=True, slots=True)
class ChosenImage:
    """The file to show, what it is called, and where the network compares two frames, the file with the second."""

    content: bytes
    title: str
    second: bytes | None = None

    @property
    def key(self) -> str:
        """What the bytes are known by."""
        return " ".join(resources.digest(content) for content in (self.content, self.second) if content is not None)


def show_brand() -> None:
    """The name of the page."""
    show('<div class="hv-brand">hookviz</div><div class="hv-quiet">see what the network computes</div>')


def choose_model() -> tuple[str, str]:
    """The model's name and its weights' name."""
    name = st.selectbox("Model", state.options(state.MODEL), key=state.MODEL, on_change=state.model_changed)
    available = list_weights(name)
    state.settle_weights(available)
    weights = st.selectbox("Weights", available, key=state.WEIGHTS, on_change=state.changed, format_func=_weights_title)
    return name, weights


def _weights_title(name: str) -> str:
    return "untrained (seeded)" if name == UNTRAINED else name


def choose_image(task: str) -> ChosenImage:
    """The image for a network's task: an upload, a photo, or a sample, whichever was chosen last."""
    upload = st.file_uploader(
        "Image" if task not in MOVING else "Image or film",
        key=state.UPLOAD,
        on_change=state.use_image_from,
        args=(state.UPLOAD,),
        help=(
            "JPEG, PNG, WebP, AVIF, TIFF, GIF, BMP and others, decided by content. It stays in this server's memory."
            + (" Of an animated GIF, WebP or PNG, or a short film, every frame counts." if task in MOVING else "")
        ),
    )
    second = _choose_second() if task == "optical flow" else None
    titles = {sample.name: sample.title for sample in list_samples()}
    st.pills(
        "or a sample",
        state.options(state.SAMPLE),
        key=state.SAMPLE,
        format_func=titles.__getitem__,
        on_change=state.use_image_from,
        args=(state.SAMPLE,),
    )
    photo = None
    if st.toggle("or take a photo", key="use camera"):
        photo = st.camera_input(
            "Photo",
            key=state.CAMERA,
            label_visibility="collapsed",
            on_change=state.use_image_from,
            args=(state.CAMERA,),
        )
    match state.image_source():
        case state.UPLOAD if upload is not None:
            return ChosenImage(upload.getvalue(), upload.name, second)
        case state.CAMERA if photo is not None:
            return ChosenImage(photo.getvalue(), "photo", second)
        case _:
            sample = state.chosen(state.SAMPLE)
            return ChosenImage(sample_bytes(sample), titles[sample], second)


def _choose_second() -> bytes | None:
    file = st.file_uploader(
        "Second frame",
        key="second frame",
        on_change=state.changed,
        help="The network says where each pixel of the first went in the second. Both have the same size.",
    )
    return None if file is None else file.getvalue()


def choose_own_weights(name: str) -> tuple[bytes | None, bytes | None]:
    """A visitor's own weights and class names for a model, where there are any."""
    with st.expander("Your own weights"):
        own = st.file_uploader(
            f"Weights for {name}",
            key=f"own weights of {name}",
            max_upload_size=1024,
            on_change=state.changed,
            help="A state_dict as .safetensors, .pt, .pth or .bin. Nothing in the file is ever run.",
        )
        classes = st.file_uploader(
            "Class names",
            key=f"class names of {name}",
            on_change=state.changed,
            help="A text file with one name a line, or a JSON list or dictionary.",
        )
    if own is None:
        return None, None
    return own.getvalue(), None if classes is None else classes.getvalue()


def choose_device() -> str:
    """The device to run on; a choice is offered where there is one."""
    names = [str(device) for device in available_devices()]
    if len(names) == 1:
        return names[0]
    return st.selectbox("Device", names, key="device choice", on_change=state.changed)
