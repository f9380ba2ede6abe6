"""Replays one trial: its journalled answers go through the world again."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.store.records import Turn
from proctor.environment import Agent, AgentUnavailable, Environment
from proctor.session.kept_replies import KeptReply, SessionReplies, session_replies
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Observation
from task_server.wire.messages import Act
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import stopped_by


class Replayed(NamedTuple):
    """A trial that was scored again."""

    finish: Finish
    turns: Sequence[Turn]
    """The turns that were used: fewer than the journal has where the session now ends earlier."""
    replies: tuple[KeptReply, ...]
    """The replies of the environment's models, those of the journal first, which were paid for there."""
    diverged: bool
    unbought: dict[str, int]
    """model -> questions that it would have to be asked"""


class JournalledAnswers(Agent):
    """Answers each observation as the journal does, while the observations are those of the journal."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._offered = OfferedTools()
        self.used = 0
        self.missing: str | None = None
        """Why an observation has no answer; None while all had."""

    async def act(self, observation: Observation) -> Action:
        number = self.used + 1
        if number > len(self._turns):
            raise self._unanswered(f"the session asks for answer {number}, and the run has {len(self._turns)}")
        turn = self._turns[self.used]
        if turn.digest != self._offered.step(number, observation).observation.digest():
            raise self._unanswered(f"diverged: turn {number} shows something else than it did to the agent")
        self.used = number
        if isinstance(turn.reply, Act):
            return turn.reply.action.without_echo()
        raise stopped_by(turn.reply)

    def _unanswered(self, why: str) -> AgentUnavailable:
        self.missing = why
        return AgentUnavailable(why)


async def replay(
    world: Environment, sample: str, seed: int, turns: Sequence[Turn], kept: Sequence[KeptReply], *, may_buy: bool
) -> Replayed:
    """Score a trial's answers again. What the journal has no answer for leaves it unscored, with the cause.

    To be called in an asyncio task of its own: the replies of the environment's models belong to the session.
    """
    known = [each.model_copy(update={"bought": False}) for each in kept]
    replies = SessionReplies(known, lambda: None, may_buy=may_buy)
    session_replies.set(replies)
    agent = JournalledAnswers(turns)
    finish = await play_to_finish(world, sample, agent, seed)
    if agent.missing is not None:
        finish = Finish.fault(FinishReason.TASK_ERROR, agent.missing)
    return Replayed(finish, turns[: agent.used], replies.since(0), agent.missing is not None, dict(replies.unbought))
