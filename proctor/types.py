"""Values that the components exchange and the store keeps.

All but History and Usage are frozen, reject unknown fields and are validated when they are made.
"""

import hashlib
import json
import math
import operator
from collections.abc import Hashable
from enum import StrEnum
from html import escape
from operator import not_
from typing import Annotated, ClassVar, Literal, NamedTuple

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, ValidationError, model_validator

from proctor.observability.redaction import plain, redacted


def well_formed(text: str) -> str:
    """The text as a wire brings it: halves of a character beyond U+FFFF are joined, and a half alone becomes `?`."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass").encode(errors="replace").decode()


def with_keys_once(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of JSON, as the hook of `json.loads`. Raises ValueError where a key is there more than once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there more than once")
    return found


class Value(BaseModel):
    """A frozen value without behaviour; equal when its fields are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    operational: ClassVar[frozenset[str]] = frozenset()
    """Fields that do not affect a trial: a resumed run may change them."""
    of_endpoint: ClassVar[frozenset[str]] = frozenset()
    """Fields that an entry of a plan's `endpoints` gives, where the value names one as `endpoint`."""


TaskProtocol = Literal["text", "tools"]
"""How a task takes the agent's answers: as texts, or as calls of the tools that it offers."""

Echo = dict[str, JsonValue]
"""What an endpoint demands back with its own message, verbatim: reasoning, signatures. It is opaque, stays between
client and endpoint, and is left out of dumps and digests where there is none."""


class ToolCall(Value):
    """A function the agent asks to be run, as in OpenAI Chat Completions."""

    id: str
    name: str
    arguments: str
    """The JSON text exactly as the model wrote it; it may be malformed."""
    echo: Echo = Field(default_factory=dict, exclude_if=not_)

    def __hash__(self) -> int:
        return hash((self.id, self.name, self.arguments))


class Tool(Value):
    """A function offered to the agent; `parameters` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.description))


class Message(Value):
    """One chat message, as in OpenAI Chat Completions."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str = Field(default="", exclude_if=not_)
    """In a request, the function of the call that a tool message answers; else empty."""
    echo: Echo = Field(default_factory=dict, exclude_if=not_)

    def __hash__(self) -> int:
        return hash((self.role, self.content, self.tool_calls, self.tool_call_id))


class History(list[Message]):
    """The messages of a conversation. It only grows, so that requests can keep their encodings."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[Hashable, tuple[int, list[bytes]]] = {}
        """By the form of requests: how many of the messages are encoded, and their encodings."""
        self.sent: tuple[History, dict[str, str]] | None = None
        """The messages as requests have them, and the functions in them by the ids of their calls."""
        self.counted = (0, 0, 0)
        """Of the last answered call: its messages, the tokens of prompt and answer, and those of the answer."""


class Observation(Value):
    """The agent's next input: only the messages added since its last action."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    conversation: str = "main"
    """Name of the conversation that the messages belong to; a session may have several."""
    fresh: bool = False
    """True: the agent discards the conversation's history before it adds the messages."""

    def digest(self, encoded: bytes | None = None) -> str:
        """16 hex digits, a hash of all fields; `encoded` is the observation as JSON, where the caller has it."""
        return hashlib.blake2b(encoded or pydantic_core.to_json(self), digest_size=8).hexdigest()


class Action(Value):
    """The agent's reply to an observation."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    echo: Echo = Field(default_factory=dict, exclude_if=not_)
    reasoning: str = Field(default="", exclude_if=not_)
    """What the model thought, where its endpoint says that as text: for readers and exports only."""
    cut: bool = Field(default=False, exclude_if=not_)
    """Whether the endpoint cut a reply with tool calls off at `max_tokens`: the last call may lack its end."""
    token_ids: tuple[int, ...] = Field(default=(), exclude_if=not_)
    """The tokens of the reply, where its endpoint gives them: for exports only, as are the log probabilities."""
    logprobs: tuple[FiniteFloat, ...] = Field(default=(), exclude_if=not_)
    """The log probability of each token of the reply."""

    def __hash__(self) -> int:
        return hash((self.content, self.tool_calls))

    def message(self) -> Message:
        """The action as the assistant message that a transcript keeps."""
        return Message(role="assistant", content=self.content, tool_calls=self.tool_calls, echo=self.echo)

    def well_formed(self) -> "Action":
        """The action as a wire brings it, see the function of that name: Python code may hold halves of characters."""
        try:
            pydantic_core.to_json((self.content, self.reasoning, self.tool_calls, self.echo))
        except pydantic_core.PydanticSerializationError:
            return Action.model_validate_json(well_formed(json.dumps(self.model_dump(), ensure_ascii=False)))
        return self

    def without_echo(self) -> "Action":
        """The action as environments get it: without what is between client and endpoint."""
        extra = self.echo or self.reasoning or self.token_ids or self.logprobs
        if not extra and not (self.tool_calls and any(call.echo for call in self.tool_calls)):
            return self
        calls = tuple(call.model_copy(update={"echo": {}}) for call in self.tool_calls)
        return Action(content=self.content, tool_calls=calls, cut=self.cut)


class Usage(NamedTuple):
    """Tokens that answers cost; 0 where the server doesn't report them. Rows and reports name the counts alike."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Those of the prompts that the endpoint had in its cache."""
    reasoning_tokens: int = 0
    """Those that the model thought in; most endpoints count them among the completions too."""
    cache_write_tokens: int = 0
    """Those of the prompts that the endpoint put into its cache, and charges more for."""
    estimated_tokens: int = 0
    """Those that no endpoint reported."""
    billed_tokens: int = 0
    """Those whose price the endpoint told."""
    billed_money: float = 0.0
    """That price."""

    @classmethod
    def of(cls, counted: object) -> "Usage":
        """The counts of a turn, or of a reply of an environment's model."""
        return cls(*_COUNTS_OF(counted))

    @property
    def counts(self) -> bool:
        """Whether the tokens are told: a price alone tells none, unless it is 0."""
        return bool(self.prompt_tokens or self.completion_tokens or not self.billed_money)

    @property
    def total(self) -> int:
        """Prompts and completions together, which limits count."""
        return self.prompt_tokens + self.completion_tokens

    def plus(self, more: "Usage") -> "Usage":
        """The sum, count by count."""
        return Usage(*map(operator.add, self, more))


