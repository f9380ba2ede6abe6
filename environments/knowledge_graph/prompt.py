"""The agent's prompts: instruction, worked example, question, and the results of its calls.

Instruction and example have the content of those in AgentBench (arXiv 2308.03688, Appendix D.2), in our own words; the
names of tools and the forms of calls and observations are the published ones.
"""

import ast
import json
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from environments.knowledge_graph.dataset import QuestionEntry
from environments.knowledge_graph.functions import TOOLS
from environments.knowledge_graph.reply import GraphAction, ToolRequest, read
from environments.knowledge_graph.tools import NUMBER, Listing, Profile, ToolRefusal, Variable
from proctor.published import Source, Texts, in_turns, injected, value_of
from proctor.tools import ReplyReader
from proctor.types import Message, Observation, Tool, ToolCall

ROUNDS = 15
"""The most replies of an agent, including the final answer."""
_SHOWN_CALL = 500

INSTRUCTION = f"""\
You answer questions with the help of a knowledge graph, of which you can see only a part at a time. You have the \
tools below. A variable stands for a set of entities, written #0, #1, ... in the order in which they were made; it \
need not be listed for you to go on with it.

get_relations(variable: var) -> list of relations
A variable is a set of entities, or a single one. This lists the relations that lead away from its members, so that \
you can choose the one that helps.
Example: get_relations(Barack Obama) finds the relations of the entity Barack Obama.

get_neighbors(variable: var, relation: str) -> variable
Gives the entities that are connected with the variable by the relation. Use it only after get_relations has shown you \
which relations there are.
Example: get_neighbors(Barack Obama, people.person.profession) gives the professions of Barack Obama.

intersection(variable1: var, variable2: var) -> variable
Gives what stands in both variables. The two must be of the same type.

get_attributes(variable: var) -> list of attributes
Lists the numbers and dates that the members of a variable have. Use it only when the question asks for what is \
largest, smallest, first, last or the like.

argmax(variable: var, attribute: str) -> variable
Gives the members with the largest value of the attribute. Use it only after get_attributes has shown you which \
attributes there are.
Example: argmax(variable, age) gives the oldest.

argmin(variable: var, attribute: str) -> variable
The same with the smallest value.

count(variable: var) -> int
Gives the number of members of a variable.

You make a variable with a tool, and each observation tells you its number and type. In each reply, think, and then \
call one tool in a line of the form
Action: get_relations(#0)
Such a line calls exactly one tool. You can take at most {ROUNDS} actions to answer a question. As soon as a variable \
holds the answer, write instead
Final Answer: #id
where id is the variable's number, as in Final Answer: #3."""

_CALLS_INSTRUCTION = f"""\
You answer questions with the help of a knowledge graph, of which you can see only a part at a time. Functions are \
offered to you that look into it: they list the relations that lead away from entities, follow a relation, intersect \
two sets, list attributes, take the largest or smallest, and count. Call them in the order that leads to the answer.
Keep in mind:
- A variable stands for a set of entities, written #0, #1, ... in the order in which they were made; it need not be \
listed for you to go on with it.
- Choose the function that the question needs next. List relations before you follow one, and attributes before you \
take the largest or smallest.
- Each result that makes a variable tells you its number and type. Consider whether it holds the answer.
- As soon as a variable holds the answer, call no function any more, but write
Final Answer: #id
where id is the variable's number, as in Final Answer: #3.@ANSWER@
- In each turn, think, and then call exactly one function. You have {ROUNDS} turns for a question, and the final \
answer takes one of them.
- Every turn but that with the final answer must call a function."""
_ANSWER_NOTE = {
    "compat": " There is no function for the answer.",
    "strict": " Or call the function answer with this variable.",
}

CONFIRMATION = "Understood. Which question shall I answer?"

EXAMPLE = (
    ("user", "Who designed a rocket engine that burns kerosene in a gas-generator cycle?\nEntities: "
    "[Gas-generator cycle, Kerosene]"),
    ("assistant", "Thought: I begin with the fuel, and look for a relation that leads to engines.\n"
    "Action: get_relations(Kerosene)"),
    ("user", "Observation: [food.food.nutrients, spaceflight.rocket_fuel.engines, spaceflight.rocket_fuel.stages]"),
    ("assistant", "Thought: The engines that burn kerosene are what I need.\n"
    "Action: get_neighbors(Kerosene, spaceflight.rocket_fuel.engines)"),
    ("user", "Observation: variable #0, which are instances of spaceflight.bipropellant_rocket_engine"),
    ("assistant", "Thought: Now the engines with that cycle.\nAction: get_relations(Gas-generator cycle)"),
    ("user", "Observation: [spaceflight.rocket_engine_cycle.rocket_engines]"),
    ("assistant", "Thought: This relation leads to engines, too.\n"
    "Action: get_neighbors(Gas-generator cycle, spaceflight.rocket_engine_cycle.rocket_engines)"),
    ("user", "Observation: variable #1, which are instances of spaceflight.bipropellant_rocket_engine"),
    ("assistant", "Thought: The question asks for engines that are in both sets.\nAction: intersection(#0, #1)"),
    ("user", "Observation: variable #2, which are instances of spaceflight.bipropellant_rocket_engine"),
    ("assistant", "Thought: I still need the designers of these engines.\nAction: get_relations(#2)"),
    ("user", "Observation: [spaceflight.rocket_engine.designed_by, spaceflight.rocket_engine.manufactured_by]"),
    ("assistant", "Thought: The first relation leads to the designers.\n"
    "Action: get_neighbors(#2, spaceflight.rocket_engine.designed_by)"),
    ("user", "Observation: variable #3, which are instances of spaceflight.rocket_engine_designer"),
    ("assistant", "Thought: Variable #3 holds the designers that the question asks for.\nFinal Answer: #3"),
)  # fmt: skip

