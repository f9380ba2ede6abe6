"""Fills templates, and serves the files that they refer to."""

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval_client.report.html.rendering import drawn, report_style
from eval_client.report.plots.svg import stylesheet
from proctor.observability.redaction import visible
from proctor.tables.table import MISSING, entry_lines

HERE = Path(__file__).parent
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file that pages refer to, by an address that changes with its content."""

    address: str
    content: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """name of a file -> the asset."""
    contents = {path.name: path.read_bytes() for path in sorted((HERE / "assets").iterdir())}
    contents["view.css"] += stylesheet().encode()
    contents["report.css"] = report_style().encode()
    return {name: _asset(Path(name), content) for name, content in contents.items()}


def _asset(name: Path, content: bytes) -> Asset:
    digest = hashlib.blake2b(content, digest_size=6).hexdigest()
    return Asset(f"/assets/{name.stem}.{digest}{name.suffix}", content, MEDIA_TYPES[name.suffix])


@cache
def template_environment() -> Environment:
    """What templates are rendered in."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
        auto_reload=False,
    )
    addresses = {name: asset.address for name, asset in assets().items()}
    made.filters["drawn"] = drawn
    made.globals.update(assets=addresses, link=link, number=number, entry_lines=entry_lines)
    return made


def shown(value: object) -> object:
    """What a template shows of a value: a dash for None, and texts with their control characters as escapes."""
    if value is None:
        return MISSING
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def number(value: float | None, form: str, kind: str = "") -> Markup:
    """A number in a format, with its exact value for programs, and the class `kind` in the page; a dash for None."""
    named = f' class="{kind}"' if kind else ""
    if value is None:
        return Markup(f"<span{named}>{MISSING}</span>" if kind else MISSING)
    return Markup(f'<data{named} value="{value}">{form.format(value)}</data>')  # a numeric form takes no text


def link(*parts: object, **query: object) -> str:
    """An address of the viewer: parts of its path, each quoted whole, and its query without empty values."""
    path = "/" + "/".join(quote(str(part), safe="", errors="replace") for part in parts)
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given, errors='replace')}" if given else path
