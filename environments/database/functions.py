"""The functions of protocol `tools`: names and parameters of AgentBench FC's database task, described in our words."""

import json

from environments.database import policies
from environments.database.reply import SqlAction, SqlAnswer, SqlOperation, read
from environments.database.scoring import strict_items
from proctor.environment import Policy
from proctor.tools import Arguments, Function, Toolset, arguments_schema, in_tools


class _Commit(Function[SqlAction]):
    """Unless strict, a text stays a text: the published comparison finds lists in texts, but not in items of lists."""

    def checked(self, text: str, strict: bool) -> Arguments:
        arguments = super().checked(text, strict)
        (given,) = json.loads(text).values()
        match arguments["answers"]:
            case [only] if isinstance(given, str) and not strict:
                return {"answers": only}
        return arguments


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
