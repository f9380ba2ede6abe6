"""Reads the metadata of requests, whose values are strings in OpenAI's API."""

from collections.abc import Mapping

from agent_server.errors import RequestRefused
from proctor.llm.passed_on import NEEDS_METADATA


def required(metadata: Mapping[str, str], *names: str) -> tuple[str, ...]:
    """The values under these names. Raises RequestRefused (400) naming the missing ones and the fix."""
    missing = [name for name in names if name not in metadata]
    if missing:
        raise RequestRefused(
            400,
            f"metadata: this agent needs {', '.join(names)}, and {', '.join(missing)} is missing; "
            "set `metadata: true` at the agent in the plan, or send `metadata` with the request",
            code=NEEDS_METADATA,
            param="metadata",
        )
    return tuple(metadata[name] for name in names)


def number(metadata: Mapping[str, str], name: str, default: int | None = None) -> int:
    """The integer under a name. Raises RequestRefused (400)."""
    text = metadata.get(name, str(default)) if default is not None else required(metadata, name)[0]
    try:
        return int(text)
    except ValueError:
        raise RequestRefused(400, f"metadata.{name}: {text!r} is not a whole number", param="metadata") from None