_COUNTS_OF = operator.attrgetter(*Usage._fields)
NO_USAGE = Usage()


class ParsedAction(Value):
    """What an environment reads in an answer: an action, or why it finds none."""

    kind: str = ""
    """A word or two for what is asked for, such as `bash` or `final answer`; empty where nothing is."""
    text: str = ""
    problem: str | None = None
    """Why the answer, or a call in it, can't be read."""


class Drawing(Value):
    """A trial as its world shows it: a part of a page, its style and its module of JavaScript."""

    body: str
    """HTML without scripts, styles and anything from elsewhere; it says all without JavaScript too."""
    style: str
    script: str


class FinishReason(StrEnum):
    """Why a session ended: AgentBench's validity classes (arXiv 2308.03688, section 4.2) and two faults."""

    COMPLETED = "completed"
    TURN_LIMIT = "turn_limit"
    INVALID_FORMAT = "invalid_format"
    INVALID_ACTION = "invalid_action"
    CONTEXT_LIMIT = "context_limit"
    REFUSED = "refused"
    """The provider or the model declined the input."""
    AGENT_ERROR = "agent_error"
    TASK_ERROR = "task_error"

    @property
    def is_fault(self) -> bool:
        """True where the service failed, not the agent: such a finish has no score."""
        return self in (FinishReason.AGENT_ERROR, FinishReason.TASK_ERROR)


AGENTBENCH_STATUS: dict[FinishReason, str] = {
    FinishReason.REFUSED: "agent validation failed",
    FinishReason.COMPLETED: "completed",
    FinishReason.TURN_LIMIT: "task limit reached",
    FinishReason.INVALID_FORMAT: "agent validation failed",
    FinishReason.INVALID_ACTION: "agent invalid action",
    FinishReason.CONTEXT_LIMIT: "agent context limit",
    FinishReason.TASK_ERROR: "task error",
    FinishReason.AGENT_ERROR: "task error",
}
"""The words of AgentBench v0.2 and of AgentRL on their wires."""
AGENTBENCH_REASON = {status: reason for reason, status in AGENTBENCH_STATUS.items() if not reason.is_fault}
"""The reason of each of their statuses with a score. All other ends are faults."""
_AWAY = "service_away"


