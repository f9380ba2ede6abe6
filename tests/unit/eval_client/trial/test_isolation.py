import asyncio
from contextlib import AsyncExitStack

from eval_client.trial.isolation import Isolation
from tests.pace import slowly


class Trials:
    """Attempts that are let in and out by name."""

    def __init__(self, patience_s: float = slowly(60)) -> None:
        self.isolation = Isolation(patience_s)
        self.inside: list[str] = []
        self._open: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, *, suspect: bool = True, last_try: bool = False) -> None:
        self._open[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._play(name, suspect, last_try))
        await self._settle()

    async def _play(self, name: str, suspect: bool, last_try: bool) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.isolation.entered(suspect=suspect, last_try=last_try))
            self.inside.append(name)
            await self._open[name].wait()
            self.inside.remove(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self._open[name].set()
        await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)  # a round of the loop


async def test_a_last_try_waits_for_all_suspects_and_then_is_the_only_one() -> None:
    trials = Trials()
    await trials.begin("second try")
    await trials.begin("another")
    await trials.begin("last", last_try=True)
    assert trials.inside == ["second try", "another"]
    await trials.end("second try")
    assert trials.inside == ["another"]
    await trials.end("another")
    assert trials.inside == ["last"]
    await trials.begin("late")
    await trials.begin("last too", last_try=True)
    assert trials.inside == ["last"]
    await trials.end("last")
    assert trials.inside == ["last too"], "a last try goes first"
    await trials.end("last too")
    assert trials.inside == ["late"]


async def test_trials_that_lost_no_worker_never_wait_and_hold_up_nobody() -> None:
    trials = Trials()
    await trials.begin("first", suspect=False)
    await trials.begin("last", last_try=True)
    await trials.begin("second", suspect=False, last_try=True)
    assert trials.inside == ["first", "last", "second"]


async def test_a_last_try_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    trials = Trials()
    await trials.begin("suspect")
    await trials.begin("last", last_try=True)
    await trials.begin("late")
    assert trials.inside == ["suspect"]
    await trials.cancel("last")
    await trials.end("suspect")
    await trials.begin("later")
    assert trials.inside == ["late", "later"]


async def test_nobody_waits_for_ever() -> None:
    trials = Trials(patience_s=0.0)
    await trials.begin("suspect")
    await trials.begin("last", last_try=True)
    assert trials.inside == ["suspect", "last"]
