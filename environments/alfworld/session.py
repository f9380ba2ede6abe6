"""One session: up to 35 replies, or 20 with function calls, each carried out by the engine."""

from collections.abc import Sequence

from pydantic import JsonValue

from environments.alfworld import prompt
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.world import REFUSED, GameWorld
from environments.alfworld.prompt import HouseholdDialogue
from environments.alfworld.reply import Move, NoMove, Profile, choose
from environments.alfworld.scoring import CommandStep, end_reason, score, step_metrics
from environments.alfworld.texts import TaskType
from proctor.environment import Agent, AgentStopped
from proctor.published import TASK_STATUS
from proctor.tools import UnreadableCall
from proctor.types import Action, Finish, FinishReason, Message, asked_and_answered

UPSTREAM_UNREADABLE = {"no_call": "agent validation failed", "bad_arguments": "agent invalid action"}
"""The published code's word for a game won after such a reply (AgentBench FC)."""


class HouseholdSession:
    """One game and the agent that plays it."""

    def __init__(
        self, game: ReadyGame, type_: TaskType, agent: Agent, profile: Profile, dialogue: HouseholdDialogue
    ) -> None:
        self._world = GameWorld(game)
        self._format = game.grammar.format
        self._agent = agent
        self._profile = profile
        self._type: TaskType = type_
        self._steps: list[CommandStep] = []
        self._dialogue = dialogue
        self._upstream_won = TASK_STATUS[FinishReason.COMPLETED]

    async def play(self) -> Finish:
        """Plays the game to its end. Raises AgentUnavailable, and GameError where a text of the game is broken."""
        reply: Action | None = None
        text = prompt.TASK + prompt.opening(self._world.intro)
        new: Sequence[Message] = [Message(role="user", content=prompt.with_list(text, self._world.admissible()))]
        for _ in range(self._dialogue.rounds):
            try:
                reply = await self._agent.act(self._dialogue.tell(reply, new))
            except AgentStopped as stopped:
                return self._finish(stopped.reason)
            parsed = self._dialogue.reader.read(reply)
            outcome = self._step(parsed.actions[0])
            if isinstance(outcome, FinishReason):
                return self._finish(outcome)
            new = parsed.answered([prompt.with_list(outcome, self._world.admissible())])
        return self._finish(self._dialogue.reader.limit_reason())

    def _step(self, asked: Move | NoMove | UnreadableCall) -> FinishReason | str:
        """Why the session ends, or what the agent is told."""
        match asked:
            case NoMove(reason=reason):
                return reason
            case UnreadableCall(why, kind):
                self._upstream_won = UPSTREAM_UNREADABLE.get(kind, self._upstream_won)
                return why
            case Move():
                text = prompt.observed(self._carry_out(asked))
                return end_reason(self._world.won, self._steps, self._profile) or text

    def _carry_out(self, move: Move) -> str:
        chosen = choose(move.action, self._world.admissible(), self._profile)
        answer = self._world.step(chosen.command)
        self._steps.append(CommandStep(move.written, move.action, chosen, answer == REFUSED))
        return answer

    def _finish(self, reason: FinishReason) -> Finish:
        steps: list[JsonValue] = [
            {"action": step.action, "executed": step.chosen.command, "similarity": step.chosen.similarity}
            for step in self._steps
        ]
        won = reason is FinishReason.COMPLETED
        last = f"last action: {self._steps[-1].action}" if self._steps else ""
        answered = "reached" if won else last
        return Finish(
            reason=reason,
            score=score(reason),
            metrics=self._dialogue.reader.metrics() | step_metrics(self._steps),
            detail={
                **asked_and_answered(
                    self._world.intro.rpartition("\n\n")[2], f"the goal reached: {self._type}", answered
                ),
                "task_type": self._type,
                "format": self._format,
                "profile": self._profile,
                "upstream_status": self._upstream_won if won else TASK_STATUS[reason],
                "steps": steps,
            },
        )
