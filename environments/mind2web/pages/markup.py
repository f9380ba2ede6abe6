"""A pruned page as the text an agent reads (Mind2Web, arXiv 2306.06070, section 4.1)."""

from typing import NamedTuple
from xml.sax.saxutils import escape

from lxml import etree

from environments.mind2web.pages.pruning import Part, Words

ATTRIBUTES = (
    "role",
    "aria_role",
    "type",
    "alt",
    "aria_description",
    "aria_label",
    "label",
    "title",
    "name",
    "text_value",
    "value",
    "placeholder",
    "input_checked",
    "input_value",
    "option_selected",
    "class",
)
"""The attributes that say something, in the order in which they are told."""
LABEL_WORDS = 10
_MEANINGLESS = frozenset(("hidden", "none", "presentation", "null", "undefined"))
_WORD_LENGTH = 15
_VALUE_WORDS = 5
_WORDS = 20
"""Of all attributes of an element, and of each text node."""
_ENTITIES = (
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&nbsp;", " "),
    ("&ndash;", "-"),
    ("&rsquo;", "'"),
    ("&lsquo;", "'"),
    ("&ldquo;", '"'),
    ("&rdquo;", '"'),
    ("&#39;", "'"),
    ("&#40;", "("),
    ("&#41;", ")"),
)


class Brackets(NamedTuple):
    """How tags are written: `{}` stands for the name and the words of an opening tag, for the name of a closing one."""

    opening: str
    closing: str
    empty: str


ANGLE = Brackets("<{}>", "</{}>", "<{}/>")
"""What agents read."""
ROUND = Brackets("({}", ")", "({})")
"""What the published models were trained on."""


class ElementChoice(NamedTuple):
    """A candidate as a choice."""

    id: str
    label: str
    """The first words of its part of the page."""


class Rendered(NamedTuple):
    """The text of a page, and its candidates in document order."""

    text: str
    choices: tuple[ElementChoice, ...]


def render(page: Part, brackets: Brackets = ANGLE) -> Rendered:
    """A pruned page in one line, its candidates numbered from 0 in document order."""
    writer = _Writer(brackets)
    writer.write(page)
    choices = [
        ElementChoice(name, " ".join(_finished("".join(writer.pieces[start:end])).split(" ")[:LABEL_WORDS]))
        for name, (start, end) in writer.spans.items()
    ]
    return Rendered(_finished("".join(writer.pieces)), tuple(choices))


class _Writer:
    """Collects the pieces of the text; `spans` holds where each candidate begins and ends among them."""

    def __init__(self, brackets: Brackets) -> None:
        self._brackets = brackets
        self.pieces: list[str] = []
        self.spans: dict[str, tuple[int, int]] = {}

    def write(self, part: Part) -> None:
        """The element, its children and the text between them; not its tail."""
        start, name = len(self.pieces), str(part.node.tag)
        head = name
        if part.candidate is not None:
            head += f" id={len(self.spans)}"
            self.spans[part.candidate] = (start, start)
        if words := attribute_words(part.node):
            head += " " + escape(words, {'"': "&quot;"})
        if part.lead or part.children:
            self.pieces += [self._brackets.opening.format(head), _escaped(part.lead)]
            for child in part.children:
                self._child(child)
            self.pieces.append(self._brackets.closing.format(name))
        else:
            self.pieces.append(self._brackets.empty.format(head if head == name else head + " "))
        if part.candidate is not None:
            self.spans[part.candidate] = (start, len(self.pieces))

    def _child(self, child: Part | Words) -> None:
        if isinstance(child, Words):
            self.pieces.append(_escaped(" ".join(child.text.split()[:_WORDS])))
        else:
            self.write(child)
        self.pieces.append(_escaped(child.tail))


def attribute_words(node: etree._Element) -> str:
    """What an element's attributes say, in at most 20 words."""
    said: dict[str, None] = {}
    for name in ATTRIBUTES:
        value = (node.get(name) or "").lower()
        if value not in _MEANINGLESS and not value.startswith("http"):
            said[" ".join([word for word in value.split() if len(word) < _WORD_LENGTH][:_VALUE_WORDS])] = None
    return " ".join(" ".join(said).split()[:_WORDS])


def _escaped(text: str) -> str:
    """As XML, but for double quotes, which are blanks."""
    return escape(text).replace('"', " ")


def _finished(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return " ".join(text.split())
