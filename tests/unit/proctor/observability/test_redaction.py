"""No redacted text shows a secret."""

import asyncio
import base64
import html
import json
import logging
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from urllib.parse import quote, quote_plus

import pytest
from click.testing import CliRunner

from agent_server.errors import RequestRefused
from eval_client.cli.doctor.finding import fail
from eval_client.cli.main import proctor
from eval_client.cli.usage import UsageProblem
from eval_client.plan.plan import Plan
from eval_client.report.scrub import publishable
from proctor.agent_function import FunctionCaller, FunctionRaised
from proctor.config.yaml import FileError, parse
from proctor.llm.traces import messages_text
from proctor.observability.logging import Handler, JsonLines
from proctor.observability.redaction import redacted, remember
from proctor.tables.table import ResultTable, TableColumn
from proctor.tables.text import text as table_text
from proctor.types import Finish, FinishReason, Message, Tool
from proctor_bridges.gateway.openenv_client import Failure
from proctor_bridges.gateway.wires import refused
from task_server.wire.errors import NotReady
from tests.pace import cost_s

SECRET = 'canary/7f 3a+9c"é0'


def base64_within(lead: int, key: str) -> str:
    return base64.b64encode(b"x" * lead + key.encode() + b"y").decode()


SPELT: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "URL": quote,
    "URL with slashes": lambda key: quote(key, safe=""),
    "form": quote_plus,
    "URL, all of it": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "URL in URL": lambda key: quote(quote(key, safe=""), safe=""),
    "JSON": json.dumps,
    "JSON with slashes": lambda key: json.dumps(key).replace("/", r"\/"),
    "JSON in JSON": lambda key: json.dumps(json.dumps(json.dumps(key))),
    "JSON, all of it": lambda key: "".join(f"\\u{ord(each):04X}" for each in key),
    "bytes": lambda key: repr(key.encode("latin-1")),
    "C": lambda key: "".join(f"\\x{ord(each):02x}" for each in key),
    "octal": lambda key: "".join(f"\\{ord(each):03o}" for each in key),
    "JavaScript": lambda key: "".join(f"\\u{{{ord(each):x}}}" for each in key),
    "HTML": html.escape,
    "HTML by numbers": lambda key: "".join(f"&#{ord(each):04};" for each in key),
    "HTML by hex digits": lambda key: "".join(f"&#x{ord(each):X};" for each in key),
    "HTML by names": lambda key: key.replace("/", "&sol;").replace("+", "&plus;").replace('"', "&quot;"),
    "HTML in HTML in JSON": lambda key: json.dumps(html.escape(html.escape(key))).replace("&", r"\u0026"),
    "shell": lambda key: shlex.quote(f"it's {key}"),
    "shell in pieces": lambda key: f"'{key[:5]}'\\''{key[5:9]}'\"{key[9:]}\"",
    "shell with backslashes": lambda key: "".join(f"\\{each}" if not each.isalnum() else each for each in key),
    "over lines": lambda key: f"{key[:6]}\r\n    {key[6:]}",
    "over lines in JSON": lambda key: json.dumps(f"{key[:6]}\n\t{key[6:]}"),
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "base64 in a URL": lambda key: quote(base64.b64encode(key.encode()).decode(), safe=""),
    "base64 over lines": lambda key: "\n".join(wrap(base64.b64encode(b"user:" + key.encode()).decode(), 10)),
    "hex": lambda key: key.encode().hex(),
    **{f"base64 {lead} bytes in": partial(base64_within, lead) for lead in range(4)},
}
"""Name -> how a text that somebody repeats may spell a key."""


def logged(formatter: logging.Formatter, text: str) -> str:
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "b", 1, "%s", (text,), sys.exc_info())
    handler = Handler(sys.stderr)
    handler.setFormatter(formatter)
    return handler.format(record)


def raised(text: str) -> str:
    """What is told of a function of the user's that fails."""

    def function(_messages: Sequence[Message], _tools: Sequence[Tool]) -> str:
        raise ValueError(text)

    with pytest.raises(FunctionRaised) as failure:
        asyncio.run(FunctionCaller(function)([], []))
    return str(failure.value)


