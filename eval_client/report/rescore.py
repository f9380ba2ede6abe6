"""Scores all trials of a run again, and writes a run of its own."""

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import NamedTuple

from eval_client.own_runs import list_run
from eval_client.plan.plan import Plan, trial_seed
from eval_client.plan.published import other_play
from eval_client.run.preflight import PreflightError, check_trust
from eval_client.store.journal import Journal
from eval_client.store.lock import taken_over
from eval_client.store.records import DIVERGED, Manifest, TaskRecord, Trial, Turn
from eval_client.store.runs import owner_name
from eval_client.store.store import Store
from eval_client.trial.episode import TrialHistory
from proctor.config.task import TaskDefinition
from proctor.environment import Agent, AgentUnavailable, Environment, EnvironmentFault
from proctor.event_loop import beside
from proctor.session.kept_replies import KeptReply, SessionReplies, session_replies
from proctor.session.play import play_to_finish
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason, Observation
from task_server.wire.messages import Act, SampleList
from task_server.wire.offered_tools import OfferedTools
from task_server.wire.turns import refused, stopped_by
from task_server.worker.hosted_task import read_samples

PROGRESS_S = 2.0
"""How often the progress is said."""

Worlds = Mapping[str, tuple[TaskDefinition, Environment]]
"""task -> its definition and its environment"""


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


class AnswersNotBought(Exception):
    """Models of the environments (judges, hosts) would have to be asked, and nobody has allowed that."""

    def __init__(self, questions: Mapping[str, int], trials: int) -> None:
        calls = ", ".join(f"{model}: at least {count}" for model, count in sorted(questions.items()))
        super().__init__(f"{trials} trials need new answers of judges, hosts or users ({calls} calls)")


@dataclass(frozen=True)
class RescoreRequest:
    """Which run to score again, how, and where to."""

    source: Store
    target: Store
    plan: Plan
    """The source's plan with changed tasks."""
    overrides: tuple[str, ...]
    """Those of the source and the new ones."""
    may_buy: bool
    """Whether judges may be asked for answers that the source lacks."""


async def rescore(request: RescoreRequest, say: Callable[[str], None], report: Callable[[str], None]) -> None:
    """Score every trial of the source again and store the results in the target, which is new.

    `say` gets what will be paid for, `report` the progress. Judges are asked only where the journal lacks their answer;
    first all trials are scored that need none. Raises
    PreflightError, AnswersNotBought, StoreError, DatabaseError; the target is then not whole and must be removed.
    """
    source, target = request.source, request.target
    async with _worlds(request.plan) as worlds:
        listed = await asyncio.to_thread(
            lambda: {name: read_samples(name, task.environment_label, world) for name, (task, world) in worlds.items()}
        )
        check_trust(request.plan, listed)
        new = (trial.model_copy(update={"attempts": 0}) for trial in source.trials())
        manifest = _manifest(request, listed)
        list_run(target.run, manifest)
        target.create(manifest, new)
        trials = sum(pair.planned for pair in target.pair_totals())
        async with taken_over(target) as fence:
            journal = Journal(target, fence)
            try:
                play = _Play(request, worlds, journal)
                with _progress(play, trials, report):
                    await play.all(source.trials)
                    if play.postponed:
                        needed = AnswersNotBought(play.questions, len(play.postponed))
                        if not request.may_buy:
                            raise needed
                        say(str(needed))
                        left = tuple(play.postponed)
                        await play.all(lambda task: (each for each in left if each.task == task), may_buy=True)
                    play.refuse_if_all_diverged(source.manifest().version)
            finally:
                await journal.close()
            _write_summaries(target, worlds)
            totals = target.pair_totals()
            whole = all(pair.complete for pair in totals)
            target.set_state("finished" if whole else "incomplete", fence)


