"""A page read by the standard library's parser, strictly: every element that opens must close."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "source", "col"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    inside: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(one if isinstance(one, str) else one.text for one in self.inside)

    @property
    def classes(self) -> list[str]:
        return self.attributes.get("class", "").split()

    def walk(self) -> Iterator[Node]:
        for one in self.inside:
            if isinstance(one, Node):
                yield one
                yield from one.walk()

    def every(self, tag: str, class_: str = "") -> list[Node]:
        return [one for one in self.walk() if one.tag == tag and (not class_ or class_ in one.classes)]

    def by_id(self, name: str) -> Node:
        (found,) = [one for one in self.walk() if one.attributes.get("id") == name]
        return found

    def table(self, says: str) -> tuple[list[str], list[list[str]]]:
        """The heads and cells of the table that says so."""
        (box,) = [one for one in self.every("div", "scroll") if one.attributes.get("aria-label") == says]
        rows = [[cell.text for cell in row.walk() if cell.tag in {"td", "th"}] for row in box.every("tr")]
        return rows[0], rows[1:]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [key for key, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        node = Node(tag, {key: value or "" for key, value in attrs})
        self.open[-1].inside.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].inside.append(Node(tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def read(page: str) -> Node:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    (root,) = reader.open
    return root
