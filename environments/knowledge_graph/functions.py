"""The tools as functions that an agent calls in protocol `tools`.

Names and parameters of the first seven are those of AgentBench FC (578c5e9); the descriptions are in our own words.
"""

import re
from functools import cache

from environments.knowledge_graph.reply import (
    FinalAnswer,
    GraphAction,
    LooseAnswer,
    ToolRequest,
    ToolRequests,
    read,
    shorten,
)
from environments.knowledge_graph.tools import Profile
from proctor.tools import Arguments, Function, Toolset, arguments_schema

_NUMBER = re.compile(r"[\s\"'`]*(?:variable\s*)?#?\s*([0-9]+)[\s\"'`.]*", re.IGNORECASE)


def _tool(name: str, description: str, **parameters: str) -> Function[GraphAction]:
    """A tool as a function; `parameters` has the description of each."""

    def request(given: Arguments) -> GraphAction:
        arguments = tuple(str(given[parameter]) for parameter in parameters)
        return ToolRequests((ToolRequest(name, f"{name}({', '.join(arguments)})", arguments),))

    def write(action: GraphAction) -> Arguments | None:
        match action:
            case ToolRequests((ToolRequest(called, _, (*given,)), *_)) if (called, len(given)) == (
                name,
                len(parameters),
            ):
                return dict(zip(parameters, given, strict=True))
        return None

    schemas = {parameter: {"type": "string", "description": text} for parameter, text in parameters.items()}
    return Function(name, description, arguments_schema(**schemas), request, write, by_name=True)


_SET = "A variable, such as #0."
_START = "A variable, such as #0, or the name of an entity of the question."
_LISTED = "One of those listed, as it stands in the list."
_EXTREME = "Makes a variable of the members with the {} value of an attribute that get_attributes has listed for them."
TOOLS = (
    _tool("get_relations", "Lists the relations that lead away from the members of a variable, or from one entity.",
          variable=_START),
    _tool("get_neighbors", "Makes a variable of what a relation leads to from the members of a variable, or from one "
          "entity. get_relations must have listed the relation for them before.", variable=_START, relation=_LISTED),
    _tool("intersection", "Makes a variable of what is in both of two variables, which must be of the same type.",
          variable1=_SET, variable2="Another variable."),
    _tool("get_attributes", "Lists the numbers and dates that the members of a variable have. Of use only where the "
          "question asks for what is largest, smallest, first, last or the like.", variable=_SET),
    _tool("argmax", _EXTREME.format("largest"), variable=_SET, attribute=_LISTED),
    _tool("argmin", _EXTREME.format("smallest"), variable=_SET, attribute=_LISTED),
    _tool("count", "Makes a variable of the number of a variable's members.", variable=_SET),
)  # fmt: skip


def _answer(given: Arguments) -> GraphAction:
    number = _NUMBER.fullmatch(str(given["variable"]))
    if number is None:
        raise ValueError("variable must be the number of a variable, such as #3")
    return FinalAnswer(number[1])


ANSWER = Function[GraphAction](
    "answer",
    "Answers the question with a variable, and so ends the session.",
    arguments_schema(variable={"type": "string", "description": "The variable that holds the answer, such as #3."}),
    read=_answer,
    write=lambda action: {"variable": f"#{action.variable}"} if isinstance(action, FinalAnswer | LooseAnswer) else None,
)


def _written_answer(reply: str) -> GraphAction | None:
    """The final answer that a reply without a call gives in its text, as in protocol `text`."""
    found = read(shorten(reply))
    return found if isinstance(found, FinalAnswer | LooseAnswer) else None


@cache
def toolset(profile: Profile) -> Toolset[GraphAction]:
    """The functions of a profile; only `strict` has one for the answer."""
    functions = TOOLS if profile == "compat" else (*TOOLS, ANSWER)
    return Toolset(functions, several="in order", without_call=_written_answer)
