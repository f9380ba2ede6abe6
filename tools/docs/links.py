"""The links of Markdown pages: whether they lead somewhere."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^()\s]*)\)")
_URL = re.compile(r"https://[a-z0-9.-]+\.[a-z]+(/[\w./?&=%~+-]*)?(#[\w.-]+)?")


def all_pages() -> list[Path]:
    """Every page that people have written, in and beside docs/; those that runs print are in docs/gallery."""
    beside = (ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docker/README.md"))
    printed = {*(DOCS / "gallery").glob("*.md")} - {DOCS / "gallery" / "index.md"}
    return sorted([*beside, *({*DOCS.rglob("*.md")} - printed)])


def broken_links(page: Path) -> Iterator[str]:
    """`file:line: link: what is wrong` for each link of a page that leads nowhere; of URLs only the form is checked."""
    for number, line in _prose(page):
        for link in _LINK.findall(line):
            if (problem := _problem(page, link)) is not None:
                yield f"{page.relative_to(ROOT)}:{number}: {link}: {problem}"


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and the site make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _problem(page: Path, link: str) -> str | None:
    if urlsplit(link).scheme:
        return None if _URL.fullmatch(link) else "this is no https URL"
    path, _, wanted = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return "there is no such file"
    if page.is_relative_to(DOCS) and not (target.is_file() and target.is_relative_to(DOCS)):
        return "the site holds only the files of docs/"
    if wanted and wanted not in _anchors(target):
        return "the page has no such heading"
    return None


@cache
def _anchors(page: Path) -> set[str]:
    return {anchor(line.lstrip("# ")) for _, line in _prose(page) if line.startswith("#")}


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page outside code blocks, with their numbers."""
    code = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("```"):
            code = not code
        elif not code:
            yield number, line
