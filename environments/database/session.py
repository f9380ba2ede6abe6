"""Plays one sample: statements and results, until an answer or another end."""

from dataclasses import dataclass

from environments.database.engines.base import DatabaseSession
from environments.database.prompt import STATEMENTS
from environments.database.reply import Malformed, SqlAction, SqlAnswer, SqlOperation
from proctor.environment import Agent, AgentStopped
from proctor.tools import ReplyReader, UnreadableCall
from proctor.types import FinishReason, Message, Observation


@dataclass(frozen=True)
class SessionResult:
    """Why a conversation ended, how many statements were run, and the answer."""

    reason: FinishReason
    statements: int
    answer: str | None = None


async def converse(
    session: DatabaseSession,
    agent: Agent,
    opening: tuple[Message, ...],
    reader: ReplyReader[SqlAction],
    turns: int,
) -> SessionResult:
    """The whole conversation, of at most `turns` replies."""
    messages = opening
    statements = 0
    for _ in range(turns):
        try:
            reply = await agent.act(Observation(messages=messages, tools=reader.tools))
        except AgentStopped as stopped:
            return SessionResult(stopped.reason, statements)
        parsed = reader.read(reply)
        texts = []
        for action in parsed.actions:
            match action:
                case SqlOperation(sql):
                    texts.append(await session.run(sql))
                    statements += 1
                case SqlAnswer(text):
                    return SessionResult(FinishReason.COMPLETED, statements, text)
                case Malformed():
                    used_up = statements >= STATEMENTS
                    reason = FinishReason.TURN_LIMIT if used_up else FinishReason.INVALID_FORMAT
                    return SessionResult(reason, statements)
                case UnreadableCall(why):
                    texts.append(why)
        messages = parsed.answered(texts)
    return SessionResult(reader.limit_reason(), statements)
