"""Sends the tools of a conversation once: later observations say that they are as before."""

from functools import lru_cache

from proctor.types import Observation, Tool
from task_server.wire.messages import Observed


@lru_cache(maxsize=256)
def _shared(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """One object for all equal tools of a process: what is cached by them is then found without comparing them."""
    return tools


class OfferedTools:
    """The tools that each conversation of a session was offered last; one at the worker and one at the client."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[Tool, ...]] = {}

    def step(self, turn: int, observation: Observation) -> Observed:
        """The step to send: without the tools where they are those that the conversation was offered last."""
        tools = observation.tools
        last = self._last.get(observation.conversation)
        if tools and (tools is last or tools == last):
            return Observed(turn=turn, observation=observation.model_copy(update={"tools": ()}), tools_as_before=True)
        if tools:
            self._last[observation.conversation] = tools
        return Observed(turn=turn, observation=observation)

    def note(self, observation: Observation) -> None:
        """Take an observation into account whose tools were sent."""
        if observation.tools:
            self._last[observation.conversation] = _shared(observation.tools)

    def tools(self, step: Observed) -> tuple[Tool, ...]:
        """The tools of a step that was received."""
        if step.tools_as_before:
            return self._last.get(step.observation.conversation, ())
        self.note(step.observation)
        return self._last[step.observation.conversation] if step.observation.tools else ()

    def observation(self, step: Observed) -> Observation:
        """The observation of a step that was received, with its tools."""
        tools = self.tools(step)
        return step.observation.model_copy(update={"tools": tools}) if step.tools_as_before else step.observation
