"""What is not sent yet when a fragment runs again: Streamlit's own messages in its own order, no browser."""

from __future__ import annotations

import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from hookviz.ui.unsent_elements import UnsentElements

CARD, CHANNEL, LOOK, OTHER = "card", "channel", "look", "other"


def block(fragment: str, *path: int) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.fragment_id = fragment
    message.delta.add_block.vertical.SetInParent()
    message.metadata.delta_path.extend(path)
    return message


def element(fragment: str, *path: int) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.fragment_id = fragment
    message.delta.new_element.text.body = "text"
    message.metadata.delta_path.extend(path)
    return message


def finished() -> ForwardMsg:
    message = ForwardMsg()
    message.script_finished = ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY
    return message


OPENING = [
    block(CHANNEL, 0, 3, 2),
    element(CHANNEL, 0, 3, 2, 0),
    block(LOOK, 0, 3, 2, 1),
    element(LOOK, 0, 3, 2, 1, 0),
    element(CHANNEL, 0, 3, 2, 2),
    block(OTHER, 0, 3, 2, 3),
    element(OTHER, 0, 3, 2, 3, 0),
    finished(),
]
"""A channel is opened: its fragment, at place 2 of a card, with two others inside it."""


def sent_at_last(queue: ForwardMsgQueue, opening: list[ForwardMsg], after: int, again: str) -> list[tuple[int, ...]]:
    """Where elements belong that reach the browser when ``again`` runs after so many of the ``opening`` are sent."""
    for message in opening[:after]:
        queue.enqueue(message)
    queue.flush()
    for message in opening[after:]:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[again])
    return [tuple(one.metadata.delta_path) for one in queue.flush() if one.HasField("delta")]


@pytest.mark.parametrize("sent", range(len(OPENING)))
def test_nothing_inside_the_fragment_that_runs_again_is_left(sent: int) -> None:
    assert sent_at_last(UnsentElements(), OPENING, sent, CHANNEL) == []


def test_streamlit_leaves_elements_without_a_place() -> None:
    """Once it does not, there is nothing to mend."""
    assert sent_at_last(ForwardMsgQueue(), OPENING, 4, CHANNEL) == [(0, 3, 2, 3), (0, 3, 2, 3, 0)]


def test_what_is_outside_the_fragment_that_runs_again_stays() -> None:
    beside = [block(CARD, 0, 3), element(CARD, 0, 3, 1), *OPENING, element(CARD, 0, 3, 4), element("", 0, 4)]
    kept = [tuple(one.metadata.delta_path) for one in beside if one.HasField("delta")]
    kept.remove((0, 3, 2, 1))
    kept.remove((0, 3, 2, 1, 0))
    assert sent_at_last(UnsentElements(), beside, 0, LOOK) == kept


def test_a_fragment_is_looked_for_where_it_was_last() -> None:
    moved = [*OPENING[:4], block(LOOK, 0, 3, 5), element(LOOK, 0, 3, 5, 0), element(CHANNEL, 0, 3, 2, 1)]
    assert (0, 3, 2, 1) in sent_at_last(UnsentElements(), moved, 4, LOOK)


def test_that_a_run_ended_is_said_all_the_same() -> None:
    queue = UnsentElements()
    for message in OPENING:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[CHANNEL])
    assert [one.WhichOneof("type") for one in queue.flush()] == ["script_finished"]


def test_a_run_of_the_whole_page_drops_all_elements_as_before() -> None:
    queue = UnsentElements()
    for message in OPENING:
        queue.enqueue(message)
    queue.clear(retain_lifecycle_msgs=True)
    assert [one.WhichOneof("type") for one in queue.flush()] == ["script_finished"]
