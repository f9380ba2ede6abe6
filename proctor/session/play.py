"""Plays a session to its finish."""

import asyncio
import inspect
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from pydantic import ValidationError

from proctor.environment import (
    Agent,
    AgentStopped,
    AgentUnavailable,
    Environment,
    EnvironmentFault,
    Policy,
    ServiceAway,
)
from proctor.event_loop import in_thread
from proctor.observability.descriptors import lacks_descriptors
from proctor.own_code import log_traceback
from proctor.session.thoughts import ThoughtCount, has_thought, session_thoughts, without_thought
from proctor.session.transcript import Transcript
from proctor.types import Action, Finish, FinishReason, Observation, ParsedAction


class PolicyAgent(Agent):
    """Plays a policy in this process and keeps its transcript, for tests and checks."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        action = self._policy(observation.conversation, tuple(self._transcript.observe(observation)))
        self._transcript.answer(observation, action)
        return action


def read_answer(environment: Environment, action: Action) -> ParsedAction | None:
    """How the environment reads an answer as the agent gave it, which may hold thoughts."""
    return environment.parse_action(_read(environment, action))


def _read(environment: Environment, action: Action) -> Action:
    if not environment.drops_thoughts:
        return action
    return action.model_copy(update={"content": without_thought(action.content)})


class _Thinking(Agent):
    """Counts the replies with thoughts, and removes these where the environment drops them."""

    def __init__(self, agent: Agent, environment: Environment, count: ThoughtCount) -> None:
        self._agent, self._environment, self._count = agent, environment, count

    async def act(self, observation: Observation) -> Action:
        action = (await self._agent.act(observation)).well_formed()
        if not has_thought(action.content):
            return action
        self._count.agent += 1
        return _read(self._environment, action)


class _FromThread:
    """The agent of a `play` that is a plain `def`, in a thread of its own: `act` returns the action."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._loop = agent, asyncio.get_running_loop()
        self._asked: Future[Action] | None = None
        self._is_over, self._lock, self._home = False, threading.Lock(), threading.get_ident()

    def act(self, observation: Observation) -> Action | Coroutine[Any, Any, Action]:
        """The answer to an observation. Raises what an `Agent` does, and CancelledError once the session is over.

        What was only made in the thread, a coroutine, awaits it on the loop.
        """
        if threading.get_ident() == self._home:
            return self._agent.act(observation)
        with self._lock:
            if self._is_over:
                raise asyncio.CancelledError
            self._asked = asyncio.run_coroutine_threadsafe(self._agent.act(observation), self._loop)
        return self._asked.result()

    def end(self) -> None:
        """Let `play` end at its next question, if it has not asked it already."""
        with self._lock:
            self._is_over = True
            if self._asked is not None:
                self._asked.cancel()


async def _played(environment: Environment, sample: str, agent: Agent, seed: int) -> Finish:
    """The finish of `play`; one that is a plain `def` runs in a thread, which a cancellation waits for."""
    if inspect.iscoroutinefunction(environment.play):
        return await environment.play(sample, agent, seed)
    asking = _FromThread(agent)
    finish = in_thread(f"play {sample}", partial(environment.play, sample, asking, seed))  # type: ignore[arg-type]  # plain
    try:
        played: Any = await asyncio.shield(finish)
    except asyncio.CancelledError:
        asking.end()
        await asyncio.wait([finish])
        finish.cancelled() or finish.exception()  # it is seen
        raise
    result: Finish = await played if inspect.isawaitable(played) else played  # a wrapper of an async one
    return result


async def play_to_finish(environment: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
    """Play one session and turn every exception but a cancellation into a finish: only here are they classified.

    Its detail has, unless it is 0, the number of replies that held thoughts: the agent's under `thoughts`, those of the
    environment's models under `helper_thoughts`.
    """
    count = ThoughtCount()
    counting = session_thoughts.set(count)
    try:
        finish = await _played(environment, sample, _Thinking(agent, environment, count), seed)
    except AgentStopped as stopped:
        finish = Finish(reason=stopped.reason, score=0.0)
    except AgentUnavailable as unavailable:
        finish = Finish.fault(FinishReason.AGENT_ERROR, str(unavailable))
    except ServiceAway as away:
        finish = Finish.away(f"{type(away).__name__}: {away}", away.patience_s)
    except ValidationError as error:
        finish = Finish.fault(FinishReason.TASK_ERROR, f"{error.title}: {_problem(error)}")
        log_traceback(f"sample {sample}", error)
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        finish = Finish.away(cause) if lacks_descriptors(error) else Finish.fault(FinishReason.TASK_ERROR, cause)
        if not isinstance(error, EnvironmentFault):
            log_traceback(f"sample {sample}", error)
    finally:
        session_thoughts.reset(counting)
    return finish.model_copy(update={"detail": {**finish.detail, **count.detail()}})


def _problem(error: ValidationError) -> str:
    """The first problem of a value that an environment made, with its place and input."""
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}: {problem['input']!r:.200}"
