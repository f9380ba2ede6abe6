"""Python functions as agents: (messages, tools) -> a text or an Action, plain or async."""

import asyncio
import inspect
import traceback
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from proctor.environment import Agent, AgentStopped, AgentUnavailable
from proctor.observability.redaction import redacted
from proctor.session.transcript import Transcript
from proctor.types import Action, Message, Observation, Tool, well_formed

AgentFunction = Callable[[Sequence[Message], Sequence[Tool]], str | Action | Awaitable[str | Action]]
"""Gets the conversation so far and the tools that may be called; returns the answer."""
THREADS = 64
"""Calls of a plain function that run at once; further calls wait."""
RAISED_CHARS = 500
"""How much of an exception's text is kept."""


class FunctionRaised(AgentUnavailable):
    """The function failed: a fault, not a score. The message is the last line of its traceback."""


class FunctionCaller:
    """Calls one function, a plain one in a thread pool. Close it after the last call."""

    def __init__(self, function: AgentFunction) -> None:
        self._function = function
        self._threads: ThreadPoolExecutor | None = None
        if not inspect.iscoroutinefunction(function):
            self._threads = ThreadPoolExecutor(THREADS, "agent-function")

    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        """The function's answer. An AgentStopped of the function passes; what else it raises becomes FunctionRaised."""
        try:
            return _action(await self._answer(messages, tools))
        except (AgentStopped, FunctionRaised):
            raise
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            raise _raised(error) from error
        except (Exception, SystemExit) as error:
            raise _raised(error) from error

    async def _answer(self, messages: Sequence[Message], tools: Sequence[Tool]) -> object:
        if self._threads is None:
            answer: object = self._function(messages, tools)
        else:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._threads, self._call, messages, tools)
        return await answer if inspect.isawaitable(answer) else answer

    def _call(self, messages: Sequence[Message], tools: Sequence[Tool]) -> object:
        """Call a plain function, in a thread. Raises FunctionRaised and AgentStopped.

        An event loop can't pass StopIteration on, and SystemExit would end it.
        """
        try:
            return self._function(messages, tools)
        except AgentStopped:
            raise
        except BaseException as error:
            raise _raised(error) from error

    def close(self) -> None:
        """Cancel the calls that wait; one that runs in a thread continues until it returns."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


def _raised(error: BaseException) -> FunctionRaised:
    last_line = " ".join(redacted(traceback.format_exception_only(error)[-1]).split())
    return FunctionRaised(f"the agent's function raised {last_line[:RAISED_CHARS]}")


def _is_cancelled() -> bool:
    """Whether the running task is being cancelled; otherwise a CancelledError comes from the function."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _action(answer: object) -> Action:
    if isinstance(answer, Action):
        return answer.well_formed()
    if isinstance(answer, str):
        return Action(content=well_formed(answer))
    raise TypeError(f"it returned {type(answer).__name__}; return a text or an Action")


class FunctionAgent(Agent):
    """Plays a function in this process and keeps its transcript."""

    def __init__(self, caller: FunctionCaller) -> None:
        self._caller = caller
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        action = await self._caller(tuple(self._transcript.observe(observation)), observation.tools)
        self._transcript.answer(observation, action)
        return action
