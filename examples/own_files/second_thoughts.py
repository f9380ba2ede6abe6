"""An agent around a model: it drafts an answer, has it checked, and answers with what the check makes of it.

In a plan: {name: thinker, function: ./second_thoughts.py:answer, endpoint: NAME, model: NAME}
"""

from collections.abc import Awaitable, Callable, Sequence

from proctor import Action, Message, Tool

CHECK = Message(
    role="user", content="Check your answer against the rules above. Then give the final one, in their form."
)


async def answer(messages: Sequence[Message], tools: Sequence[Tool], model: Callable[..., Awaitable[Action]]) -> Action:
    """Asks the model twice. A draft with function calls is played as it is: it has no form to check."""
    draft = await model(messages, tools=tools)
    if draft.tool_calls:
        return draft
    return await model([*messages, draft.message(), CHECK], tools=tools, temperature=0)
