"""Whether the servers of one endpoint serve the same model, and the one that a run began with."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar

from eval_client.store.records import SeenModel
from proctor.environment import AgentStopped, AgentUnavailable
from proctor.http.client import HttpClient, HttpFailure
from proctor.llm.config import ChatConfig
from proctor.llm.endpoint import listed
from proctor.llm.model import ChatModel
from proctor.types import Message

Told = TypeVar("Told")
LOOK_S = 15.0
"""Longest wait for one server; one that does not answer by then is not compared."""
AGENT_S = 5.0
"""Longest wait for a server that may be one of agents."""
LASTING = ("root", "max_model_len", "digest")
"""What the servers of a run must agree in, beside the model's id."""
ALL = (*LASTING, "text")
TOKENS = 32
QUESTION = Message(role="user", content="Name the planets of the solar system with a sentence about each.")


async def seen_models(
    client: HttpClient, configs: Mapping[str, ChatConfig], within_s: float = LOOK_S, *, asks: bool = True
) -> dict[str, SeenModel]:
    """URL -> what that server shows of a model; those that do not answer are left out. `asks`: also for a text."""
    once = [ChatModel(config.model_copy(update={"max_tries": 1}), client) for config in configs.values()]
    found = await asyncio.gather(*(_seen(model, within_s, asks=asks) for model in once))
    return {url: seen for url, seen in zip(configs, found, strict=True) if seen is not None}


async def _seen(model: ChatModel, within_s: float, *, asks: bool) -> SeenModel | None:
    try:
        async with asyncio.timeout(within_s):
            seen = await listed_models(model)
            text = await _text(model) if asks else None
    except (HttpFailure, TimeoutError):
        return None
    if not seen:
        return None if text is None else SeenModel(id=model.name, text=text)
    mine = seen.get(model.name)
    return SeenModel(id=", ".join(sorted(seen))) if mine is None else mine.model_copy(update={"text": text})


async def _text(model: ChatModel) -> str | None:
    try:
        answer = await model.complete([QUESTION], sampling={"temperature": 0, "max_tokens": TOKENS})
    except (AgentUnavailable, AgentStopped):
        return None
    return answer.action.content or answer.action.reasoning


async def listed_models(model: ChatModel, within_s: float = LOOK_S) -> dict[str, SeenModel]:
    """The models that a server lists, by id; empty where it has no such list. Raises HttpFailure."""
    reply = await model.models(within_s)
    return {
        name: SeenModel(
            id=name,
            root=_told(one, "root", str),
            max_model_len=_told(one, "max_model_len", int),
            digest=_told(one, "digest", str),
            stateful=one.get("stateful") is True,
        )
        for name, one in (listed(reply.body) if reply.status == 200 else {}).items()
    }


async def seen_agent(client: HttpClient, config: ChatConfig) -> SeenModel | None:
    """A function of an agent server, as the server shows it; None of all else, and of a server that does not answer."""
    try:
        seen = (await listed_models(ChatModel(config, client), AGENT_S)).get(config.model)
    except HttpFailure:
        return None
    return None if seen is None or seen.digest is None else seen


def _told(given: Mapping[str, object], name: str, kind: type[Told]) -> Told | None:
    value = given.get(name)
    return value if isinstance(value, kind) and not isinstance(value, bool) else None


def others(model: str, seen: Mapping[str, SeenModel]) -> list[str]:
    """The servers that serve another model, or another file of a function, each as a line."""
    others = [f"{url} serves {one.id}, not {model}" for url, one in seen.items() if one.id != model]
    return others + unlike(seen, ("digest",))


def unlike(seen: Mapping[str, SeenModel], fields: Sequence[str] = ALL) -> list[str]:
    """How servers of the same model differ from the first one, each as a line."""
    lines: list[str] = []
    for url, one in list(seen.items())[1:]:
        first_url, first = next(iter(seen.items()))
        lines += [f"{url} and {first_url} differ: {line}" for line in differences(first, one, fields)]
    return lines


def differences(before: SeenModel, now: SeenModel, fields: Sequence[str] = ALL) -> list[str]:
    """What differs between two servers, where both tell it."""
    told = {field: (getattr(before, field), getattr(now, field)) for field in fields}
    words = {"text": f"the first {TOKENS} tokens at temperature 0"}
    return [
        f"{words.get(field, field)}: {one!r}, {other!r}"
        for field, (one, other) in told.items()
        if one is not None and other is not None and one != other
    ]
