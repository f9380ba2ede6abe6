"""Python functions and objects as agents: (messages, tools) -> a text or an Action, with a Usage or without."""

import asyncio
import functools
import inspect
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, wait
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias

from proctor.environment import Agent, AgentStopped, AgentUnavailable
from proctor.event_loop import in_thread
from proctor.observability.redaction import redacted
from proctor.own_files.loading import OwnFileError, named, raised
from proctor.session.transcript import Transcript
from proctor.types import Action, Message, Observation, Tool, Usage, well_formed

log = logging.getLogger(__name__)
Answer: TypeAlias = str | Action | tuple[str | Action, Usage]


class Answering(Protocol):
    """An object whose method answers."""

    def answer(self, *given: Any, **named: Any) -> Any:
        """The answer."""


AgentFunction: TypeAlias = Callable[..., Answer | Awaitable[Answer]] | Answering
"""Gets the conversation so far and the tools that may be called; returns the answer. What stands in GIVEN it gets too,
where it has a parameter of that name."""
Ask = Callable[..., Awaitable[Action]]
"""What a function gets as `model`: `await model(messages, tools=..., **sampling)`; a plain one leaves `await` out."""
TEXTS, NUMBERS = ("conversation", "task", "sample"), ("seed", "epoch", "turn")
GIVEN = (*TEXTS, *NUMBERS, "model")
THREADS = 64
"""Calls of a plain function that run at once, unless its agent says otherwise; further calls wait."""
LOOK_S = 1.0
"""How often a plain function that waits for its model looks whether the run is over."""
BROKEN_OFF = "the function broke off a call to its model: how fast an endpoint is makes no answer"
"""The fault of a turn in which a function cancelled a call of `model`, as by a timeout of its own."""
END_S = 10.0
"""Longest wait for an agent's `end`."""
RAISED_CHARS = 500
"""How much of an exception's text is kept."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


class FunctionRaised(AgentUnavailable):
    """The function failed: a fault, not a score. The message is the last line of its traceback."""


class Answered(NamedTuple):
    """A function's answer, and the usage that it told."""

    action: Action
    usage: Usage | None = None


