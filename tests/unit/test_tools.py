"""Broken links are found, references have tables of routes, and generators make the shipped samples."""

import gzip
import lzma
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI, Request, Response

from proctor.http.server import add_route
from tests.support import ROOT
from tools.datagen.__main__ import main
from tools.docs import links
from tools.docs.http_api import route_table


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


UNPACK = {".gz": gzip.decompress, ".xz": lzma.decompress}


def unpacked(folder: Path) -> dict[str, bytes]:
    return {path.name: UNPACK[path.suffix](path.read_bytes()) for path in folder.iterdir() if path.suffix in UNPACK}


@pytest.mark.thorough
def test_the_generators_make_the_shipped_samples(tmp_path: Path) -> None:
    main(tmp_path)
    for world, count in (("alfworld", 1), ("mind2web", 21), ("webshop", 3)):
        made = unpacked(tmp_path / world)
        assert len(made) == count
        assert made == unpacked(ROOT / "environments" / world / "samples"), world


async def named(request: Request) -> Response:
    """What it does. Raises ValueError.

    And how.
    """
    return Response(request.url.path)


def test_routes_have_their_whole_path_and_the_first_paragraph_of_their_docstring() -> None:
    app, part = FastAPI(), APIRouter(prefix="/part")
    add_route(app.router, "GET", "/", named)
    add_route(part, "POST", "/{name}", named)
    app.include_router(part)
    assert route_table(app.openapi()).splitlines()[2:] == [
        "| GET | `/` | What it does. |",
        "| POST | `/part/{name}` | What it does. |",
    ]
