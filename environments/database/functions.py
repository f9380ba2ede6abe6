"""The functions of protocol `tools`: names and parameters of AgentBench FC's database task, described in our words."""

import json

from environments.database import policies
from environments.database.reply import SqlAction, SqlAnswer, SqlOperation, read
from environments.database.scoring import strict_items
from proctor.environment import Policy
from proctor.tools import MAX_TEXT_BYTES, Arguments, Function, Toolset, arguments_schema, given_arguments, in_tools


class _Commit(Function[SqlAction]):
    """Its value is kept as it is, since both comparisons find lists in texts; unless strict, a value that isn't empty
    must be a list or a text, as in FC."""

    def checked(self, text: str, strict: bool) -> Arguments:
        given = given_arguments(text, strict)
        if not given or (strict and "answers" not in given):
            return super().checked(text, strict)
        answers = given["answers"] if strict else next(iter(given.values()))
        if not strict and answers and not isinstance(answers, str | list):
            raise ValueError("answers must be of type array")
        written = json.dumps(answers, ensure_ascii=False).encode(errors="replace")  # a lone surrogate becomes `?`
        if len(written) > MAX_TEXT_BYTES:
            raise ValueError(f"answers is longer than {MAX_TEXT_BYTES >> 10} KiB")
        return {"answers": json.loads(written)}


EXECUTE_SQL = Function[SqlAction](
    "execute_sql",
    "Runs one SQL statement on the database and returns its output.",
    arguments_schema(query={"type": "string", "description": "The statement to run."}),
    read=lambda given: SqlOperation(str(given["query"])),
    write=lambda action: {"query": action.sql} if isinstance(action, SqlOperation) else None,
)
COMMIT_FINAL_ANSWER = _Commit(
    "commit_final_answer",
    "Commits your final answer, once all work on the database is done, and ends the task.",
    arguments_schema(
        answers={"type": "array", "items": {"type": "string"}, "description": "The elements of the answer, in a list."}
    ),
    read=lambda given: SqlAnswer(json.dumps(given["answers"], ensure_ascii=False)),
    write=lambda action: {"answers": [*strict_items(action.text)]} if isinstance(action, SqlAnswer) else None,
)
TOOLSET = Toolset[SqlAction]((EXECUTE_SQL, COMMIT_FINAL_ANSWER), several="in order")


def with_calls(policy: Policy) -> Policy:
    """A policy written for protocol `text`, which plays protocol `tools`."""
    return in_tools(policy, lambda reply: read(reply, may_operate=True, lenient=True), _reply, TOOLSET)


def _reply(action: SqlAction) -> str:
    """The text of a reply that asks for an action."""
    match action:
        case SqlOperation(sql):
            return policies.operation(sql).content
        case SqlAnswer(text):
            return policies.answer(strict_items(text)).content
        case _:
            return ""
