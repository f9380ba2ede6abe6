"""The database environment: SQL on one table, and an exact answer in a fixed form (arXiv 2308.03688, Appendix C)."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, PrivateAttr, SecretStr, model_validator

from environments.database import dataset, errata, policies, prompt
from environments.database.dataset import TableEntry
from environments.database.engines.base import (
    PASSWORD_VARIABLE,
    DatabaseEngine,
    DatabaseSession,
    ServerAddress,
    parse_url,
)
from environments.database.engines.private_server import PrivateServer, installed
from environments.database.engines.sqlite import SqliteEngine
from environments.database.functions import TOOLSET, with_calls
from environments.database.prompt import PROMPT
from environments.database.reply import SqlAction, parser, shown
from environments.database.scoring import FC, V02, PublishedJudgement, marks
from environments.database.session import SessionResult, StatementRunner, Way, converse
from environments.database.summary import TOOLS_WORDING, WORDING, summarize
from environments.database.table_hash import TableHash
from proctor.config.secrets import secret_text
from proctor.digest import digest_of
from proctor.environment import Agent, Environment, Policy
from proctor.published import AGENTBENCH_SAMPLING, Opening, lowered, other_records
from proctor.tools import OWN_FUNCTIONS, CallReader, Protocol, ReplyReader, TextReader, parsed_action
from proctor.types import Action, Finish, FinishReason, Message, ParsedAction, Summary, asked_and_answered

SHIPPED_SAMPLES = Path(__file__).with_name("samples")
_REVISIONS = {"compat": "3", "strict": "5", "errata": "5"}
"""To be changed with any change of behaviour that shapes a trial."""
_SHOWN_ANSWER = 2_000
PUBLISHED = {
    "data/dbbench/dev.jsonl": "eae663fc091735666487f0aa841c4fcaf195242baa0b7466cd1969e2e4ebce1a",
    "data/dbbench/standard.jsonl": "f13bd63493ba319418701a380d0a1696b2de294b576a90d622a7cb2b64afbb02",
}
"""The files of AgentBench v0.2, by the hash of their records."""


@dataclass(frozen=True)
class _Dialogue:
    """What differs between the protocols."""

    before: tuple[Message, ...]
    """The messages before the question, in our own words."""
    wording: str
    """The note that says so."""
    turns: int
    published: PublishedJudgement
    reader: Callable[[bool], ReplyReader[SqlAction]]
    """Reads the replies of one session; the argument is whether the profile is another than `compat`."""
    speaks: Callable[[Policy], Policy]
    """Makes a policy for protocol `text` play this one."""
    several: Way
    """How several statements of a reply are run in `compat`."""


_DIALOGUES: Mapping[Protocol, _Dialogue] = {
    "text": _Dialogue(
        before=prompt.BEFORE,
        wording=WORDING,
        turns=prompt.STATEMENTS + 1,
        published=V02,
        reader=lambda lenient: TextReader(parser(prompt.STATEMENTS, lenient=lenient)),
        speaks=lambda policy: policy,
        several="v0.2",
    ),
    "tools": _Dialogue(
        before=prompt.TOOLS_BEFORE,
        wording=TOOLS_WORDING,
        turns=prompt.ROUNDS,
        published=FC,
        reader=lambda strict: CallReader(TOOLSET, strict=strict),
        speaks=with_calls,
        several="fc",
    ),
}


class Database(Environment):
    """Questions about, and changes to, one table in a MySQL-like database."""

    data: Path | None = None
    """A dbbench file (JSON Lines) or a folder of them; None for the samples shipped with Proctor."""
    profile: Literal["compat", "strict", "errata"] = "compat"
    """How answers are judged: as the published code does, strictly, or strictly over corrected data."""
    protocol: Protocol = "text"
    """How agents act: by the text of their replies, or by calls of AgentBench FC's functions."""
    engine: Literal["mariadb", "sqlite"] = "mariadb"
    """`sqlite` needs nothing installed; its scores can't be compared."""
    server: SecretStr | None = None
    """A running MariaDB or MySQL server as `mysql://user@host:3306/`; None starts a private mariadbd."""
    statement_limit_s: float = Field(default=30.0, gt=0, le=3600)
    """A statement that takes longer is killed, and the agent gets the error."""
    overlay: Path | None = None
    """Corrections for the errata profile; None for those shipped with Proctor."""
    prompts: Path | None = None
    """A file with another instruction, such as AgentBench's; None for our own. Python is read, not run."""

    scales: ClassVar[Mapping[str, tuple[float, float]]] = {"overall_cat_accuracy": (0.0, 1.0)}

    _engine: DatabaseEngine | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "Database":
        if self.overlay is not None and self.profile != "errata":
            raise ValueError("overlay: only the profile `errata` has corrections; set profile: errata")
        if self.prompts is not None and self.protocol == "tools":
            raise ValueError("prompts: that is an instruction for text replies; remove it, or set protocol: text")
        if self.server is not None:
            if self.engine == "sqlite":
                raise ValueError("server: the engine `sqlite` has no server; remove one of the two")
            self._address(self.server)
        return self

    def samples(self) -> Sequence[str]:
        _ = self._before  # a broken file is refused now, before anything is played
        return tuple(self._entries)

    def digest(self) -> str:
        state = hashlib.blake2b(digest_size=16)
        settings = (_REVISIONS[self.profile], self.profile, self.engine, str(self.statement_limit_s))
        shown = (message.content for message in self._before)
        tools = (tool.model_dump_json() for tool in self._dialogue.reader(False).tools)
        for part in (*settings, *shown, *tools):
            state.update(part.encode() + b"\0")
        for path in (*dataset.files(self._data), *([self._overlay] if self.profile == "errata" else [])):
            state.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        return state.hexdigest()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        entry = self._entry(sample)
        if self._engine is None:
            raise RuntimeError("the database environment plays only inside its lifespan")
        async with self._engine.session(entry.table) as session:
            if session.setup_error and self.profile != "compat":
                return _unplayable(entry, session.setup_error)
            opening = (*self._before, prompt.question(entry))
            reader = self._dialogue.reader(self.profile != "compat")
            result = await converse(self._runner(session, entry), agent, opening, reader, self._dialogue.turns)
            changed = await session.table_hash() if entry.table_hash else TableHash()
            finish = self._finish(entry, result, changed, session.setup_error)
            return finish.model_copy(update={"metrics": reader.metrics() | finish.metrics})

    def _runner(self, session: DatabaseSession, entry: TableEntry) -> StatementRunner:
        """Only AgentBench v0.2 has a database of the table's name; other profiles take that name too."""
        as_published = self.profile == "compat"
        named = None if as_published and self.protocol == "tools" else entry.table.name
        return StatementRunner(session, self._dialogue.several if as_published else "each", named)

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._dialogue.reader(self.profile != "compat"), action, shown)

    def cluster(self, sample: str) -> str:
        """The content of the sample's table."""
        table = self._entry(sample).table
        return f"table-{digest_of((table.columns, table.rows))}"

    def category(self, sample: str) -> str:
        """SELECT, INSERT or UPDATE."""
        return self._entry(sample).category

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.reference(self._entry(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.naive(self._entry(sample)))

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._dialogue.speaks(policies.chance(self._entry(sample), seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, self._dialogue.wording if self.prompts is None else None)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        engine = self._new_engine()
        async with engine.lifespan():
            self._engine = engine
            try:
                yield
            finally:
                self._engine = None

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        return {} if installed() and find_spec("pymysql") else {"engine": "sqlite"}

    @property
    def max_turns(self) -> int:
        return self._dialogue.turns

    @property
    def drops_thoughts(self) -> bool:
        return self.profile != "compat"

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return OWN_FUNCTIONS
        if self.engine == "sqlite":
            return "the engine is SQLite, whose SQL, functions and error texts differ from MySQL's"
        if self.data is None:
            return "the samples are Proctor's own, not the published ones"
        if self.profile != "compat":
            return f"the profile {self.profile!r} judges differently from the published code; use compat"
        _ = self._entries  # a broken file is refused by its line
        other = PROMPT.differs(self.prompts, Opening(self._before)) or lowered(self, "statement_limit_s")
        return other or other_records(self.data, dataset.records(self.data), PUBLISHED)

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    @property
    def _dialogue(self) -> _Dialogue:
        return _DIALOGUES[self.protocol]

    @cached_property
    def _before(self) -> tuple[Message, ...]:
        return self._dialogue.before if self.prompts is None else PROMPT.read(self.prompts).messages

    @property
    def _data(self) -> Path:
        return self.data or SHIPPED_SAMPLES

    @property
    def _overlay(self) -> Path:
        return self.overlay or errata.SHIPPED

    @cached_property
    def _entries(self) -> Mapping[str, TableEntry]:
        entries = dataset.load(self._data)
        if self.profile == "errata":
            entries = errata.correct(entries, errata.load(self._overlay))
        return {entry.id: entry for entry in entries}

    def _entry(self, sample: str) -> TableEntry:
        if sample not in self._entries:
            raise ValueError(f"{self._data}: no sample {sample!r}; ids are <file stem>-<5-digit index>")
        return self._entries[sample]

    def _new_engine(self) -> DatabaseEngine:
        if self.engine == "sqlite":
            return SqliteEngine(self.statement_limit_s)
        from environments.database.engines.mysql import MySqlEngine

        server = PrivateServer() if self.server is None else self._address(self.server)
        return MySqlEngine(server, self.statement_limit_s)

    @staticmethod
    def _address(url: SecretStr) -> ServerAddress:
        return parse_url(url.get_secret_value(), secret_text(PASSWORD_VARIABLE))

    def _finish(self, entry: TableEntry, result: SessionResult, changed: TableHash, setup_error: str | None) -> Finish:
        completed = result.reason is FinishReason.COMPLETED
        metrics = marks(entry, completed, result.answer or "", changed, self._dialogue.published)
        metrics["statements"] = float(result.statements)
        answered = result.answer or ""
        if entry.table_hash:
            answered += f" (the table is {'as expected' if changed.sql == entry.table_hash else 'not as expected'})"
        detail: dict[str, JsonValue] = {
            **asked_and_answered(entry.description, ", ".join(entry.label), answered),
            "type": entry.kind,
            "category": entry.category,
            "answer": None if result.answer is None else result.answer[:_SHOWN_ANSWER],
            "statements": result.statements,
            "setup_failed": setup_error is not None,
        }
        if setup_error is not None:
            detail["setup_error"] = setup_error
        if entry.table_hash:
            detail["table_hash"] = changed.sql
            detail["hashes_agree"] = changed.sql == changed.python
        score = metrics["compat" if self.profile == "compat" else "strict"]
        return Finish(reason=result.reason, score=score, metrics=metrics, detail=detail)


def _unplayable(entry: TableEntry, setup_error: str) -> Finish:
    """The fault of a sample whose table can't be created; `type` and `category` are for the summary's coverage."""
    return Finish(
        reason=FinishReason.TASK_ERROR,
        detail={
            "cause": f"the sample's table can't be created: {setup_error}",
            "type": entry.kind,
            "category": entry.category,
            "setup_failed": True,
        },
    )
