"""Renders a pruned page as the text that an agent reads (Mind2Web, arXiv 2306.06070, section 4.1)."""

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
"""The attributes that are rendered, in the order of the text."""
LABEL_WORDS = 10
_MEANINGLESS = frozenset(("hidden", "none", "presentation", "null", "undefined"))
_WORD_LENGTH = 15
_VALUE_WORDS = 5
_WORDS = 20
"""Limit for all attributes of an element together, and for each text node."""
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
    """Format strings for tags: `{}` is the name and attribute words in an opening tag, the name in a closing one."""

    opening: str
    closing: str
    empty: str


ANGLE = Brackets("<{}>", "</{}>", "<{}/>")
"""The form that agents read."""
ROUND = Brackets("({}", ")", "({})")
"""The form that the published models were trained on."""


class ElementChoice(NamedTuple):
    """A candidate as a choice of a question."""

    id: str
    label: str
    """The first ten words of the candidate's rendered text."""


class Rendered(NamedTuple):
    """The text of a page, and its candidates in document order."""

    text: str
    choices: tuple[ElementChoice, ...]


def render(page: Part, brackets: Brackets = ANGLE) -> Rendered:
    """A pruned page as one line of text, with candidates numbered from 0 in document order."""
    writer = _Writer(brackets)
    writer.write(page)
    choices = [
        ElementChoice(name, " ".join(_finished("".join(writer.pieces[start:end])).split(" ")[:LABEL_WORDS]))
        for name, (start, end) in writer.spans.items()
    ]
    return Rendered(_finished("".join(writer.pieces)), tuple(choices))


class _Writer:
    """Collects pieces of text; `spans` maps each candidate's id to its range of pieces."""

    def __init__(self, brackets: Brackets) -> None:
        self._brackets = brackets
        self.pieces: list[str] = []
        self.spans: dict[str, tuple[int, int]] = {}

    def write(self, part: Part) -> None:
        """Writes the element, its children and the text between them, without its tail."""
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
    """The words of an element's attributes, at most 20."""
    phrases: dict[str, None] = {}
    for value in [value.lower() for name in ATTRIBUTES if (value := node.get(name))]:
        if value not in _MEANINGLESS and not value.startswith("http"):
            phrases[" ".join([word for word in value.split() if len(word) < _WORD_LENGTH][:_VALUE_WORDS])] = None
    return " ".join(" ".join(phrases).split()[:_WORDS])


def _escaped(text: str) -> str:
    """Text escaped as in XML, with blanks for double quotes."""
    return escape(text).replace('"', " ")


def _finished(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return " ".join(text.split())
