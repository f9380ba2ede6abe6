"""The agent's prompts: the instruction, its fixed confirmation, and the question.

The instruction has the content of the one in AgentBench (arXiv 2308.03688, Appendix C.3), in our own words; the reply
forms are the published ones.
"""

from collections.abc import Sequence

from environments.database.dataset import TableEntry
from proctor.types import Message, Observation

STATEMENTS = 15
"""Statements that an agent may run; after them it has one more reply, for the answer."""

INSTRUCTION = """\
You will be given a question about a table in a MySQL database, or a change to make to it. Work on the database with \
SQL until you know the answer or have made the change.
In each reply, first explain the problem, your plan and your thoughts. After thinking, either operate or answer.

To operate, write:
Action: Operation
```sql
SELECT * FROM table WHERE condition;
```
The SQL must stand in such a block, on one line, without other comments. Each block holds a single statement, and only \
the first block of a reply is run. You then get the output of that statement.

When you are done and want to commit your final answer, write:
Action: Answer
Final Answer: ["ANSWER1", "ANSWER2", ...]
Do not write this form before you are sure. Be accurate: the answer has to be exactly the correct one.
If you were asked to change the database, make the change first; the answer may then be anything.
A reply in any other form counts as a failure at once.
The outputs you get are raw MySQL responses; reading them is your task."""

CONFIRMATION = "Ok."
BEFORE = (Message(role="user", content=INSTRUCTION), Message(role="assistant", content=CONFIRMATION))
"""The messages before a question, in our own words."""


def question(entry: TableEntry) -> Message:
    """The message with the question."""
    return Message(role="user", content=f"{entry.description}\n{entry.add_description}")


def opening(entry: TableEntry, before: Sequence[Message] = BEFORE) -> Observation:
    """The first observation of a session."""
    return Observation(messages=(*before, question(entry)))


def result(text: str) -> Observation:
    """The observation after a statement."""
    return Observation(messages=(Message(role="user", content=text),))
