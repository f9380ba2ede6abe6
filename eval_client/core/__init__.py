"""Pure: the decisions of a run. No clock, no files, no network."""

from typing import Annotated

from pydantic import Field

Pair = tuple[str, str]
"""(agent, task)"""
RequestsAMinute = Annotated[int, Field(ge=1, le=10_000_000)]
TokensAMinute = Annotated[int, Field(ge=1, le=10_000_000_000)]
