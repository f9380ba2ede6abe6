"""The question to an agent, and the instruction of protocol `tools`.

The fixed text of a question is MindAct's multiple-choice prompt (arXiv 2306.06070, section 4.2) in AgentBench's form
(arXiv 2308.03688, Appendix I).
"""

from collections.abc import Sequence

from environments.mind2web.pages.markup import Rendered
from proctor.types import Message

CALLS_INSTRUCTION = """\
You act on web pages. I show you a part of a page, a task, the actions done so far, and some elements of the page as \
choices. Find the element that has to be acted on next to get the task done, and what to do with it: click it, select \
an option, or type a text. It may be that none of the choices is the right one.
Think first, then call the function choose exactly once; a reply without a call answers nothing."""
LETTERS = "ABCDEF"
NONE = LETTERS[0]
PREVIOUS = 5
"""Number of earlier actions in a question."""


def question(page: Rendered, task: str, previous: Sequence[str]) -> str:
    """The question without its page; ends with a line feed. `previous` holds all earlier actions."""
    lines = (
        "Based on the HTML webpage above, try to complete the following task:",
        f"Task: {task}",
        "Previous actions:",
        *(previous[-PREVIOUS:] or ("None",)),
        "What should be the next action? Please select from the following choices (If the correct action is not in the "
        "page above, please select A. 'None of the above'):",
        "",
        f"{NONE}. None of the above",
        *(f"{chr(ord(NONE) + at)}. {choice.label}" for at, choice in enumerate(page.choices, 1)),
    )
    return "\n".join(lines) + "\n"


def asked(page: Rendered, task: str, previous: Sequence[str]) -> Message:
    """The message with a page and the question about it."""
    return Message(role="user", content=f"'''\n{page.text}\n'''\n\n{question(page, task, previous)}")
