"""Words of a `command` in a plan, and what they get in place of `{prompt}` and the like."""

import re
from collections.abc import Mapping, Sequence

from proctor.config.problems import FieldError
from proctor.config.wording import nearest

_PLACE = re.compile(r"\{\{([A-Za-z_]+)\}\}|\{([A-Za-z_]+)\}")
"""In two braces a name stands for itself, in one pair of braces."""


def check_places(words: Sequence[str], places: Sequence[str]) -> set[str]:
    """What stands in braces in the words. Raises FieldError where it is none of the places."""
    named = {name: None for word in words for _, name in _PLACE.findall(word) if name}
    for name in named:
        if name not in places:
            close = nearest(name, places)
            meant = f"; did you mean {{{close}}}?" if close else ""
            known = ", ".join(f"{{{place}}}" for place in places)
            text = f"unknown {{{name}}}; known are: {known}{meant}; if the program is to get it, write {{{{{name}}}}}"
            raise FieldError(("command",), text)
    return {*named}


def filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with the values in place of what stands in braces."""
    return [_PLACE.sub(lambda place: f"{{{place[1]}}}" if place[1] else values[place[2]], word) for word in words]
