"""Mending what Streamlit does with elements that are not sent yet when their fragment runs again.

It drops those of the fragment, but keeps those of the fragments inside it. Their places are gone with what was dropped,
so the browser throws "Bad delta path index" and shows a white page: a channel opened and closed at once, for instance.
The fragment that runs again draws the ones inside it anew, so what they had to send is as outdated as its own.
"""

from __future__ import annotations

from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

_Path = tuple[int, ...]


class UnsentElements(ForwardMsgQueue):
    """Streamlit's queue of messages to one browser, which forgets a fragment's elements with all that is inside it."""

    def __init__(self) -> None:
        super().__init__()
        self._place_of: dict[str, _Path] = {}

    def enqueue(self, msg: ForwardMsg) -> None:
        """Take a message in, and note where the container of its fragment is: the first that a run of it sends."""
        path = tuple(msg.metadata.delta_path)
        fragment = msg.delta.fragment_id
        if fragment and not _is_within(path, self._place_of.get(fragment)):
            self._place_of[fragment] = path
        super().enqueue(msg)

    def clear(self, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None) -> None:
        """Forget what is outdated; with ``fragment_ids_this_run``, what these fragments and those inside them sent."""
        super().clear(retain_lifecycle_msgs, fragment_ids_this_run)
        if retain_lifecycle_msgs and fragment_ids_this_run is not None:
            places = [self._place_of.get(fragment) for fragment in fragment_ids_this_run]
            self._queue: list[Any] = [
                msg
                for msg in self._queue
                if not any(_is_within(tuple(msg.metadata.delta_path), place) for place in places)
            ]


def _is_within(path: _Path, place: _Path | None) -> bool:
    return place is not None and path[: len(place)] == place
