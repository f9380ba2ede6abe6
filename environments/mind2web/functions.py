"""The function of protocol `tools`: one call answers a question."""

from environments.mind2web.prompt import LETTERS
from environments.mind2web.reply import MAX_VALUE, OPERATIONS, StepReply
from proctor.tools import Arguments, Function, Toolset, arguments_schema


def _read(given: Arguments) -> StepReply:
    operation, value = (str(given.get(name, "")) for name in ("action", "value"))
    return StepReply(str(given["answer"]), f"{operation} {value.strip()[:MAX_VALUE]}", True)


def _write(reply: StepReply) -> Arguments | None:
    if not reply.parsed:
        return None
    operation, _, value = reply.action.partition(" ")
    given = {"answer": reply.letter, "action": operation, "value": value}
    return {name: text for name, text in given.items() if text}


_PARAMETERS = arguments_schema(
    answer={"type": "string", "enum": [*LETTERS], "description": "The letter of the choice; A for none of them."},
    action={"type": "string", "enum": [*OPERATIONS], "description": "What to do with the element; leave it out for A."},
    value={"type": "string", "description": "The option to select or the text to type; leave it out for a click."},
)
TOOLSET = Toolset[StepReply](
    (
        Function(
            "choose",
            "Chooses the element to act on next, and the action.",
            {**_PARAMETERS, "required": ["answer"]},
            _read,
            _write,
        ),
    )
)
