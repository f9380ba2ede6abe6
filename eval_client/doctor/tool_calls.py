"""Checks of agents that play tasks by function calls: whether their endpoints take tools, call them, take histories."""

from collections.abc import Sequence

from pydantic import ValidationError

from eval_client.doctor import models
from eval_client.doctor.finding import Finding, fail, ok, warn
from eval_client.doctor.models import ProbeReply
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.http.client import AnyClient
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import DIALECTS
from proctor.llm.outcome import read_error, refuses_tools
from proctor.tools.histories import normalised
from proctor.types import Action, Message, Tool, ToolCall

TOOL = Tool(
    name="report_ready",
    description="Reports that the connection works.",
    parameters={
        "type": "object",
        "properties": {"word": {"type": "string", "description": "The word: ready"}},
        "required": ["word"],
        "additionalProperties": False,
    },
)
OPENING = (
    Message(role="system", content="This only checks the connection."),
    Message(role="user", content=f"Call the function {TOOL.name} with the word: ready"),
)
_CALL = ToolCall(id="", name=TOOL.name, arguments='{"word": "ready"}')
MADE_UP = normalised(Action(content="", tool_calls=(_CALL,)), OPENING)


def offers_tools(definition: TaskDefinition) -> bool:
    """Whether a task is played by function calls, by its parameters and the defaults of its environment."""
    if "protocol" in definition.parameters:
        return definition.parameters["protocol"] == "tools"
    try:
        field = registry.load(definition.environment).model_fields.get("protocol")
    except (ValueError, ImportError):
        return False  # the check of the data reports the error
    return field is not None and field.default == "tools"


async def probe(http: AnyClient, agent: str, config: ChatConfig, patience_s: float) -> list[Finding]:
    """Offer a harmless function, then send a history in which it was called; each request costs some 100 tokens."""
    asked, reply = await models.ask_completion(http, agent, config, OPENING, patience_s=patience_s / 2, tools=(TOOL,))
    if isinstance(reply, Finding):
        return [reply]
    called, found = judge_call(asked, reply.status, reply.body)
    if called is None:
        return found
    answers = (Message(role="tool", content="It works.", tool_call_id=call.id) for call in called.tool_calls)
    history = (*OPENING, called.message(), *answers)
    asked, reply = await models.ask_completion(http, agent, config, history, patience_s=patience_s / 2, tools=(TOOL,))
    if isinstance(reply, Finding):
        return [*found, reply]
    return [*found, judge_history(asked, reply.status, reply.body)]


def judge_call(asked: ProbeReply, status: int, body: bytes) -> tuple[Action | None, list[Finding]]:
    """The call for the history, and the findings for the reply to the offer of a function; None without completion.

    The call is the reply's own, since what its endpoint demands back can't be made up; else a made-up one.
    """
    if status != 200 and refuses_tools(status, read_error(body)):
        return None, [fail("agent-tools-refused", f"{asked}: status {status}: {models.excerpt(body)}")]
    if status != 200:
        return None, [models.judge_completion(asked, status, body)]
    try:
        action = normalised(DIALECTS[asked.dialect].read(body).action, OPENING)
    except ValidationError:
        return None, [models.judge_completion(asked, status, body)]
    if action.tool_calls:
        wants = ", and wants back what it thought" if action.echo else ""
        return action, [ok("agent-tools", f"{asked}: takes tools and answers with calls{wants}")]
    unused = warn("agent-tools-unused", f"{asked}: takes tools, but answers without a call")
    return MADE_UP.model_copy(update={"echo": action.echo}), [unused]


def judge_history(asked: ProbeReply, status: int, body: bytes) -> Finding:
    """The finding for the reply to a history with a call and its answer."""
    judged = models.judge_completion(asked, status, body)
    if not judged.is_problem:
        return ok("agent-tools", f"{asked}: takes histories with calls")
    if status in (400, 422):
        return fail("agent-tools-history", judged.what)
    return judged


def players(pairs: Sequence[tuple[str, str]], definitions: Sequence[TaskDefinition]) -> set[str]:
    """The agents that play a task by function calls."""
    tasks = {definition.name for definition in definitions if offers_tools(definition)}
    return {agent for agent, task in pairs if task in tasks}
