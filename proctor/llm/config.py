"""The settings of a chat model and its endpoint, in plans and task files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag, model_validator

from proctor.config.problems import FieldError
from proctor.config.secrets import setting
from proctor.config.wording import VARIABLE
from proctor.connection.fields import CONVERSATION, UNVERIFIED, ConnectionFields, unverified
from proctor.llm.dialects import PATHS, DialectName, dialect_of
from proctor.llm.wire import Form, Reasoning, SystemRole
from proctor.observability.redaction import looks_secret
from proctor.types import Value

KEY = "looks like a key; put keys in variables or .env, and only their names in files"
LEAVE_OUT = "leave it out, or use an endpoint of `dialect: chat`"
RESERVED = frozenset({"messages", "metadata", "model", "n", "stream", "stream_options", "tools"})
"""Request fields that Proctor sets itself, or that change the shape of the reply."""


def plain_url(text: str) -> str:
    """The URL without a slash at its end. Raises ValueError where it is no http(s) URL or may hold a secret."""
    try:
        url = urlsplit(text)
        host = url.port != 0 and url.hostname
    except ValueError as error:
        raise ValueError(f"not a URL: {error}") from error
    if not text.isprintable() or " " in text:
        raise ValueError("not a URL: holds spaces or characters that can't be printed")
    if url.scheme not in ("http", "https") or not host:
        raise ValueError("must begin with http:// or https:// and a host, such as http://127.0.0.1:8000/v1")
    if url.username or url.password or url.query or url.fragment:
        raise ValueError("must hold no user name, password, query or fragment; put the key in `api_key_env`")
    for path in PATHS.values():
        if url.path.rstrip("/").endswith(path):
            raise ValueError(f"ends with {path}, which Proctor adds itself; end it with /v1")
    return text.rstrip("/")


def _sampling(sampling: dict[str, JsonValue]) -> dict[str, JsonValue]:
    refused = sorted(RESERVED & sampling.keys())
    if refused:
        raise FieldError((refused[0],), "is set by Proctor; remove it")
    for name, value in sampling.items():
        if isinstance(value, str) and looks_secret(value):
            raise FieldError((name,), KEY)
    return sampling


def no_key(text: str) -> str:
    """The text. Raises ValueError where it may be a key."""
    if looks_secret(text):
        raise ValueError(KEY)
    return text


def url(text: str) -> str:
    """The text, as it is written. Raises ValueError where it is no base URL."""
    plain_url(text)
    return text


Url = Annotated[str, AfterValidator(url)]


class ReplicaEntry(Value):
    """One of several servers of the same model."""

    base_url: Url
    """Up to and including `/v1`."""
    concurrency: Annotated[int | None, Field(ge=1, le=10_000, exclude_if=lambda value: value is None)] = None
    """Trials in flight at once there; the endpoint's `concurrency` if absent."""


def _kind_of_replica(given: object) -> str:
    return "one" if isinstance(given, str) else "entry"


def _kind_of_base_url(given: object) -> str:
    return "several" if isinstance(given, list | tuple) else "one"


AnyReplica = Annotated[
    Annotated[Url, Tag("one")] | Annotated[ReplicaEntry, Tag("entry")], Discriminator(_kind_of_replica)
]
SeveralUrls = Annotated[tuple[AnyReplica, ...], Field(min_length=1, max_length=1_000)]
BaseUrl = Annotated[
    Annotated[Url, Tag("one")] | Annotated[SeveralUrls, Tag("several")], Discriminator(_kind_of_base_url)
]


Sampling = Annotated[dict[str, JsonValue], AfterValidator(_sampling)]
ModelName = Annotated[str, Field(min_length=1), AfterValidator(no_key)]
VariableName = Annotated[str, Field(pattern=VARIABLE), AfterValidator(no_key)]


MaxTokensField = Literal["max_tokens", "max_completion_tokens"]
_MAX_TOKENS: tuple[MaxTokensField, ...] = ("max_tokens", "max_completion_tokens")


def renamed(sampling: Mapping[str, JsonValue], field: MaxTokensField | None) -> Mapping[str, JsonValue]:
    """The sampling with its limit of tokens under the name of `field`."""
    if field is None or not any(name in sampling and name != field for name in _MAX_TOKENS):
        return sampling
    return {field if name in _MAX_TOKENS else name: value for name, value in sampling.items()}


