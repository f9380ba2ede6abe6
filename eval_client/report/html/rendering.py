"""Fills the templates of files that are published: their own style, and nothing from elsewhere."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from eval_client.report.plots.svg import Plot, shown, stylesheet

TEMPLATES = Path(__file__).with_name("templates")
Link = tuple[str, str]
"""A text and its address."""


def report_style() -> str:
    """The rules of reports and their plots."""
    return (TEMPLATES / "report.css").read_text(encoding="utf-8") + stylesheet()


def rendered(template: str, *, linked_style: str = "", back: Sequence[Link] = (), **values: object) -> str:
    """A whole file; or a page of a server, which takes its style from an address and has links back."""
    style = report_style()
    return (
        _environment()
        .get_template(template)
        .render(
            linked_style=linked_style,
            back=back,
            style=Markup(style),  # our own file
            style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
            **values,
        )
    )


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_plain,
    )
    made.filters["drawn"] = drawn
    return made


def _plain(value: object) -> object:
    """Texts without characters that control terminals or the direction of text."""
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def drawn(plot: Plot) -> Markup:
    """A plot's picture."""
    return Markup(plot.svg)  # made by our own functions, which escape every text