class FunctionCaller:
    """Calls one function, a plain one in a thread of its own.

    A class is made once, with `parameters`; its object is called, or the object's `answer`. A function gets them with
    each call. One whose class says `stateful = True` remembers conversations; its method `end`, if it has one, gets the
    id of each that is over.
    """

    def __init__(
        self, function: AgentFunction, threads: int = THREADS, parameters: Mapping[str, object] = NOTHING
    ) -> None:
        """Raises TypeError where the function has parameters that nothing gives, and what making the class raises."""
        self._function: Callable[..., object]
        made: Any = function
        if isinstance(function, type):
            made = function(**parameters)
            self._function, parameters = getattr(made, "answer", made), NOTHING
        else:
            bare: Any = function if callable(function) else function.answer
            self._function = functools.partial(bare, **parameters) if parameters else bare
        if not callable(self._function):
            raise TypeError("its objects can't be called, and have no method `answer`")
        self._given = _wanted(self._function, parameters)
        self.stateful = getattr(made, "stateful", False) is True
        if self.stateful and "conversation" not in self._given:
            raise TypeError("it is stateful, and can't tell conversations apart; give it the parameter `conversation`")
        self._end: Callable[[str], object] | None = getattr(made, "end", None) if self.stateful else None
        self._conversations: dict[str, set[str]] = {}
        """session -> its conversations that were begun and have not been ended, of a stateful agent"""
        self.alike: list[str] = []
        """What its last calls raised, all the same."""
        self._running: dict[str, set[asyncio.Future[None]]] = {}
        """session -> the answers under way, of a stateful agent"""
        self._slots = None if _is_async(self._function) else asyncio.Semaphore(threads)

    @property
    def takes_model(self) -> bool | None:
        """Whether the function's parameter `model` must be given; None where it has none."""
        return self._given.get("model")

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        metadata: Mapping[str, str] = NOTHING,
        model: Ask | None = None,
    ) -> Answered:
        """The function's answer. An AgentStopped of the function passes; what else it raises becomes FunctionRaised."""
        try:
            return _answered(await self._answer(messages, tools, self._named(metadata, model), session_of(metadata)))
        except (AgentStopped, FunctionRaised):
            raise
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            raise _raised(error) from error
        except (Exception, SystemExit) as error:
            if isinstance(error, ExceptionGroup) and (stopped := error.subgroup(AgentStopped)) is not None:
                raise next(each for each in _leaves(stopped)) from None  # of a TaskGroup
            raise _raised(error) from error

    def _named(self, metadata: Mapping[str, str], model: Ask | None) -> dict[str, object]:
        """What the function gets by name. Raises ValueError where it is not known here."""
        named: dict[str, object] = {}
        for name in self._given:
            if name == "model":
                named[name] = model if self._slots is None or model is None else _blocking(model)
            elif (told := metadata.get(name)) is not None:
                named[name] = int(told) if name in NUMBERS else told
        if "conversation" in named:
            session, conversation = session_of(metadata), str(named["conversation"])
            named["conversation"] = conversation = (
                f"{session}-{conversation}" if "session" in metadata else conversation
            )
            if self.stateful:
                self._conversations.setdefault(session, set()).add(conversation)
        if missing := [name for name, needed in self._given.items() if needed and named.get(name) is None]:
            raise ValueError(f"it needs {' and '.join(f'`{name}`' for name in missing)}, which nothing gives here")
        return named

    async def _answer(
        self, messages: Sequence[Message], tools: Sequence[Tool], named: dict[str, object], session: str
    ) -> object:
        call, leave = functools.partial(self._function, messages, tools, **named), self._entered(session)
        if self._slots is None:
            try:
                answer = call()
                return await answer if inspect.isawaitable(answer) else answer
            finally:
                leave()
        await self._slots.acquire()
        answer = await in_thread("agent-function", functools.partial(_called, call), self._slots.release, leave)
        return await answer if inspect.isawaitable(answer) else answer

    def _entered(self, session: str) -> Callable[[], None]:
        """Note that a stateful agent answers in a session, until what is returned is called."""
        if not self.stateful:
            return _nothing
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._running.setdefault(session, set()).add(over)

        def leave() -> None:
            self._running.get(session, set()).discard(over)
            if not over.done():
                over.set_result(None)

        return leave

    async def end(self, session: str, names: Iterable[str] = ()) -> None:
        """Have a stateful agent forget the conversations of a session that it knows, and those that have these names.

        An answer under way is waited for first. What `end` raises is logged: the trial has its score. So is one that
        does not return within END_S.
        """
        if running := self._running.pop(session, None):
            await asyncio.wait(running, timeout=END_S)
        known = self._conversations.pop(session, set()) | {f"{session}-{name}" for name in names}
        if self._end is None:
            return
        for conversation in sorted(known):
            try:
                async with asyncio.timeout(END_S):
                    ended = await in_thread(
                        "agent-function", functools.partial(_called, functools.partial(self._end, conversation))
                    )
                    if inspect.isawaitable(ended):
                        await ended
            except (Exception, SystemExit) as error:
                told = error if isinstance(error, FunctionRaised) else _raised(error)
                why = f"not done within {END_S:g} s" if isinstance(error, TimeoutError) else told
                log.warning("the agent's `end` of the conversation %s: %s", conversation, why)


def answers(given: object) -> bool:
    """Whether something can be an agent: a function, a class, or an object with a method `answer`."""
    return callable(given) or callable(getattr(given, "answer", None))


def session_of(metadata: Mapping[str, str]) -> str:
    """The session that a turn belongs to, whose end ends its conversations; its conversation where there is none."""
    return metadata.get("session", metadata.get("conversation", ""))


def own_function(reference: str) -> AgentFunction:
    """The function or class in a file of the user's own. Raises OwnFileError."""
    found = named(reference)
    if not (isinstance(found, type) or inspect.isfunction(found)):
        raise OwnFileError(f"{reference}: is neither a function nor a class")
    return found