class EndpointFields(ConnectionFields):
    """An endpoint: where it is, what it speaks, and how long it is asked for one completion."""

    dialect: Annotated[DialectName, Field(exclude_if=lambda value: value == "chat")] = "chat"
    """OpenAI's Chat Completions, which most servers speak; OpenAI's `responses`; Anthropic's `messages`."""
    cache_prompt: Annotated[Literal["auto", "never"], Field(exclude_if=lambda value: value == "auto")] = "auto"
    """`auto`: `messages` asks the endpoint to cache conversations from some 1,024 tokens on; others cache by
    themselves."""
    deadline_s: float = Field(default=600.0, gt=0)
    """Seconds for one HTTP request, from connecting to the reply's last byte."""
    max_tries: int = Field(default=6, ge=1)
    """Maximum number of HTTP requests for one completion."""
    max_retry_s: float = Field(default=600.0, ge=0)
    """Seconds after the first request, from which on no further one starts."""
    patience_s: Annotated[float | None, Field(gt=0, exclude_if=lambda value: value is None)] = None
    """Seconds that an endpoint which is down, or has too many requests, is waited for; an hour if absent, or a minute
    before its first answer: set it for a server that still loads its model."""
    base_url: BaseUrl | None = None
    """Up to and including `/v1`. If absent, the variable OPENAI_BASE_URL, or OpenAI itself where that is unset; with
    dialect `messages` ANTHROPIC_BASE_URL, which needs no `/v1`, or Anthropic itself. A list names replicas, servers of
    the same model, each a URL or `{base_url, concurrency}`."""
    replicas_file: Annotated[str | None, Field(min_length=1, exclude_if=lambda value: value is None)] = None
    """A file with the URL of a replica on each line, read again when it changes; yours, and not writable by others."""
    api_key_env: VariableName = "OPENAI_API_KEY"
    """The NAME of the environment variable that holds the key, never the key; with dialect `messages` it is
    ANTHROPIC_API_KEY if absent. Where it is unset, no key is sent."""

    @model_validator(mode="before")
    @classmethod
    def _key_of_the_dialect(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("dialect") == "messages":
            return {"api_key_env": dialect_of("messages").KEY_ENV, **data}
        return data

    @model_validator(mode="after")
    def _replicas_are_told_once(self) -> Self:
        if self.replicas_file is not None and self.base_url is not None:
            raise FieldError(("replicas_file",), "stands beside `base_url`; leave one of them out")
        urls = [replica.base_url for replica in self.replicas()]
        for place, each in enumerate(urls):
            if each in urls[:place]:
                raise FieldError(("base_url", place), "stands twice; give each replica once")
        return self

    @property
    def has_replicas(self) -> bool:
        """Whether several servers may answer for it."""
        return self.replicas_file is not None or isinstance(self.base_url, tuple)

    def replicas(self) -> tuple[ReplicaEntry, ...]:
        """The replicas that a list names; none for a single URL and for a file."""
        several = self.base_url if isinstance(self.base_url, tuple) else ()
        return tuple(ReplicaEntry(base_url=one) if isinstance(one, str) else one for one in several)

    @property
    def unsure(self) -> bool:
        """Whether certificates are not checked of servers of other machines, or of unknown ones."""
        one = self.base_url if isinstance(self.base_url, str) else None
        several: list[str | None] = [replica.base_url for replica in self.replicas()]
        return not self.tls.verify and any(map(unverified, several or [one]))

    def relative_to(self, folder: Path) -> Self:
        """A copy with the paths of its files resolved against a folder, normally that of the plan."""
        placed = super().relative_to(folder)
        if self.replicas_file is None:
            return placed
        return placed.model_copy(update={"replicas_file": str(folder / Path(self.replicas_file).expanduser())})


class RequestForm(Value):
    """How a model's requests are written."""

    sampling: Sampling = Field(default_factory=dict)
    """Further request fields, passed through: temperature, top_p, max_tokens, seed, stop, ..."""
    reasoning: Annotated[Reasoning, Field(exclude_if=lambda value: value == "auto")] = "auto"
    """Which messages of a history carry their reasoning back: `auto`, those with tool calls, or all in other dialects
    than chat; `always`; `never`."""
    system_role: Annotated[SystemRole, Field(exclude_if=lambda value: value == "system")] = "system"
    """The role that the instruction is sent in; `user` puts it before the first user message."""
    max_tokens_field: Annotated[MaxTokensField | None, Field(exclude_if=lambda value: value is None)] = None
    """The name under which the sampling's limit of tokens is sent; None: as it is written there."""

    seed_per_epoch: Annotated[bool, Field(exclude_if=lambda value: value)] = True
    """Whether the `seed` of the sampling grows by 1 with each epoch, which would repeat the first one else."""

    @model_validator(mode="after")
    def _one_limit_of_tokens(self) -> Self:
        if self.max_tokens_field is not None and all(name in self.sampling for name in _MAX_TOKENS):
            raise FieldError(("sampling",), "holds both 'max_tokens' and 'max_completion_tokens'; remove one of them")
        return self


def check_dialect(dialect: DialectName, form: RequestForm, *, metadata: bool) -> None:
    """Raises FieldError where a model's requests are to hold what its endpoint's dialect lacks."""
    if dialect == "chat":
        return
    lacks = dialect_of(dialect).LACKS
    for name in form.sampling:
        if name in lacks:
            raise FieldError(("sampling", name), f"dialect {dialect!r} has none; {lacks[name] or LEAVE_OUT}")
    unused = {
        "max_tokens_field": form.max_tokens_field is not None,
        "metadata": metadata,
        "system_role": dialect == "messages" and form.system_role == "developer",
    }
    for field in (field for field, given in unused.items() if given):
        raise FieldError((field,), f"dialect {dialect!r} has none; {LEAVE_OUT}")


class ChatConfig(EndpointFields, RequestForm):
    """One model at one endpoint, with its time limits and retries."""

    operational: ClassVar[frozenset[str]] = (
        frozenset(EndpointFields.model_fields) - {"base_url", "dialect", "headers", "query"}
    ) | {"max_tokens_field", "max_reply_bytes"}
    of_endpoint: ClassVar[frozenset[str]] = frozenset(EndpointFields.model_fields)
    """What an entry of a plan's `endpoints` gives, where this one names it as `endpoint`."""

    replicas_of: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    """The name of the endpoint whose `replicas_file` it is, set where `endpoint` names it: stored replies go by it."""
    model: ModelName
    metadata: bool = False
    """True: requests have their task, sample and turn as metadata, which the built-in agents need."""
    max_reply_bytes: int = Field(default=4 << 20, ge=1024)

    @model_validator(mode="after")
    def _fits_the_dialect(self) -> Self:
        check_dialect(self.dialect, self, metadata=self.metadata)
        if self.unsure:
            raise FieldError(("tls", "verify"), UNVERIFIED)
        return self

    def servers(self) -> tuple[ReplicaEntry, ...]:
        """The servers that are asked; none where a file names them. Raises ValueError as `endpoint` does."""
        if self.replicas_file is not None:
            return ()
        return self.replicas() or (ReplicaEntry(base_url=self.endpoint()),)

    def urls(self) -> list[str]:
        """The base URLs of the servers that are asked."""
        return [plain_url(each.base_url) for each in self.servers()]

    def at(self, url: str) -> "ChatConfig":
        """The settings of one of its servers."""
        return self.model_copy(update={"base_url": url, "replicas_file": None})

    def form(self) -> Form:
        """How conversations are written."""
        form = Form(self.reasoning, self.system_role)
        return form if self.cache_prompt == "auto" else form._replace(cached_from=None)

    def request_sampling(self, more: Mapping[str, JsonValue] | None = None) -> Mapping[str, JsonValue]:
        """The sampling of a request; `more` takes precedence."""
        own = renamed(self.sampling, self.max_tokens_field)
        return {**own, **renamed(more or {}, self.max_tokens_field), **self.streaming()}

    def streaming(self) -> dict[str, JsonValue]:
        """The fields by which a request asks for a stream, with the usage in it."""
        if not self.stream:
            return {}
        return {"stream": True, **({"stream_options": {"include_usage": True}} if self.dialect == "chat" else {})}

    def varies(self, fields: Mapping[str, JsonValue]) -> bool:
        """Whether trials send other fields than these."""
        texts = (text for text in fields.values() if isinstance(text, str))
        return self.metadata or "seed" in fields or any(CONVERSATION in text for text in texts)

    def in_trial(self, fields: Mapping[str, JsonValue], metadata: Mapping[str, str]) -> Mapping[str, JsonValue]:
        """The fields of a request as a trial with this metadata sends them: its seed, conversation, metadata."""
        seed, epoch = fields.get("seed"), metadata.get("epoch", "")
        if self.seed_per_epoch and isinstance(seed, int) and epoch.isdecimal():
            fields = {**fields, "seed": seed + int(epoch)}
        for name, text in fields.items():
            if isinstance(text, str) and CONVERSATION in text:
                from proctor.connection.connection import with_conversation  # a report needs no client: 40 ms of CPU

                fields = {**fields, name: with_conversation(text)}
        return {**fields, "metadata": {**metadata}} if metadata and self.metadata else fields

    def endpoint(self) -> str:
        """The base URL in effect, of replicas the first. Raises ValueError where the dialect's variable holds none."""
        if self.base_url is not None:
            return plain_url(self.base_url if isinstance(self.base_url, str) else self.replicas()[0].base_url)
        dialect = dialect_of(self.dialect)
        try:
            url = plain_url(setting(dialect.BASE_URL_ENV) or dialect.BASE_URL)
        except ValueError as error:
            raise ValueError(f"{dialect.BASE_URL_ENV}: {error}") from error
        return f"{url}/v1" if self.dialect == "messages" and not url.endswith("/v1") else url
