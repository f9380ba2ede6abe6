"""The functions of protocol `tools`: names and parameters of AgentBench FC's OS task, described in our words."""

from environments.operating_system import policies
from environments.operating_system.reply import Bash, Commit, ShellAction, committed, parse
from proctor.environment import Policy
from proctor.tools import Function, Toolset, arguments_schema, in_tools

_DONE = "The operation is done."

BASH_ACTION = Function[ShellAction](
    "bash_action",
    "Runs bash code in the Linux system and returns its output.",
    arguments_schema(script={"type": "string", "description": "The bash code to run."}),
    read=lambda given: Bash(str(given["script"])),
    write=lambda action: {"script": action.code} if isinstance(action, Bash) else None,
)
ANSWER_ACTION = Function[ShellAction](
    "answer_action",
    "Gives the answer to the question, and ends the task.",
    arguments_schema(answer={"type": "string", "description": "The answer alone, exact and without a sentence."}),
    read=lambda given: committed(str(given["answer"])),
    write=lambda action: (
        {"answer": action.answer} if isinstance(action, Commit) and action.answer is not None else None
    ),
)


def toolset(*, thought_answers: bool) -> Toolset[ShellAction]:
    """The functions; with `thought_answers`, the checks get the thought of `finish_action` as the answer, as in FC."""
    finish = Function[ShellAction](
        "finish_action",
        "Ends the task: the operation is done, or information is missing to complete it.",
        arguments_schema(thought={"type": "string", "description": "Why the task is finished."}),
        read=lambda given: committed(str(given["thought"])) if thought_answers and "thought" in given else Commit(None),
        write=lambda action: {"thought": _DONE} if isinstance(action, Commit) and action.answer is None else None,
        needs_none=True,
    )
    return Toolset((BASH_ACTION, finish, ANSWER_ACTION))


def with_calls(policy: Policy) -> Policy:
    """A policy written for protocol `text`, which plays protocol `tools`."""
    return in_tools(policy, parse, _reply, toolset(thought_answers=False))


def _reply(action: ShellAction) -> str:
    """The text of a reply that asks for an action."""
    match action:
        case Bash(code):
            return policies.bash(code).content
        case Commit(None):
            return policies.finish().content
        case Commit(str(text)):
            return policies.answer(text).content
        case _:
            return ""
