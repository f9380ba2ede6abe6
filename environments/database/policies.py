"""The built-in policies: the reference, a weak heuristic and a random one."""

import json
import random
import re
from collections.abc import Sequence

from environments.database import literal
from environments.database.dataset import TableEntry
from environments.database.prompt import question
from environments.database.table_hash import quoted
from proctor.environment import Policy
from proctor.types import Action, Message

_PHRASE = re.compile(r"'([^']+)'|\"([^\"]+)\"|((?:[A-Z][\w.-]*)(?: [A-Z][\w.-]*)*)|(\d[\w.,-]*)")
_MAX_RANDOM_STATEMENTS = 3
_ASKED = {
    "how many": "COUNT(*)",
    "average": "AVG({})",
    "highest": "MAX({})",
    "lowest": "MIN({})",
}
"""The SQL for words in a question; the first match is used."""


def reference(entry: TableEntry) -> Policy:
    """Answers with the label, or runs the label's statement and then answers."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        if entry.category == "SELECT":
            return answer(entry.label)
        return answer(["done"]) if statements_run(entry, transcript) else operation(entry.label[0])

    return act


def naive(entry: TableEntry) -> Policy:
    """Selects one column by the words of the question and answers with the result; changes nothing."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        if statements_run(entry, transcript):
            return answer(_cells(transcript[-1].content))
        return operation(_lookup(entry))

    return act


def chance(entry: TableEntry, seed: int) -> Policy:
    """Selects random cells and answers with a random one of the last result."""

    def act(_: str, transcript: Sequence[Message]) -> Action:
        turn = statements_run(entry, transcript)
        dice = random.Random(f"{entry.id}:{seed}:{turn}")
        if turn < dice.randint(0, _MAX_RANDOM_STATEMENTS):
            column = quoted(dice.choice(entry.table.columns))
            return operation(f"SELECT {column} FROM {quoted(entry.table.name)} LIMIT {dice.randint(1, 10)}")
        return answer([dice.choice(_cells(transcript[-1].content) or [str(dice.randint(0, 20))])])

    return act


def statements_run(entry: TableEntry, transcript: Sequence[Message]) -> int:
    """The number of statements the agent has run: its replies after the question, without those in the prompt."""
    return sum(message.role == "assistant" for message in transcript[transcript.index(question(entry)) :])


def operation(sql: str) -> Action:
    """A reply that runs a statement."""
    return Action(content=f"Let us see.\nAction: Operation\n```sql\n{sql}\n```")


def answer(values: Sequence[str]) -> Action:
    """A reply that commits an answer."""
    listed = json.dumps(list(values), ensure_ascii=False)
    return Action(content=f"This is my answer.\nAction: Answer\nFinal Answer: {listed}")


def _lookup(entry: TableEntry) -> str:
    """A statement for the column that the question names, over rows with the question's longest name or number."""
    question = entry.description.casefold()
    columns = entry.table.columns
    wanted = next((name for name in columns if name and name.casefold() in question), columns[0])
    asked = next((sql for words, sql in _ASKED.items() if words in question), "{}").format(quoted(wanted))
    phrases = ["".join(groups) for groups in _PHRASE.findall(entry.description)][1:]
    sql = f"SELECT {asked} FROM {quoted(entry.table.name)}"
    if phrases:
        pattern = max(phrases, key=len).rstrip(".,?").replace("'", "''")
        sql += " WHERE " + " OR ".join(f"{quoted(name)} LIKE '%{pattern}%'" for name in columns)
    return sql + " LIMIT 1"


def _cells(result: str) -> list[str]:
    """The cells of a result text, row by row; none where it is an error or was cut."""
    try:
        rows = literal.parse(result)
    except literal.NotALiteral:
        return []
    cells = [cell for row in rows if isinstance(row, tuple) for cell in row] if isinstance(rows, list) else []
    return [str(cell) for cell in cells]
