"""Plays one sample: statements and results, until an answer or another end."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from environments.database.engines.base import INTERRUPTED, MAX_STATEMENT_BYTES, DatabaseSession
from environments.database.observation import NO_ROWS
from environments.database.prompt import STATEMENTS
from environments.database.reply import Malformed, SqlAction, SqlAnswer, SqlOperation
from environments.database.statements import begins, begun, ends_transaction, kept, split, unqualified, words
from proctor.environment import Agent, AgentStopped
from proctor.tools import ReplyReader, UnreadableCall
from proctor.types import FinishReason, Message, Observation

OUT_OF_SYNC = "Commands out of sync; you can't run this command now"
"""The observation of several statements in AgentBench v0.2: its client can't go on with more than one result."""
BATCH_S = 60.0
"""Of several statements none is begun after this time (AgentBench FC's limit of a call)."""
Way = Literal["v0.2", "fc", "each"]
"""How several statements are run.

`v0.2`: what no statement of them commits is undone, and the observation is OUT_OF_SYNC. `fc`: all changes count, and
the observation is that of the first, or the error of the second. `each`: all changes count, and all are shown.
"""
_ERROR = re.compile(r"[0-9]+ \(\w{5}\): ")
_SYNTAX = "1064 ("
_CONTROL = frozenset(("commit", "rollback", "begin", "savepoint", "release"))
_CHANGES = frozenset(("insert", "update", "delete", "replace"))


@dataclass(frozen=True)
class StatementRunner:
    """Runs the SQL of one session's replies."""

    session: DatabaseSession
    way: Way
    table: str | None = None
    """The table whose name its database has too, in AgentBench v0.2; None where no statement may say so."""

    async def run(self, sql: str) -> str:
        """The observation after the SQL of one reply. Raises EnvironmentFault."""
        if not sql:
            return NO_ROWS
        if len(sql) > MAX_STATEMENT_BYTES:
            return await self.session.run(sql)
        if self.table is not None:
            sql = unqualified(sql, self.table)
        parts = split(sql)
        if self.way == "each":
            parts = [part for part in parts if begun(part)] or [sql]
        return await (self.session.run(parts[0]) if len(parts) == 1 else self._several(sql, parts))

    async def _several(self, sql: str, parts: Sequence[str]) -> str:
        texts, start = list[str](), 0
        stays = kept(parts, to_the_end=self.way != "v0.2")
        until = asyncio.get_running_loop().time() + BATCH_S
        for place, part in enumerate(parts):
            start = sql.index(part, start)
            if asyncio.get_running_loop().time() > until:
                texts.append(INTERRUPTED)
                break
            if stays[place] and self.way == "v0.2" and words(part)[0] in _CHANGES:
                stays[place] = await self._is_committed(parts[place + 1 :])
            if not begun(part) and place + 1 < len(parts):
                texts.append(_SYNTAX)
            elif _is_lost(part, parts[:place]):
                texts.append(await self.session.run(part))
            else:
                texts.append(await (self._run(part) if stays[place] else self._look(part)))
            if texts[-1].startswith(_SYNTAX):
                texts[-1] = await self.session.run(sql[start:])  # the error quotes all that follows
            if _ERROR.match(texts[-1]):
                break
        if self.way == "each":
            return "\n".join(texts)
        if self.way == "v0.2":
            return texts[0] if _ERROR.match(texts[0]) else OUT_OF_SYNC
        return texts[1] if len(texts) > 1 and _ERROR.match(texts[1]) else texts[0]

    async def _run(self, part: str) -> str:
        """The observation of one of several statements. The engine commits each, so those that only control a
        transaction do nothing."""
        controls = words(part)[0] in _CONTROL or begins(part)
        return NO_ROWS if controls else await self.session.run(part)

    async def _look(self, part: str) -> str:
        """The observation of a statement whose change doesn't stay, which is only explained."""
        if words(part)[0] not in _CHANGES:
            return await self._run(part)
        text = await self.session.run(f"EXPLAIN {part}")
        return text if _ERROR.match(text) else NO_ROWS

    async def _is_committed(self, after: Sequence[str]) -> bool:
        """Whether the statements after a change come to its commit: one that fails ends them."""
        for part in after:
            if ends_transaction(part):
                return True
            if _ERROR.match(await self._look(part)):
                return False
        return True


def _is_lost(part: str, before: Sequence[str]) -> bool:
    """Whether a statement goes back to a savepoint that none before it has made."""
    verb, *further = words(part)
    made = (words(each) for each in before)
    return verb == "rollback" and "to" in further and ["savepoint", further[-1]] not in ([w[0], w[-1]] for w in made)


@dataclass(frozen=True)
class SessionResult:
    """Why a conversation ended, how many statements were run, and the answer."""

    reason: FinishReason
    statements: int
    answer: str | None = None


async def converse(
    runner: StatementRunner,
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
                    texts.append(await runner.run(sql))
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
