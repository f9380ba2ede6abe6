"""Fills templates, and serves the files that they refer to."""

import hashlib
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from eval_client.report.plots.svg import STYLESHEET, Plot
from proctor.observability.redaction import visible
from proctor.tables.table import MISSING, ResultTable, entry_lines

HERE = Path(__file__).parent
NEWLINE = "\n"
PARSER = MarkdownIt("commonmark", {"html": False})
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
    contents["view.css"] += STYLESHEET.read_bytes()
    found = {}
    for name, content in contents.items():
        digest, path = hashlib.blake2b(content, digest_size=6).hexdigest(), Path(name)
        found[name] = Asset(f"/assets/{path.stem}.{digest}{path.suffix}", content, MEDIA_TYPES[path.suffix])
    return found


@cache
def template_environment() -> Environment:
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
    made.filters.update(drawn=drawn, groups=column_groups)
    made.globals.update(assets=addresses, link=link, number=number, entry_lines=entry_lines)
    return made


def column_groups(table: ResultTable) -> list[tuple[str, int]]:
    """Titles over columns, and how many columns each is over; empty where there are none."""
    spans = [(group, len(list(columns))) for group, columns in groupby(table.columns, lambda column: column.group)]
    return spans if any(group for group, _ in spans) else []


def drawn(plot: Plot) -> Markup:
    """A plot's picture."""
    return Markup(plot.svg)  # made by our own functions, which escape every text


def from_markdown(text: str) -> Markup:
    """The HTML of a trial's Markdown: each message is a `div` of the class that its heading begins with."""
    parts, inside = list[str](), False
    tokens = iter(PARSER.parse(text))
    for token in tokens:
        if inside and token.type in ("heading_open", "hr"):
            parts.append("</div>")
            inside = False
        if token.type == "heading_open":
            heading, again = next(tokens), " again" if token.tag == "h5" else ""
            if token.tag in ("h1", "h2"):
                parts.append(f"<h3>{_inline(heading)}</h3>")
                continue
            kind = heading.content.partition(" ")[0]
            parts.append(f'<div class="message {escape(kind)}{again}"><h4>{_inline(heading)}</h4>')
            inside = True
        elif token.type == "fence":
            parts.append(f'<pre class="words">{escape(token.content.removesuffix(NEWLINE))}</pre>')
        elif token.type == "inline":
            parts.append(_inline(token) if token.level > 1 else f'<p class="{_kind(token)}">{_inline(token)}</p>')
        elif token.type.startswith(("bullet_list", "list_item")):
            parts.append(f"<{'/' if token.nesting < 0 else ''}{token.tag}>")
    return Markup("".join([*parts, "</div>" if inside else ""]))  # texts are escaped here and by the parser


def _inline(token: Token) -> str:
    return str(PARSER.renderer.render(token.children or [], PARSER.options, {}))


def _kind(paragraph: Token) -> str:
    """The class of a paragraph: trouble is all in bold."""
    children = [each.type for each in paragraph.children or () if each.type != "text" or each.content]
    bold = children[0] == "strong_open" and children[-1] == "strong_close"
    return "problem" if bold and children.count("strong_open") == 1 else "aside"


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