SINKS: Mapping[str, Callable[[str], str]] = {
    "text": redacted,
    "log": lambda text: logged(logging.Formatter(), text),
    "JSON log": lambda text: logged(JsonLines("client"), text),
    "usage error": lambda text: UsageProblem(text).message,
    "problem of a server": lambda text: NotReady(text).problem().model_dump_json(),
    "error of an agent server": lambda text: RequestRefused(500, text).body().decode(),
    "error of a gateway": lambda text: bytes(refused(500, text).body).decode(),
    "frame of a gateway": lambda text: json.dumps(Failure("EXECUTION_ERROR", text).data),
    "cause": lambda text: Finish.fault(FinishReason.TASK_ERROR, text).model_dump_json(),
    "failure of a function": raised,
    "finding": lambda text: fail("key-broken", text, "it fails", text).model_dump_json(),
    "table": lambda text: table_text(ResultTable(text, (TableColumn(text),), (), (text,)), 80),
    "span": lambda text: messages_text([Message(role="user", content=text)]),
    "page of a report": publishable,
}
"""What tells of a failure -> what it makes of a text."""


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("spelt", SPELT)
def test_no_key_is_told_however_it_is_spelt(spelt: str, sink: str) -> None:
    remember(SECRET)
    shown = SINKS[sink](f"before {SPELT[spelt](SECRET)} after")
    assert "before " in shown
    assert " after" in shown
    assert "***" in shown
    for fragment in ("7f 3a", "7f%203a", "7f+3a", "9c", "N2Yg", base64.b64encode(SECRET.encode()).decode()[4:-4]):
        assert fragment not in shown


@pytest.mark.parametrize("spelt", [*SPELT])
def test_what_is_hidden_of_a_long_text_is_the_key_alone(spelt: str) -> None:
    remember(SECRET)
    around = json.dumps({"a": "C:\\\\new 100% &amp; %41 'b'\n" * 20})
    shown = redacted(f"{around} {SPELT[spelt](SECRET)} {around}")
    assert shown.startswith(around)
    assert shown.endswith(around)
    assert len(shown) < 2 * len(around) + 40


def test_a_json_line_of_the_log_stays_json_whatever_is_hidden_in_it() -> None:
    remember(SECRET)
    for spell in SPELT.values():
        assert "***" in json.loads(SINKS["JSON log"](f"before {spell(SECRET)}\x7f\x9b\ud800 after"))["message"]


@pytest.mark.thorough
@pytest.mark.parametrize("piece", ["\\", "%25", "\\u005c", "&#", "\n \\n\t", "'", "&amp;", " \n"])
def test_no_text_takes_longer_than_its_length(piece: str) -> None:
    remember(SECRET)
    short, long = (piece * (size // len(piece)) for size in (100_000, 800_000))
    assert cost_s(lambda: redacted(long)) < 20 * cost_s(lambda: redacted(short), tries=3)


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (["a", "EMPTY"], "a plan, EMPTY", "a plan, EMPTY"),
        (["first-secret", "first-secret-and-more"], "first-secret-and-more", "***"),
    ],
    ids=["a short one would garble every text", "the longer one goes first"],
)
def test_which_secrets_are_hidden(secrets: Sequence[str], text: str, shown: str) -> None:
    for secret in secrets:
        remember(secret)
    assert redacted(text) == shown


def test_what_would_command_a_terminal_is_shown_instead() -> None:
    assert redacted("\x1b[31mred\x1b]0;title\x07 \x9b2J a\rb \u202eabc \0") == (
        r"\x1b[31mred\x1b]0;title\x07 \u009b2J a\rb \u202eabc \x00"
    )
    assert redacted("two\nlines\tand all of ünïcödé 日本") == "two\nlines\tand all of ünïcödé 日本"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at postgresql+psycopg://me:pw@host/db", "at postgresql+psycopg://***@host/db"),
        ("http://:pw@h:1/v1 and https://u:@h", "http://***@h:1/v1 and https://***@h"),
        ("http://127.0.0.1:8000/v1@x", "http://127.0.0.1:8000/v1@x"),
        ("10:30 a@b.c", "10:30 a@b.c"),
        ("Authorization: Bearer abc.def-123", "Authorization: ***"),
        ("key sk-abcdef123 is wrong", "key *** is wrong"),
    ],
)
def test_user_info_and_what_looks_like_a_key_is_hidden(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_a_mistake_in_a_file_shows_no_user_info_of_a_url() -> None:
    with pytest.raises(FileError, match=r"http://\*\*\*@h/x") as mistake:
        parse("name: http://me:pw@h/x", "plan.yaml", Plan)
    assert "pw" not in str(mistake.value)


def test_a_list_of_runs_commands_no_terminal(tmp_path: Path) -> None:
    run = tmp_path / "red\x1b[31m\nrun"
    run.mkdir()
    (run / "run.sqlite").write_text("no database")
    listed = CliRunner().invoke(proctor, ["ls", "--output", str(tmp_path)]).output
    assert listed.startswith("red\\x1b[31m\\nrun: unreadable, ")
    assert listed.count("\n") == 1
