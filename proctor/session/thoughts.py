"""Removes a model's reasoning from a reply: a closed `<think>...</think>` block at its beginning."""

import re

_THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


def without_thought(text: str) -> str:
    """The reply without its leading `<think>` block; unchanged if it has none."""
    found = _THOUGHT.match(text)
    return text[found.end() :] if found else text
