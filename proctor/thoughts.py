"""What a model thinks aloud before it answers: a closed `<think>...</think>` at the beginning of a reply."""

import re

_THOUGHT = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


def without_thought(text: str) -> str:
    """The reply without such a block, or as it is where it begins with none."""
    found = _THOUGHT.match(text)
    return text[found.end() :] if found else text