class Finish(Value):
    """The end of a session. A fault has no score; everything else has one, a refusal unless the plan says otherwise."""

    reason: FinishReason
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The primary measure of this sample, from 0 to 1."""
    metrics: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Further measures of this sample, by name; a measure over nothing is left out."""
    detail: dict[str, JsonValue] = Field(default_factory=dict)
    """Further data for readers and for `Environment.summarize`; a fault or refusal has its cause under "cause"."""

    @model_validator(mode="after")
    def _score_unless_fault(self) -> "Finish":
        if self.reason.is_fault != (self.score is None) and self.reason is not FinishReason.REFUSED:
            raise ValueError("a fault (agent_error, task_error) has no score, every other finish has one")
        return self

    def _repr_html_(self) -> str:
        """The finish as a table, for notebooks."""
        shown = {"reason": self.reason.value, "score": self.score, **self.metrics, **self.detail}
        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in shown.items()
        )
        return f"<table>{rows}</table>"

    def for_world(self) -> "Finish":
        """The finish as worlds count it: a refusal as a full context, or where it has no score as a fault."""
        if self.reason is not FinishReason.REFUSED:
            return self
        reason = FinishReason.AGENT_ERROR if self.score is None else FinishReason.CONTEXT_LIMIT
        return self.model_copy(update={"reason": reason})

    @classmethod
    def kept(cls, text: str | bytes) -> "Finish":
        """The finish in a store's text, without measures that are no finite numbers: earlier versions kept those.

        Raises ValueError, also where its reason, its score or a measure is there more than once.
        """
        try:
            kept = cls.model_validate_json(text)
            _check_keys(text, kept)
            return kept
        except ValidationError:
            fields = json.loads(text)
            if not isinstance(fields, dict) or not isinstance(fields.get("metrics"), dict):
                raise
            finite = {name: value for name, value in fields["metrics"].items() if _is_finite(value)}
            return cls.model_validate({**fields, "metrics": finite})

    @classmethod
    def fault(cls, reason: FinishReason, cause: str) -> "Finish":
        """A finish without score, for a failure of the service; secrets in `cause` are redacted."""
        return cls(reason=reason, detail={"cause": redacted(cause)})

    @classmethod
    def away(cls, cause: str, patience_s: float | None = None) -> "Finish":
        """The fault that a service is away, and how long it is waited for. Some clients take it for any other."""
        fault = cls.fault(FinishReason.TASK_ERROR, cause)
        return fault.model_copy(update={"detail": {**fault.detail, _AWAY: True, "patience_s": patience_s}})

    @property
    def is_away(self) -> bool:
        """Whether it is a fault that `away` made."""
        return self.reason is FinishReason.TASK_ERROR and self.detail.get(_AWAY) is True


WORDS = ("asked", "expected", "answered")
"""The fields of a finish's detail that tables of trials show; see `asked_and_answered`."""
NOT_REDISTRIBUTABLE = "not_redistributable"
"""The field of a finish's detail that is true where its words may not stand in a file for others."""
MOST_WORDS, MOST_READ = 300, 10_000


def brief(text: str) -> str:
    """A text on one line, without secrets and control characters, of at most MOST_WORDS characters."""
    line = plain(text[:MOST_READ])
    return line if len(line) <= MOST_WORDS else f"{line[: MOST_WORDS - 1]}…"


def asked_and_answered(
    asked: str, expected: str, answered: str, *, redistributable: bool = True
) -> dict[str, JsonValue]:
    """What the agent was asked, what would have been right, and what it answered, for a finish's detail.

    Each is `brief`; an empty one is left out. `redistributable`: whether the data may be shown to others.
    """
    said = zip(WORDS, map(brief, (asked, expected, answered)), strict=True)
    found: dict[str, JsonValue] = {name: text for name, text in said if text}
    return found if redistributable else {**found, NOT_REDISTRIBUTABLE: True}


def _check_keys(text: str | bytes, finish: Finish) -> None:
    """Raises ValueError where the JSON of a finish has a key twice. Only texts that may are parsed once more."""
    whole = text if isinstance(text, str) else text.decode()
    names = ("reason", "score", "metrics", "detail", *finish.metrics)
    if "\\u" in whole or any(whole.count(f'"{name}"') > 1 for name in names):
        json.loads(whole, object_pairs_hook=with_keys_once)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


JUDGEMENTS = "judgements"
"""The field of a finish's detail with the Judgements of several judges."""


class Judgements(Value):
    """What several judges said of the same things in a trial."""

    scale: Literal["rating", "yes_no"]
    """Ratings, whose differences count, or 1 for yes and 0 for no."""
    judges: tuple[str, ...] = Field(min_length=2)
    """Their names."""
    rows: tuple[tuple[Annotated[float, Field(ge=-1e9, le=1e9)] | None, ...], ...]
    """For each thing judged a value of each judge, in the order of the names; None where it could not be read."""

    @model_validator(mode="after")
    def _rows_fit(self) -> "Judgements":
        if any(len(row) != len(self.judges) for row in self.rows):
            raise ValueError("rows: each has to have a value of each judge")
        return self


class Summary(Value):
    """An environment's metrics over many finishes of one task."""

    primary: str
    """Name of the metric to compare agents by; `metrics` may lack it only where no finish is completed."""
    metrics: dict[str, float]
    """A metric over an empty group is absent, never 0."""
    standard_error: float | None = None
    """Standard error of the primary metric, set by `proctor.summary`; None where too few trials are scored."""
    notes: tuple[str, ...] = ()
    """Remarks needed to interpret the metrics, one sentence each."""


NOT_UNDERSTOOD = "not_understood"
"""The metric of each summary of scored finishes: how many replies could not be parsed."""
THOUGHTS = ("thoughts", "helper_thoughts")
"""The metrics of how many scored replies, of the agent and of the environment's models, held thoughts; none if 0."""
