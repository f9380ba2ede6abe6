"""One episode: the agent's replies become steps, the rewards a score."""

from collections.abc import Sequence

from proctor.environment import Agent, AgentStopped, EnvironmentFault
from proctor.tools import CallReader, ReplyReader, TextReader, UnreadableCall
from proctor.types import Action, Finish, FinishReason, Message, Observation
from proctor_bridges.worlds.openenv.server import EnvSession, RejectedAction
from proctor_bridges.worlds.openenv.wire import (
    LIST_TOOLS,
    Object,
    ScoreRule,
    StepResult,
    called,
    observed,
    score,
    toolset,
)


class EnvEpisode:
    """Plays an agent through a session of its own; actions are texts of a field, or calls of tools where it is None."""

    def __init__(
        self, session: EnvSession, action: str | None, text: str | None, rule: ScoreRule, bounds: tuple[float, float]
    ) -> None:
        self._session, self._action, self._text = session, action, text
        self._rule, self._bounds = rule, bounds
        self._rewards: list[float] = []
        self._steps = self._rejected = 0

    async def play(self, agent: Agent, reset: Object, max_steps: int) -> Finish:
        """From the reset to the score. Raises EnvironmentFault and AgentUnavailable."""
        first = await self._session.reset(reset)
        reader = await self._reader()
        news: Sequence[Message] = (Message(role="user", content=observed(first.observation, self._text)),)
        done = self._took(first)
        try:
            for _ in range(max_steps):
                if done:
                    break
                reply = await agent.act(Observation(messages=tuple(news), tools=reader.tools))
                news, done = await self._turn(reader, reply)
        except AgentStopped as stopped:
            return self._finish(stopped.reason, reader)
        if done:
            return self._finish(FinishReason.COMPLETED, reader)
        return self._finish(FinishReason.TURN_LIMIT if self._steps else FinishReason.INVALID_ACTION, reader)

    async def _reader(self) -> ReplyReader[Object]:
        field = self._action
        if field is not None:
            return TextReader(lambda reply: {field: reply})
        try:
            listed = await self._session.step(LIST_TOOLS)
            return CallReader(toolset(listed.observation), strict=True)
        except (RejectedAction, ValueError) as error:
            raise EnvironmentFault(f"the OpenEnv server lists no tools: {error}") from error

    async def _turn(self, reader: ReplyReader[Object], reply: Action) -> tuple[Sequence[Message], bool]:
        """The messages that answer a reply, and whether the episode is done."""
        parsed, texts = reader.read(reply), list[str]()
        for action in parsed.actions:
            if isinstance(action, UnreadableCall):
                self._rejected += 1
                texts.append(action.why)
                continue
            try:
                result = await self._session.step(action)
            except RejectedAction as error:
                self._rejected += 1
                texts.append(f"This action is invalid. {error}")
                continue
            self._steps += 1
            if self._took(result):
                return (), True
            texts.append(called(result.observation) if parsed.call_ids else observed(result.observation, self._text))
        return parsed.answered(texts), False

    def _took(self, result: StepResult) -> bool:
        """Keep the reward of a result; whether it is the last one."""
        if result.reward is not None:
            self._rewards.append(result.reward)
        return result.done

    def _finish(self, reason: FinishReason, reader: ReplyReader[Object]) -> Finish:
        reached = score(self._rewards, self._rule, self._bounds)
        if reached is None and reason is FinishReason.COMPLETED:
            raise EnvironmentFault("the episode is done, but the OpenEnv server gave no reward in it")
        metrics = {**reader.metrics(), "steps": float(self._steps), "rejected_actions": float(self._rejected)}
        if self._rewards:
            metrics |= {"last_reward": self._rewards[-1], "sum_of_rewards": sum(self._rewards)}
        return Finish(reason=reason, score=reached or 0.0, metrics=metrics)