BEFORE = (
    Message(role="user", content=INSTRUCTION),
    Message(role="assistant", content=CONFIRMATION),
    *(Message(role="user" if role == "user" else "assistant", content=content) for role, content in EXAMPLE),
)
"""The messages before a question in protocol `text`, in our own words."""


_INSTRUCTION_AND_CONSENT = 2


def _in_python(tree: ast.Module) -> Texts:
    """The first two messages of the published file, then the texts of its example, in turns."""
    example = value_of(tree, "ONE_SHOT")
    texts = [text for text in example if isinstance(text, str)] if isinstance(example, list) else []
    return [*islice(injected(tree), _INSTRUCTION_AND_CONSENT), *in_turns(texts)]


PROMPT = Source(
    file="AgentBench v0.2's src/server/tasks/knowledgegraph/task.py",
    fingerprints=frozenset(("9dbb9c49be829fc40ad38f77ea463584",)),
    in_python=_in_python,
)
"""The published instruction and example, which the user provides."""


class GraphDialogue(NamedTuple):
    """What depends on the protocol of a session."""

    before: tuple[Message, ...]
    """The messages before the question."""
    reader: ReplyReader[GraphAction]
    kept: Callable[[str], str]
    """Gives the text of a reply as the history keeps it."""
    one_answer: bool
    """Whether a final answer that names no variable ends the session."""


@cache
def before_calls(profile: Profile) -> tuple[Message, ...]:
    """The messages before a question in protocol `tools`: the instruction, and the same example with function calls."""
    instruction = _CALLS_INSTRUCTION.replace("@ANSWER@", _ANSWER_NOTE[profile])
    return (Message(role="system", content=instruction), *_example_with_calls())


def _example_with_calls() -> Iterator[Message]:
    call: ToolCall | None = None
    for number, (role, text) in enumerate(EXAMPLE):
        if role == "assistant":
            call = _call(text, f"example{number // 2:02}")
            thought = text.removeprefix("Thought: ").partition("\nAction: ")[0]
            yield Message(role="assistant", content=thought, tool_calls=(call,) if call else ())
        elif call:
            yield Message(role="tool", content=text, tool_call_id=call.id)
        else:
            yield Message(role="user", content=text)


def _call(reply: str, id_: str) -> ToolCall | None:
    """The call that a reply of the example asks for; None where it answers."""
    asked = read(reply)
    for function in TOOLS:
        arguments = function.write(asked)
        if arguments is not None:
            return ToolCall(id=id_, name=function.name, arguments=json.dumps(arguments))
    return None


NO_ACTION = "There is no call of a tool in your reply. Please recheck the action."
ANSWER_FORM = (
    "A final answer has the form `Final Answer: #id`, as in Final Answer: #3, and nothing else. Please repeat it."
)
NOT_EXECUTED = "No tool was called: the line with the action holds no name before a parenthesis."


def question(entry: QuestionEntry) -> Message:
    """The message with the question."""
    return Message(role="user", content=f"A new question: {entry.question}\nEntities: [{', '.join(entry.entities)}]")


def next_step(history: list[Message], new: int, shortened: bool, tools: tuple[Tool, ...]) -> Observation:
    """The last `new` messages of a history, or all of it where the agent's own reply was shortened."""
    return Observation(messages=tuple(history if shortened else history[-new:]), tools=tools, fresh=shortened)


def listing(found: Listing, max_shown: int | None) -> str:
    """The observation of a list of names; where it is cut, with the number of names left out."""
    shown = found.names[:max_shown]
    left_out = len(found.names) - len(shown)
    return f"Observation: [{', '.join(shown)}]" + (f" ({left_out} more are not shown)" if left_out else "")


def variable(number: int, made: Variable) -> str:
    """The observation of a new variable."""
    what = "is a number" if made.type == NUMBER else f"are instances of {made.type}"
    return f"Observation: variable #{number}, which {what}" + (f" ({made.warning})" if made.warning else "")


def refusal(call: ToolRequest, why: ToolRefusal | None) -> str:
    """The message after a call that can't be executed, with the reason if `why` is given."""
    text = f"{call.written[:_SHOWN_CALL]} cannot be executed as it is written. Find the mistake and fix it."
    if call.function == "intersection":
        text += " The two variables may differ in type; explore them further, for instance with get_relations."
    return f"{text} Reason: {why.reason[:_SHOWN_CALL]}." if why else text


def unreadable(call: ToolRequest) -> str:
    """The message after a call whose arguments can't be read."""
    return (
        f"The arguments of {call.function[:_SHOWN_CALL]} can't be read; there is probably a syntax error, such as an "
        "unmatched parenthesis. Fix it and call the tool again."
    )


def unknown_variable(digits: str) -> str:
    """The message after a final answer that names no variable."""
    return f"The variable id #{digits[:20]} is invalid: there is no such variable. Please recheck the action."
