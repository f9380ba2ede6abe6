"""Links that lead nowhere are found, with file and line; others are not."""

from pathlib import Path

import pytest

from tools.docs import links


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "other.txt").touch()
    (docs / "other.md").write_text("# `limits.trial` and more\n\n```\n# no heading\n```\n")
    monkeypatch.setattr(links, "ROOT", tmp_path)
    monkeypatch.setattr(links, "DOCS", docs)
    return docs / "page.md"


@pytest.mark.parametrize(
    "link", ["other.md", "other.md#limitstrial-and-more", "#here", "page.md#here", "https://example.org/a?b=c#d"]
)
def test_a_good_link_is_not_named(page: Path, link: str) -> None:
    page.write_text(f"# Here\n\n[x]({link})\n")
    assert list(links.broken_links(page)) == []


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nowhere.md", "there is no such file"),
        ("other.md#no-heading", "the page has no such heading"),
        ("#there", "the page has no such heading"),
        ("../other.txt", "the site holds only the files of docs/"),
        ("../docs", "the site holds only the files of docs/"),
        ("http://example.org/", "this is no https URL"),
        ("https://example", "this is no https URL"),
        ("https:/example.org", "this is no https URL"),
    ],
)
def test_a_bad_link_is_named_with_its_line(page: Path, link: str, problem: str) -> None:
    page.write_text(f"# Here\n\na [x](other.md) and ![y]({link})\n")
    assert list(links.broken_links(page)) == [f"docs/page.md:3: {link}: {problem}"]


def test_code_has_no_links(page: Path) -> None:
    page.write_text("```\n[x](nowhere.md)\n```\n")
    assert list(links.broken_links(page)) == []
