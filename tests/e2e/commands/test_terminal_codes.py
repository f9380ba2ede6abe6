"""No text of others controls a terminal: every command over a hostile run, its questions and its refusals."""

import json
import re
import signal
import socket
import subprocess
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from eval_client.cli.main import SERVERS, proctor
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from tests.e2e.commands.terminal import on_a_terminal
from tests.e2e.pages.hostile import fill
from tests.e2e.preloaded import Forked, preloaded
from tests.e2e.proctor import COMMAND, environment
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply
from tests.pace import slowly

PIECES = (
    "\x1b[48;2;6;6;6mX",  # a colour that nothing of ours has
    "\x1b]8;;https:evil.example\x07Y\x1b]8;;\x07",
    "\x1b]52;c;ZXZpbA==\x1b\\",
    "\x1bP$q\x1b\\ \x1b[2J\x1bc",
    "\x9b31mZ \x9d52;c;eA==\x9c",
    "Q\rW Q\bW \x07\x0b\x0c\x7f",
    "\u202eV\u202c \u2066V\u2069 \u061c\u200f",
    "[link=https:evil.example]L[no such style] :skull:",
)
TEXT = " ".join(PIECES)
NOT_UTF8 = TEXT + "\udcff"
"""As an argument or the name of a file."""
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI", "R", "AL"}


def controls(text: str) -> list[str]:
    """The characters that control a terminal or the direction of text, or are none; each with what is before it."""
    return [
        text[max(0, place - 60) : place + 20]
        for place, each in enumerate(text)
        if (unicodedata.category(each) in ("Cc", "Cs") and each not in "\n\t")
        or (unicodedata.category(each) in ("Cf", "Zl", "Zp") and unicodedata.bidirectional(each) in {*BIDI, "B", "WS"})
    ]


class Ended(NamedTuple):
    code: int
    output: str
    errors: str


def run(arguments: Sequence[str], folder: Path, **variables: str) -> Ended:
    """`proctor ...` to its end with hostile answers to whatever it asks; what goes on is interrupted."""
    full = environment(**variables)
    (folder / "answers").write_text(f"{TEXT}\n" * 40 + "n\n", errors="surrogateescape")
    with (folder / "answers").open() as answers, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        forks = preloaded(arguments[0] if arguments[0] in SERVERS else "ls", full)
        streams: dict[str, Any] = {"stdin": answers, "stdout": out, "stderr": err}
        if forks is None:
            process: subprocess.Popen[str] = subprocess.Popen(
                [*COMMAND, *arguments], cwd=folder, env=full, text=True, **streams
            )
        else:
            process = Forked(forks, arguments, folder, env=full, **streams)
        try:
            code = process.wait(slowly(60))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = process.wait(slowly(60))
    told = [(folder / name).read_bytes().decode("utf-8", "surrogateescape") for name in ("out", "err")]
    return Ended(code, *told)


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Each command of the tree, by its path."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


COMMANDS = dict(leaves(proctor))


def positional(argument: click.Argument, folder: Path) -> str:
    """What an argument is given: the hostile run, a plan of a hostile name, or a hostile text."""
    match argument.name:
        case "run" | "runs" | "reference" | "candidate" | "first" | "second":
            return str(hostile_run(folder))
        case "trial":
            return "0"
        case "plan" | "path":
            return str(folder / f"{TEXT[:60]}.yaml")
    return TEXT


def hostile_run(folder: Path) -> Path:
    return folder / "runs" / TEXT


