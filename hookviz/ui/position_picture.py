"""A picture with a pixel for each position, of which one can be chosen by mouse, by touch and by arrow keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hookviz.ui import state
from hookviz.ui.own_component import own_component
from hookviz.ui.prediction_panel import data_url

Position = tuple[int, int]

_SHRUNK_FROM = 300
"""CSS pixels; a picture that has more is shrunk, and without smoothing whole lines would vanish."""

_show = own_component("position_picture", isolate_styles=False)


@dataclass(frozen=True, slots=True)
class PositionPicture:
    """A PNG of ``height`` × ``width`` positions, at most ``widest`` CSS pixels wide, and the lines below it.

    ``alt`` says what it shows. ``chosen`` is marked by a box, ``maximum`` by a ring.
    """

    png: bytes
    height: int
    width: int
    alt: str
    widest: int
    words: Sequence[str]
    chosen: Position | None
    maximum: Position | None = None


def show_position_picture(
    where: state.Where, card: int, picture: PositionPicture, *, channel_turn: int | None = None
) -> None:
    """Show a picture of positions on a card.

    ``channel_turn`` is for the map of the open channel, which the mosaic may show before the server does.
    """
    _show(
        key=state.places_key(where, card),
        data={
            "card": card,
            "previews": channel_turn is not None,
            "of": channel_turn,
            "picture": data_url(picture.png),
            "alt": picture.alt,
            "label": picture.alt,
            "height": picture.height,
            "width": picture.width,
            "widest": picture.widest,
            "dense": picture.width > _SHRUNK_FROM,
            "chosen": picture.chosen,
            "maximum": picture.maximum,
            "words": list(picture.words),
            "turn": state.position_turn(where, card),
        },
        on_position_change=lambda: state.take_position(where, card),
    )
