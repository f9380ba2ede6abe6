"""The dialects of endpoints: how a request is written and its reply read. All else is the same for all of them."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Protocol, cast

if TYPE_CHECKING:
    from proctor.llm.dialects import chat, messages, responses
    from proctor.llm.wire import Fields, Form, Messages, Reply, Request, Tools

DialectName = Literal["chat", "responses", "messages"]
PATHS: Mapping[DialectName, str] = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
"""Where requests go, behind a base URL."""


class Dialect(Protocol):
    """A module of this package: where requests go and with which key, unless a plan says otherwise."""

    PATH: str
    KEY_HEADER: str
    KEY_ENV: str
    BASE_URL_ENV: str
    BASE_URL: str
    LEAST_TOKENS: int
    """Fewer in an answer can't be asked for."""
    LACKS: Mapping[str, str]
    """Fields of sampling that the dialect lacks, and what to write in their place."""

    def request(self, conversation: "Messages", tools: "Tools", fields: "Fields", form: "Form" = ...) -> "Request":
        """The request for the next message of a conversation; `fields` are its other ones: the model, the sampling."""

    def read(self, body: bytes) -> "Reply":
        """The completion in a reply, read as tolerantly as possible. Raises ValidationError where there is none."""


def dialect_of(name: DialectName) -> Dialect:
    """A dialect, imported when it is first asked for: who only reads plans and results asks for none."""
    return cast(Dialect, importlib.import_module(f"{__name__}.{name}"))


if TYPE_CHECKING:
    _WHOLE: tuple[Dialect, ...] = (chat, messages, responses)
