"""The built-in policies: the reference, a weak heuristic and a random one."""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from environments.knowledge_graph import prompt
from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.reply import FinalAnswer, GraphAction, LooseAnswer, ToolRequest, ToolRequests
from proctor.environment import Policy
from proctor.types import Action, Message

_LISTING = re.compile(r"Observation: \[(.*)\]")
_SUBJECT = re.compile(r"get_relations\((.*)\)")
_VARIABLE = re.compile(r"Observation: variable #\d+, which (.*)")
_WORD = re.compile(r"[a-z]{3,}")
_HOPS = 3
"""About the number of variables that the random policy makes on average."""


def reference(entry: QuestionEntry) -> Policy:
    """One gold action per reply, then the last variable; gives up without an answer where a call fails."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(entry, transcript)
        if seen.replies and not seen.last.startswith("Observation:"):
            return Action(content="I give up.")
        if seen.replies < len(entry.actions):
            return call(entry.actions[seen.replies])
        return answer(len(seen.types) - 1)

    return act


def naive(entry: QuestionEntry) -> Policy:
    """One hop from each of two entities by the relation most like the question; intersects variables of one type."""
    words = set(_WORD.findall(entry.question.casefold()))
    starts = _starts(entry)[:2]

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(entry, transcript)
        if seen.relations:
            best = max(seen.relations, key=lambda relation: len(words & set(_WORD.findall(relation))))
            return call(f"get_neighbors({seen.subject},{best})")
        if seen.replies < 2 * len(starts):
            return call(f"get_relations({starts[seen.replies // 2]})")
        if len(seen.types) == 2 and seen.types[0] == seen.types[1]:
            return call("intersection(#0,#1)")
        return answer(len(seen.types) - 1)

    return act


def chance(entry: QuestionEntry, seed: int) -> Policy:
    """Follows random relations from random entities and variables, and answers with a random variable."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(entry, transcript)
        dice = random.Random(f"{entry.id}:{seed}:{seen.replies}")
        if seen.relations:
            return call(f"get_neighbors({seen.subject},{dice.choice(seen.relations)})")
        if seen.types and dice.random() < 1 / _HOPS:
            return answer(dice.randrange(len(seen.types)))
        starts = [*_starts(entry), *(f"#{number}" for number in range(len(seen.types)))]
        return call(f"get_relations({dice.choice(starts)})")

    return act


class _Seen(NamedTuple):
    """The state of a session, read from its transcript."""

    replies: int
    last: str
    """The last message."""
    types: tuple[str, ...]
    """The types of the variables made so far."""
    subject: str
    """What relations were just listed for; empty where the last message is no list."""
    relations: tuple[str, ...]
    """The relations just listed."""


def _seen(entry: QuestionEntry, transcript: Sequence[Message]) -> _Seen:
    own = transcript[transcript.index(prompt.question(entry)) + 1 :]
    last = transcript[-1].content
    listed = _LISTING.match(last) if own else None
    subject = _SUBJECT.search(own[-2].content) if listed else None
    return _Seen(
        replies=sum(message.role == "assistant" for message in own),
        last=last,
        types=tuple(made[1] for message in own if (made := _VARIABLE.match(message.content))),
        subject=subject[1] if subject else "",
        relations=tuple(filter(None, listed[1].split(", "))) if listed and subject else (),
    )


def _starts(entry: QuestionEntry) -> tuple[str, ...]:
    """The ids of the question's entities; without any, the one id that every entity belongs to."""
    return tuple(entry.entities.values()) or ("common.topic",)


def call(text: str) -> Action:
    """A reply that calls a tool."""
    return Action(content=f"Thought: Let us see.\nAction: {text}")


def answer(variable: int) -> Action:
    """A reply that answers with a variable."""
    return Action(content=f"Thought: That is it.\nFinal Answer: #{variable}")


def spelled(action: GraphAction) -> str:
    """An action as a reply of these policies."""
    match action:
        case FinalAnswer(number) | LooseAnswer(number):
            return answer(int(number)).content
        case ToolRequests((ToolRequest(written=written), *_)):
            return call(written).content
    return ""