def uses(path: tuple[str, ...], folder: Path, port: int) -> Iterator[list[str]]:
    """Ways to use a command: its help, what it refuses, and each option with a hostile value or each of its own."""
    command = COMMANDS[path]
    given = [positional(each, folder) for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option)]
    flags = [each.opts[0] for each in options if each.is_flag and each.name not in ("yes", "mcp", "stop_with_stdin")]
    names = {each.name: each.opts[0] for each in options}
    base = [*path, *given]
    for each in options:
        if each.name == "stop_with_stdin":
            base.append(each.opts[0])
        elif each.name == "port":
            base += [each.opts[0], str(port)]
        elif each.required or each.name in ("data", "ray"):
            base += [each.opts[0], TEXT]
    if path[-1] == "generate":
        base += [names["seed"], TEXT]
    if path == ("demo",):
        base += [names["output"], str(folder / "answers")]
    yield [*path, "--help"]
    yield base
    yield [*path, f"--{NOT_UTF8}"]
    yield [*base, TEXT, NOT_UTF8]
    yield [*base, TEXT, TEXT]
    for flag in flags:
        yield [*base, flag]
    for each in options:
        if not each.is_flag:
            yield [*base, each.opts[0], TEXT]
        if isinstance(each.type, click.Choice):
            yield from ([*base, each.opts[0], str(choice)] for choice in each.type.choices)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a run and a plan are hostile by name and by content."""
    made: Path = tmp_path_factory.mktemp("hostile")
    place = hostile_run(made)
    place.mkdir(parents=True)
    store = Store(connect(sqlite_url(place)), place.name)
    fill(store)
    store.engine.dispose()
    unreadable = made / "runs" / NOT_UTF8
    unreadable.mkdir()
    (unreadable / "run.sqlite").write_text("no database")
    plan = {"name": TEXT, "agents": [{"name": TEXT, "endpoint": TEXT}], "tasks": [{"name": TEXT, TEXT: TEXT}]}
    (made / f"{TEXT[:60]}.yaml").write_text(json.dumps(plan))
    return made


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A port that is taken, so that no server goes on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_no_command_passes_on_what_controls_a_terminal(path: tuple[str, ...], folder: Path, port: int) -> None:
    for arguments in uses(path, folder, port):
        ended = run(arguments, folder)
        assert controls(ended.output) == [], arguments
        assert controls(ended.errors) == [], arguments
        if ended.code == 0 and "--json" in arguments:
            for line in ended.output.splitlines():
                json.loads(line)


VARIABLES = (
    *(
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
        "PROCTOR_TOKEN",
        "PROCTOR_TOKEN_FILE",
        "PROCTOR_STORE",
        "PROCTOR_STORE_FILE",
    ),
    *("PROCTOR_LOG_LEVEL", "PROCTOR_LOG_FORMAT", "PROCTOR_METRICS", "PROCTOR_OWNER", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    *("COLUMNS", "EDITOR", "HTTPS_PROXY", "PROCTOR_TLS_CA"),
)
GOOD_PLAN = """
name: good
PARTS
endpoints: [{name: them, base_url: URL/v1, max_tries: 2, max_retry_s: 0.1, patience_s: 1}]
agents: [{name: them, endpoint: them}]
limits: {attempts: 1, patience_s: 1, trial: {turns: 3}}
"""
OWN = "tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]"


@pytest.mark.parametrize("variable", VARIABLES)
def test_no_variable_is_passed_on_as_it_is(variable: str, folder: Path) -> None:
    (folder / "good.yaml").write_text(GOOD_PLAN.replace("PARTS", OWN).replace("URL", "http://127.0.0.1:9"))
    for arguments in (["init", "made.yaml"], ["run", "good.yaml", "--dry-run"], ["doctor", "good.yaml", "--no-calls"]):
        ended = run(arguments, folder, **{variable: TEXT})
        assert controls(ended.output) + controls(ended.errors) == [], arguments


class HostileServer(BaseHTTPRequestHandler):
    """Answers any request with hostile texts, every other time as an error."""

    count = 0

    def do_GET(self) -> None:
        HostileServer.count += 1
        status = (200, 500, 404, 200, 422)[HostileServer.count % 5]
        names = (
            "role",
            "version",
            "url",
            "detail",
            "type",
            "title",
            "error",
            "message",
            "task",
            "environment",
            "digest",
        )
        facts = dict.fromkeys(names, TEXT) | {"time": 1.0, "status": status, "samples": [TEXT], TEXT: TEXT}
        body = json.dumps({**facts, "tasks": [facts], "workers": [facts], "data": [{"id": TEXT}]}).encode()
        if int(self.headers.get("content-length", 0)):
            self.rfile.read(int(self.headers["content-length"]))
        self.send_response(status, TEXT.encode().decode("latin-1").replace("\r", " ").replace("\n", " "))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), HostileServer) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_no_answer_of_a_server_is_passed_on_as_it_is(server: str, tmp_path: Path) -> None:
    (tmp_path / "remote.yaml").write_text(
        GOOD_PLAN.replace("PARTS", f"controller: {server}\ntasks: [{{name: db-own}}]").replace("URL", server)
    )
    (tmp_path / "own.yaml").write_text(GOOD_PLAN.replace("PARTS", OWN).replace("URL", server))
    (tmp_path / "tasks.yaml").write_text(OWN)
    for arguments in (
        ["doctor", "remote.yaml"],
        ["doctor", "own.yaml"],
        ["run", "remote.yaml", "--name=remote"],
        ["run", "own.yaml", "--name=own", "--limit=2"],
        ["report", "own"],
        ["play", "db", "--controller", server],
        ["worker", "--tasks=tasks.yaml", "--controller", server, "--port=0", "--stop-with-stdin"],
        ["serve", "--agentrl", "--controller", server, "--port=0", "--stop-with-stdin"],
    ):
        ended = run(arguments, tmp_path)
        assert controls(ended.output) + controls(ended.errors) == [], arguments


def shown(arguments: Sequence[str], folder: Path, keys: str = "", **variables: str) -> str:
    """What `proctor ...` prints on a terminal."""
    with on_a_terminal(*arguments, cwd=folder, **variables) as (process, terminal):
        for key in keys:
            terminal.type(key.encode())
        printed = terminal.rest()
        assert process.wait(slowly(60)) is not None
    return printed


@pytest.mark.parametrize("colours", ["", "1"])
def test_a_terminal_gets_no_codes_but_ours(colours: str, folder: Path, endpoint: ScriptedEndpoint) -> None:
    said = json.loads(GOOD)
    said["model"] = said["choices"][0]["message"]["content"] = TEXT
    endpoint.bad = [reply(500, TEXT.encode()), reply(200, json.dumps(said).encode()), reply(400, TEXT.encode())]
    plan = GOOD_PLAN.replace("PARTS", OWN).replace("URL", endpoint.url.removesuffix("/v1"))
    (folder / "played.yaml").write_text(plan.replace("max_tries: 2", "max_tries: 1"))
    name, run = f"played{colours}", str(hostile_run(folder))
    for arguments, keys in (
        (["run", "played.yaml", f"--name={name}", "--limit=3"], ""),
        (["report", name], ""),
        (["show", name, "0"], ""),
        (["ls"], ""),
        (["status", run], ""),
        (["report", run], ""),
        (["show", run, "0"], ""),
        (["compare", run, run], ""),
        (["doctor", str(folder / f"{TEXT[:60]}.yaml")], ""),
        (["rm", run], "n\r"),
        (["init", "other.yaml"], "\r\r\r"),
        (["report", TEXT], ""),
    ):
        printed = shown(arguments, folder, keys, NO_COLOR=colours, TERM="xterm", OPENAI_BASE_URL=TEXT, PAGER="cat")
        assert [piece for piece in PIECES[:-1] if piece in printed] == [], arguments
        plain = printed.replace("\r", "")
        plain = re.sub(r"\x1b(?:\[[0-9;?]*[mlhJKABCDGH]|[=>])", "", plain)
        assert controls(plain) == [], arguments
        assert "\x1b[48;2" not in printed
