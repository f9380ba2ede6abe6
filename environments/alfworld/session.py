"""One session: up to 35 replies, each carried out by the engine."""

from collections.abc import Sequence

from pydantic import JsonValue

from environments.alfworld import prompt
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.world import REFUSED, GameWorld
from environments.alfworld.reply import Profile, action_of, choose
from environments.alfworld.scoring import CommandStep, end_reason, score, step_metrics
from environments.alfworld.task_types import TaskType
from proctor.environment import Agent, AgentStopped
from proctor.types import Finish, FinishReason, Message, Observation

ROUNDS = 35
MAX_KEPT = 200_000
"""Characters that the history keeps of a reply, from its end: 35 whole replies could exceed any message's limit."""
UPSTREAM_STATUS = {
    FinishReason.COMPLETED: "completed",
    FinishReason.TURN_LIMIT: "task limit reached",
    FinishReason.INVALID_FORMAT: "agent invalid action",
    FinishReason.INVALID_ACTION: "agent invalid action",
    FinishReason.CONTEXT_LIMIT: "agent context limit",
}
"""The published code's word for each finish reason (AgentBench v0.2)."""


class HouseholdSession:
    """One game and the agent that plays it."""

    def __init__(
        self, game: ReadyGame, type_: TaskType, agent: Agent, profile: Profile, before: Sequence[Message]
    ) -> None:
        self._world = GameWorld(game)
        self._format = game.grammar.format
        self._agent = agent
        self._profile = profile
        self._type: TaskType = type_
        self._steps: list[CommandStep] = []
        self._history = list(before)

    async def play(self) -> Finish:
        """Plays the game to its end. Raises AgentUnavailable, and GameError where a text of the game is broken."""
        text = prompt.TASK + prompt.opening(self._world.intro)
        for _ in range(ROUNDS):
            try:
                reply = await self._ask(text)
            except AgentStopped as stopped:
                return self._finish(stopped.reason)
            action = action_of(reply, self._profile)
            if not action:
                return self._finish(FinishReason.INVALID_FORMAT if action is None else FinishReason.INVALID_ACTION)
            text = prompt.observed(self._carry_out(reply, action))
            reason = end_reason(self._world.won, self._steps, self._profile)
            if reason is not None:
                return self._finish(reason)
        return self._finish(FinishReason.TURN_LIMIT)

    async def _ask(self, text: str) -> str:
        """The reply to a text with the list of actions. The whole history is sent anew, without its earlier list."""
        last = max((at for at, each in enumerate(self._history) if each.role == "user"), default=0)
        self._history[last] = Message(role="user", content=prompt.without_list(self._history[last].content))
        self._history.append(Message(role="user", content=prompt.with_list(text, self._world.admissible())))
        action = await self._agent.act(Observation(messages=tuple(self._history), fresh=True))
        self._history.append(Message(role="assistant", content=action.content[-MAX_KEPT:]))
        return action.content

    def _carry_out(self, reply: str, action: str) -> str:
        chosen = choose(action, self._world.admissible(), self._profile)
        answer = self._world.step(chosen.command)
        self._steps.append(CommandStep(reply, action, chosen, answer == REFUSED))
        return answer

    def _finish(self, reason: FinishReason) -> Finish:
        steps: list[JsonValue] = [
            {"action": step.action, "executed": step.chosen.command, "similarity": step.chosen.similarity}
            for step in self._steps
        ]
        return Finish(
            reason=reason,
            score=score(reason),
            metrics=step_metrics(self._steps),
            detail={
                "task_type": self._type,
                "format": self._format,
                "profile": self._profile,
                "upstream_status": UPSTREAM_STATUS[reason],
                "steps": steps,
            },
        )
