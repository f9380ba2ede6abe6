"""Reads the published judge prompt from SimulBench's file, which users supply."""

import json
import re
from pathlib import Path

from environments.simulbench.records import Script
from proctor.published import Source
from proctor.python_file import texts_of, tree_of
from proctor.types import Message, Value

PARTS = ("SIMULATION", "DIALOGUE", "RESPONSE")
_SYSTEM, _RATING = "EVAL_SYSTEM_RPOMPT", "EVAL_PROMPT_SCORING"
PROMPT = Source(file="SimulBench's src/prompts.py", fingerprints=frozenset(("ff53164b7d08e65f9dd3ddd7cbd2047e",)))
"""The fingerprint covers both texts of the file, as of the paper."""
_FIX = f"give {PROMPT.file}, or a file that sets these two"


class PublishedJudge(Value):
    """The texts of the published judge prompt."""

    system: str
    """The system message of the judge and of the agents under test."""
    rating: str
    """The rating prompt with `{SIMULATION}`, `{DIALOGUE}` and `{RESPONSE}`."""

    def asks(self, script: Script, response: str, *, ensure_ascii: bool) -> tuple[Message, ...]:
        """The messages that ask for a rating of a response, with the dialogue in the published form."""
        names = {"user": "user", "assistant": "AI"}
        dialogue = [{names[line.role]: line.content} for line in script.dialogue_history]
        parts = {
            "SIMULATION": script.act,
            "DIALOGUE": json.dumps(dialogue, indent=2, ensure_ascii=ensure_ascii),
            "RESPONSE": json.dumps({"AI": response}, indent=2, ensure_ascii=ensure_ascii),
        }
        filled = re.sub(rf"\{{({'|'.join(PARTS)})\}}", lambda name: parts[name[1]], self.rating)
        return (Message(role="system", content=self.system), Message(role="user", content=filled))

    def texts(self) -> list[str]:
        """All texts, for the fingerprint."""
        return [self.system, self.rating]


def read_judge(path: Path) -> PublishedJudge:
    """The texts of a file, which is parsed but not run. Raises ValueError with file, name and fix."""
    texts = texts_of(tree_of(path))
    for name in (_SYSTEM, _RATING):
        if name not in texts:
            raise ValueError(f"{path}: {name}: no text of this name; {_FIX}")
    for part in PARTS:
        if f"{{{part}}}" not in texts[_RATING]:
            raise ValueError(f"{path}: {_RATING}: lacks {{{part}}}; {_FIX}")
    return PublishedJudge(system=texts[_SYSTEM], rating=texts[_RATING])