def own_caller(reference: str, threads: int, parameters: Mapping[str, object]) -> FunctionCaller:
    """Calls the function or class in a file of the user's own. Raises OwnFileError."""
    found = own_function(reference)
    try:
        return FunctionCaller(found, threads, parameters)
    except Exception as error:
        code = getattr(found, "__code__", None)
        where = f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""
        raise OwnFileError(f"{where}{error}" if where else raised(error, reference)) from error


def _called(call: Callable[[], object]) -> object:
    """Call a plain function, in a thread. Raises FunctionRaised and AgentStopped."""
    try:
        return call()
    except AgentStopped:
        raise
    except BaseException as error:
        raise _raised(error) from error


def _nothing() -> None:
    """Called where nothing is to be done."""


def _is_async(function: Callable[..., object]) -> bool:
    bare = function.func if isinstance(function, functools.partial) else function
    return any(map(inspect.iscoroutinefunction, (bare, getattr(type(bare), "__call__", None))))  # noqa: B004  # an object


def _wanted(function: Callable[..., object], parameters: Mapping[str, object]) -> dict[str, bool]:
    """Name of GIVEN that the function takes -> whether it has no default. Raises TypeError."""
    try:
        taken = list(inspect.signature(function).parameters.values())
    except ValueError:  # of a builtin
        return {}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    several = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in taken)
    by_name = [each for each in taken[0 if several else 2 :] if each.kind not in variable]
    for each in by_name:
        if each.name not in (*GIVEN, *parameters) and each.default is inspect.Parameter.empty:
            raise TypeError(f"its parameter `{each.name}` is given by nothing; known are {', '.join(GIVEN)}")
    return {each.name: each.default is each.empty for each in by_name if each.name in GIVEN}


def _blocking(model: Ask) -> Callable[..., Action]:
    """The model as plain code in another thread asks it."""
    loop = asyncio.get_running_loop()

    def ask(*given: Any, **more: Any) -> Action:
        async def asked() -> Action:
            return await model(*given, **more)

        asking = asked()
        try:
            answer = asyncio.run_coroutine_threadsafe(asking, loop)
        except RuntimeError:  # the loop is closed
            asking.close()
            raise asyncio.CancelledError from None
        while not wait([answer], LOOK_S).done:
            if loop.is_closed():
                raise asyncio.CancelledError
        try:
            return answer.result()
        except CancelledError:  # an Exception, by which a function would go on
            raise asyncio.CancelledError from None

    return ask


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        yield from _leaves(error) if isinstance(error, ExceptionGroup) else (error,)


def _raised(error: BaseException) -> FunctionRaised:
    last_line = " ".join(redacted(traceback.format_exception_only(error)[-1]).split())
    return FunctionRaised(f"the agent's function raised {last_line[:RAISED_CHARS]}")


def is_cancelled() -> bool:
    """Whether the running task is being cancelled; otherwise a CancelledError comes from the function."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _answered(answer: object) -> Answered:
    usage = None
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Usage):
        answer, usage = answer
        if min(usage) < 0:
            raise ValueError(f"it returned a usage below 0: {usage}")
    if isinstance(answer, Action):
        return Answered(answer.well_formed(), usage)
    if isinstance(answer, str):
        return Answered(Action(content=well_formed(answer)), usage)
    raise TypeError(f"it returned {type(answer).__name__}; return a text or an Action")


class FunctionAgent(Agent):
    """Plays a function in this process and keeps its transcript; `metadata` are those of all turns."""

    def __init__(self, caller: FunctionCaller, metadata: Mapping[str, str] = NOTHING) -> None:
        self._caller, self._metadata, self._turn = caller, metadata, 0
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        self._turn += 1
        told = {**self._metadata, "turn": str(self._turn), "conversation": observation.conversation}
        history = tuple(self._transcript.observe(observation))
        action = (await self._caller(history, observation.tools, told)).action
        self._transcript.answer(observation, action)
        return action
