"""`compat` reads what the published expressions read, in made replies of `kg` and of SimulBench's judge."""

import random
import re
from collections.abc import Sequence

import pytest

from environments.knowledge_graph.reply import FinalAnswer, LooseAnswer, ToolRequests, shorten
from environments.knowledge_graph.reply import read as read_calls
from environments.simulbench.reply import UnreadableAnswer, verdict

COUNTS = [1_000, pytest.param(20_000, marks=pytest.mark.thorough)]
GRAPH = (
    *("Action", "Action:", "Actions to take:", "action:", "Thought: x", "\n", "\n", ": ", "Observation:"),
    *("get\\_relations(", "get_relations(", "get_neighbors(", "xget_relations(", "count(", "f(", ")", "))"),
    *("(", ", ", ",", " ", "#0", "#-1", "# 1", "variable #1", "Variable ", "Ann", "Ann, B", "variable star"),
    *("m.1", "Final Answer: #1", "Find Answer: #٣", "Final Answer: 1"),
)
JUDGE = (
    *("[[8]]", "[[8.5]]", "[[8.]]", "[[08]]", "[8]", "[7.25]", "[[ 8 ]]", "[[-1]]", "[[99]]", "[[٣]]", "[[[9]]]"),
    *("[[A]]", "[[B]]", "[[C]]", "[[a]]", "[A]", "Rating: ", "8", "\n", " ", "[", "]", "[[1_0]]", "[[1e1]]"),
)
ENTITIES = {"Ann": "m.ann", "Ann, B": "m.annb", "variable star": "m.star"}


def made(chance: random.Random, pieces: Sequence[str]) -> str:
    return "".join(chance.choices(pieces, k=chance.randint(0, 14)))


def published_calls(reply: str) -> int | list[tuple[str, list[str] | None]] | None:
    """The number of the final variable, or the calls that are tried with what their arguments mean; None for none."""
    reply = reply.partition("Observation:")[0].replace("\\_", "_")
    answers = re.findall(r"(?:Find|Final) Answer: #(\d+)", reply)
    if answers:
        return int(answers[0])
    line = next((line for line in reply.split("\n") if re.match(r"Action.*?:", line)), None)
    if line is None:
        return None
    calls: list[tuple[str, list[str] | None]] = []
    for name in re.findall(r"(\w+)\(", line):
        inside = re.findall(rf"{name}\((.+?)\)", line)
        calls.append((name, [_published_meaning(each) for each in re.split(r"\s*,\s*", inside[0])] if inside else None))
    return calls


def _published_meaning(argument: str) -> str:
    named = argument.replace("variable ", "").replace("Variable ", "")
    if named.startswith("#"):
        return named
    return ENTITIES[named] if named in ENTITIES else _or_refused(argument)


def _or_refused(argument: str) -> str:
    """An argument that is an id, or nothing that a tool takes."""
    return argument if re.fullmatch(r"[mf]\.\w+", argument) else "refused"


def our_calls(reply: str) -> int | list[tuple[str, list[str] | None]] | None:
    match read_calls(shorten(reply), [*ENTITIES]):
        case FinalAnswer(digits):
            return int(digits)
        case ToolRequests(calls):
            return [(call.function, _our_meaning(call.arguments)) for call in calls]
        case LooseAnswer():
            return None
    return None


def _our_meaning(arguments: tuple[str, ...] | None) -> list[str] | None:
    if arguments is None:
        return None
    return [each if each.startswith("#") else ENTITIES.get(each, _or_refused(each)) for each in arguments]


@pytest.mark.parametrize("count", COUNTS)
def test_kg(count: int) -> None:
    chance, calls, finals = random.Random(2), 0, 0
    for _ in range(count):
        reply = made(chance, GRAPH)
        if chance.random() < 0.7:
            reply = "Action: " + reply
        wanted = published_calls(reply)
        finals += isinstance(wanted, int)
        calls += isinstance(wanted, list) and any(arguments for _, arguments in wanted)
        assert our_calls(reply) == wanted, reply
    assert min(calls, finals) > count / 40


def published_verdict(text: str) -> str | None:
    return next((letter for letter in "ABC" if f"[[{letter}]]" in text), None)


@pytest.mark.parametrize("count", COUNTS)
def test_simulbench(count: int) -> None:
    """Verdicts; for ratings see acceptance/test_simulbench.py, line 4."""
    chance, found = random.Random(3), set[str | None]()
    for _ in range(count):
        text = made(chance, JUDGE)
        wanted = published_verdict(text)
        found.add(wanted)
        try:
            assert verdict(text, "compat") == wanted, text
        except UnreadableAnswer:
            assert wanted is None, text
    assert found == {"A", "B", "C", None}
