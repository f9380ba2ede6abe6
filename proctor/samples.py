"""Which samples of a task a plan plays."""

from pydantic import Field

from proctor.types import Value


class SampleSelection(Value):
    """A choice among a task's samples. Patterns have the wildcards `*`, `?` and `[...]`."""

    include: tuple[str, ...] = Field(default=(), exclude_if=lambda patterns: not patterns)
    """Play only samples whose id matches one of these; empty: all."""
    exclude: tuple[str, ...] = Field(default=(), exclude_if=lambda patterns: not patterns)
    """Play no sample whose id matches one of these."""
    limit: int | None = Field(default=None, ge=1, exclude_if=lambda limit: limit is None)
    """Play at most so many, spread over the environment's categories."""
    shuffle_seed: int | None = Field(default=None, exclude_if=lambda seed: seed is None)
    """Take those of `limit` at random by this number, not the first of each category."""