class _Play:
    """Replays trials, of each task as many at once as a worker would hold."""

    def __init__(self, request: RescoreRequest, worlds: Worlds, journal: Journal) -> None:
        self._source, self._plan, self._journal = request.source, request.plan, journal
        self._worlds = worlds
        self.written = Counter[str]()
        """task -> trials whose final row is stored"""
        self._diverged = Counter[str]()
        """task -> those of them in which the agent would be shown something else"""
        self.postponed: list[Trial] = []
        """Trials that need answers of judges which the source lacks."""
        self.questions = Counter[str]()
        """model -> calls that these need at least"""

    async def all(self, trials_of: Callable[[str], Iterator[Trial]], *, may_buy: bool = False) -> None:
        """Replay the trials of each task; the final row of each is durable, but for those postponed."""
        try:
            async with asyncio.TaskGroup() as group:
                for name, (task, _) in self._worlds.items():
                    waiting = trials_of(name)
                    for _ in range(task.sessions()):
                        group.create_task(self._in_turn(waiting, may_buy))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    def refuse_if_all_diverged(self, version: str) -> None:
        """Raises PreflightError for a task of which no trial can be scored again. `version`: the source's."""
        for task, trials in self.written.items():
            if self._diverged[task] == trials:
                raise PreflightError(
                    f"task {task}: none of its {trials} trials can be scored again, since each would show the agent"
                    f" something else than when it answered; score the run with the Proctor that played it ({version})"
                    " and the same data, or start a new run"
                )

    async def _in_turn(self, waiting: Iterator[Trial], may_buy: bool) -> None:
        for trial in waiting:
            replayed = await asyncio.create_task(self._replayed(trial, may_buy))
            if replayed.unbought:
                self.postponed.append(trial)
                self.questions.update(replayed.unbought)
            else:
                await self._write(trial, replayed)

    async def _replayed(self, trial: Trial, may_buy: bool) -> Replayed:
        """Score a trial's answers again. What the journal has no answer for leaves it unscored, with the cause.

        To be called in an asyncio task of its own: the replies of the environment's models belong to the session.
        """
        _, turns, _ = self._source.journal(trial.id)
        known = [each.model_copy(update={"bought": False}) for each in self._source.replies(trial.id)]
        replies = SessionReplies(known, lambda: None, may_buy=may_buy)
        session_replies.set(replies)
        agent, seed = JournalledAnswers(turns), trial_seed(self._plan.seed, trial.task, trial.sample, trial.epoch)
        finish = await play_to_finish(self._worlds[trial.task][1], trial.sample, agent, seed)
        if agent.missing is not None:
            finish = Finish.fault(FinishReason.TASK_ERROR, agent.missing)
        used = turns[: agent.used]
        finish = refused(finish, used[-1].reply if used else None, scored=self._plan.refusals == "scored")
        return Replayed(finish, used, replies.since(0), agent.missing is not None, dict(replies.unbought))

    async def _write(self, trial: Trial, replayed: Replayed) -> None:
        await self._journal.begin(trial, 1, 0, secrets.token_hex(16))
        if replayed.replies:
            await self._journal.replies(trial, 0, replayed.replies)
        for turn in replayed.turns:
            await self._journal.turn(trial, 0, turn)
        outcome = DIVERGED if replayed.diverged else "finished"
        # The cost is that of the answers when they were given; now they cost nothing.
        seconds = sum(turn.model_seconds + (turn.world_seconds or 0.0) for turn in replayed.turns)
        cost = TrialHistory(turns=list(replayed.turns), seconds=seconds).cost()
        await self._journal.finish(trial, 1, None, replayed.finish, cost, outcome=outcome)
        self.written[trial.task] += 1
        self._diverged[trial.task] += replayed.diverged


@contextlib.contextmanager
def _progress(play: _Play, trials: int, report: Callable[[str], None]) -> Iterator[None]:
    """While inside, report every PROGRESS_S how many trials are done, and at the end that all are."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            report(f"{play.written.total()} of {trials} trials are scored again")

    with beside(repeat()):
        yield
        report(f"{play.written.total()} of {trials} trials are scored again")


@contextlib.asynccontextmanager
async def _worlds(plan: Plan) -> AsyncIterator[Worlds]:
    """The environments of a plan's tasks, ready to play. Raises PreflightError."""
    remote = [task.name for task in plan.tasks if not isinstance(task, TaskDefinition)]
    if remote:
        raise PreflightError(f"tasks.{remote[0]}: its controller defines it; a re-score needs its `environment` here")
    async with contextlib.AsyncExitStack() as stack:
        worlds: dict[str, tuple[TaskDefinition, Environment]] = {}
        for task in plan.definitions():
            world = task.opened()
            try:
                await stack.enter_async_context(world.lifespan())
            except EnvironmentFault as error:
                raise PreflightError(f"tasks.{task.name}: {error}") from error
            worlds[task.name] = task, world
        yield worlds


def check_overrides(before: Plan, after: Plan) -> None:
    """Raises PreflightError if a plan differs in anything but its tasks' settings: the answers would be others."""
    ours, theirs = ({**plan.identity(), "tasks": sorted(task.name for task in plan.tasks)} for plan in (before, after))
    if ours != theirs:
        changed = ", ".join(sorted(field for field in ours if ours[field] != theirs[field]))
        raise PreflightError(f"--set: changes {changed}; a re-score can change parameters and data of tasks alone")


def _manifest(request: RescoreRequest, listed: Mapping[str, SampleList]) -> Manifest:
    parent = request.source.manifest()
    changed = {
        "version": version("proctor"),
        "id": "",
        "plan_path": "(rescore)",
        "plan": request.plan.model_dump(mode="json"),
        "overrides": request.overrides,
        "identity": request.plan.identity(),
        "tasks": {name: _record(parent.tasks[name], task, request.plan) for name, task in listed.items()},
        "owner": owner_name(),
        "parent": request.source.run,
    }
    return parent.model_copy(update=changed)


def _record(before: TaskRecord, task: SampleList, plan: Plan) -> TaskRecord:
    cut = f"only {before.samples} of {len(task.samples)} samples were played"
    other = other_play(plan, task.task, task.published_rounds)
    otherwise = cut if before.samples < len(task.samples) else other
    return TaskRecord.of(task, before.samples, otherwise, before.selection)


def _write_summaries(target: Store, worlds: Worlds) -> None:
    """Store the environments' own metrics of every pair that has a score."""
    for pair in target.pair_totals():
        if not pair.scored:
            continue
        summary = summarize(worlds[pair.task][1], *target.clustered_finishes(pair.agent, pair.task))
        target.write_summary(pair.agent, pair.task, pair.scored, summary)
