"""`compat` reads what the published expressions read, in made replies of `db`, `kg` and SimulBench's judge."""

import ast
import random
import re
from collections.abc import Sequence

import pytest

from environments.database.reply import Malformed, SqlAction, SqlAnswer, SqlOperation
from environments.database.reply import read as read_sql
from environments.knowledge_graph.reply import FinalAnswer, LooseAnswer, ToolRequests, shorten
from environments.knowledge_graph.reply import read as read_calls
from environments.simulbench.reply import UnreadableAnswer, rating, verdict

COUNTS = [1_000, pytest.param(20_000, marks=pytest.mark.thorough)]
SQL = (
    *(
        "Action: ",
        "Action:",
        "Operation",
        "Answer",
        "operation",
        "\n",
        "\n",
        "\r\n",
        "```sql\n",
        "```SQL\n",
        "```",
        "\n```",
    ),
    *(
        "SELECT 1;",
        "-- c",
        "# c",
        "/* c */",
        "t.t",
        "START TRANSACTION; COMMIT;",
        "",
        " ",
        "Final Answer:",
        '["a"]',
        "[None, 1]",
    ),
)
GRAPH = (
    *(
        "Action",
        "Action:",
        "Actions to take:",
        "action:",
        "Thought: x",
        "\n",
        "\n",
        ": ",
        "Observation:",
        "get\\_relations(",
    ),
    *(
        "get_relations(",
        "get_neighbors(",
        "xget_relations(",
        "count(",
        "f(",
        ")",
        "))",
        "(",
        ", ",
        ",",
        " ",
        "#0",
        "#-1",
        "# 1",
    ),
    *(
        "variable #1",
        "Variable ",
        "Ann",
        "Ann, B",
        "variable star",
        "m.1",
        "Final Answer: #1",
        "Find Answer: #٣",
        "Final Answer: 1",
    ),
)
JUDGE = (
    *("[[8]]", "[[8.5]]", "[[8.]]", "[[08]]", "[8]", "[7.25]", "[[ 8 ]]", "[[-1]]", "[[99]]", "[[٣]]", "[[[9]]]"),
    *("[[A]]", "[[B]]", "[[C]]", "[[a]]", "[A]", "Rating: ", "8", "\n", " ", "[", "]", "[[1_0]]", "[[1e1]]"),
)
ENTITIES = {"Ann": "m.ann", "Ann, B": "m.annb", "variable star": "m.star"}


def made(chance: random.Random, pieces: Sequence[str]) -> str:
    return "".join(chance.choices(pieces, k=chance.randint(0, 14)))


def published_sql(reply: str) -> SqlAction:
    action = re.search(r"Action: (.*?)\n", reply)
    if action and action[1] == "Operation":
        block = re.search(r"```sql\n([\s\S]*?)\n```", reply)
        return SqlOperation(block[1].strip().replace("\n", " ")) if block else Malformed()
    answer = re.search(r"\nFinal Answer:(.*)", reply)
    return SqlAnswer(answer[1]) if answer else Malformed()


@pytest.mark.parametrize("count", COUNTS)
def test_db(count: int) -> None:
    chance, found = random.Random(1), set[type]()
    for _ in range(count):
        reply = chance.choice(("", "Action: Operation\n", "Action: Operation\n```sql\n")) + made(chance, SQL)
        wanted = published_sql(reply)
        found.add(type(wanted))
        assert read_sql(reply, may_operate=True) == wanted, reply
    assert found == {SqlOperation, SqlAnswer, Malformed}


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


def published_rating(text: str) -> float | None:
    found = re.search(r"\[\[(\d+\.?\d*)\]\]", text) or re.search(r"\[(\d+\.?\d*)\]", text)
    try:
        return float(ast.literal_eval(found[1])) if found else None
    except SyntaxError:
        return None


def published_verdict(text: str) -> str | None:
    return next((letter for letter in "ABC" if f"[[{letter}]]" in text), None)


@pytest.mark.parametrize("count", COUNTS)
def test_simulbench(count: int) -> None:
    chance, rated = random.Random(3), 0
    for _ in range(count):
        text = made(chance, JUDGE)
        for mine, wanted in ((rating, published_rating(text)), (verdict, published_verdict(text))):
            rated += wanted is not None
            try:
                assert mine(text, "compat") == wanted, text
            except UnreadableAnswer:
                assert wanted is None, text
    assert rated > count / 2
