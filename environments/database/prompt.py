"""The agent's prompts: the instruction, its fixed confirmation, and the question.

The instruction has the content of the one in AgentBench (arXiv 2308.03688, Appendix C.3), in our own words; the reply
forms are the published ones. That for function calls has its parts in the order of AgentBench FC.
"""

from environments.database.dataset import TableEntry
from proctor.published import Source
from proctor.types import Message

STATEMENTS = 15
"""Statements that an agent may run in protocol `text`; after them it has one more reply, for the answer."""
ROUNDS = 15
"""Replies of an agent in protocol `tools`, the answer among them."""

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
PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/dbbench/__init__.py",
    fingerprints=frozenset(("a49a1ce33a30ffc0d206bb21944c250d",)),
)
"""The published instruction and its confirmation, which the user provides."""

TOOLS_INSTRUCTION = """\
You will be given a question about a table in a MySQL database, or a change to make to it. Work on the database with \
SQL until you know the answer or have made the change.
In each turn, first explain the problem, your plan and your thoughts. After thinking, either operate or answer: call a \
function in every turn, and exactly one.
To operate, call `execute_sql` with the SQL on one line. Each call runs a single statement, and you then get its output.
When you are done and want to commit your final answer, call `commit_final_answer`.
Do not call it before you are sure. Be accurate: the answer has to be exactly the correct one.
If you were asked to change the database, make the change first; the answer may then be anything.
A turn without a function call is lost, and an answer in the text of your reply does not count.
The outputs you get are raw MySQL responses; reading them is your task."""

TOOLS_BEFORE = (Message(role="system", content=TOOLS_INSTRUCTION),)
"""The messages before a question in protocol `tools`."""


def question(entry: TableEntry) -> Message:
    """The message with the question."""
    return Message(role="user", content=f"{entry.description}\n{entry.add_description}")
