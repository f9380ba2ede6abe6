"""The glossary names every term once, in alphabetical order."""

import re

from tests.support import ROOT

TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- \*\*(.+?)\*\*: (.*?)(?=^- |\Z)", TEXT, flags=re.MULTILINE | re.DOTALL)
TERMS = [term for term, _ in ENTRIES]


def test_the_terms_are_sorted() -> None:
    assert len(TERMS) > 60
    assert sorted(TERMS, key=str.casefold) == TERMS


def test_no_term_stands_twice() -> None:
    names = [term.casefold() for term in TERMS]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_every_line_of_the_list_belongs_to_an_entry() -> None:
    assert len(re.findall(r"^- ", TEXT, flags=re.MULTILINE)) == len(TERMS)


def test_a_meaning_is_one_to_three_sentences() -> None:
    sentences = {term: len(re.findall(r"\.(?:\s|$)", meaning)) for term, meaning in ENTRIES}
    assert {term: count for term, count in sentences.items() if not 1 <= count <= 3} == {}


def test_a_term_in_italics_is_in_the_list() -> None:
    named = {word.casefold() for word in re.findall(r"(?<!\*)\*([A-Za-z][^*\n]*)\*(?!\*)", TEXT)}
    assert named
    assert sorted(named - {term.casefold() for term in TERMS}) == []
