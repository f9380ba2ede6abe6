"""Whether the servers of one endpoint serve the same model."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic_core import from_json

from proctor.config.secrets import secret
from proctor.http.client import AnyClient, HttpFailure, bounded_request, json_headers
from proctor.llm.config import ChatConfig

LOOK_S = 10.0
"""Longest wait for a list of models."""


class ServedModel(NamedTuple):
    """A model as a server lists it; None: it does not say."""

    id: str
    root: str | None = None
    max_model_len: int | None = None


class NoList(HttpFailure):
    """A server answers, but with no list of models."""


async def served(client: AnyClient, config: ChatConfig) -> dict[str, ServedModel]:
    """The models that a server lists, by id. Raises HttpFailure, NoList."""
    key = secret(config.api_key_env)
    reply = await bounded_request(
        client,
        "GET",
        config.endpoint() + "/models",
        headers=json_headers(None if key is None else key.get_secret_value()),
        deadline_s=LOOK_S,
        max_bytes=config.max_reply_bytes,
    )
    try:
        listed: list[dict[str, object]] = from_json(reply.body)["data"] if reply.status == 200 else [{}]
        found = [
            ServedModel(str(one["id"]), _text(one.get("root")), _count(one.get("max_model_len"))) for one in listed
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NoList(f"{config.endpoint()}/models: status {reply.status}, no list of models") from None
    return {one.id: one for one in found}


async def unlike(client: AnyClient, configs: Sequence[ChatConfig]) -> str | None:
    """Which of the models a server does not serve; None where it serves all. Raises HttpFailure, NoList."""
    found = await served(client, configs[0])
    missing = sorted({config.model for config in configs} - found.keys())
    return f"it serves {', '.join(sorted(found)) or 'no model'}, not {', '.join(missing)}" if missing else None


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _count(given: object) -> int | None:
    return given if isinstance(given, int) and not isinstance(given, bool) else None
