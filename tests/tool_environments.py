"""The installed environments that offer functions, found by their field `protocol`, on the cheapest engine of each."""

from typing import get_args

from pydantic import ValidationError

from proctor import registry
from proctor.environment import Environment
from proctor.tools import Protocol

Fields = dict[str, str]
ENGINES: dict[str, Fields] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace"}}


def environment_in(name: str, protocol: Protocol, fields: Fields) -> Environment:
    """An environment in one of its protocols. Raises ValidationError where it refuses it."""
    given: dict[str, object] = {**fields, "protocol": protocol}
    return registry.load(name)(**given)


def tools_environment(name: str, fields: Fields) -> Environment | None:
    """An environment in protocol `tools`; None where it has no such protocol with these fields."""
    try:
        return environment_in(name, "tools", fields) if has_protocols(name) else None
    except ValidationError:
        return None


def has_protocols(name: str) -> bool:
    """Whether an environment has the field `protocol`."""
    return "protocol" in registry.load(name).model_fields


def configurations() -> list[tuple[str, Fields]]:
    """The environments that offer functions, in each profile that they have with their cheapest engine."""
    found = []
    for name in registry.names():
        profile = registry.load(name).model_fields.get("profile")
        profiles = get_args(profile.annotation) if profile is not None else ("",)
        for each in profiles:
            fields = ENGINES.get(name, {}) | ({"profile": each} if each else {})
            if tools_environment(name, fields) is not None:
                found.append((name, fields))
    return found
