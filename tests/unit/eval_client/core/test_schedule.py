"""The schedule: trials are settled once, limits hold, all that can start starts, and nothing ends early."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_client.core import Pair
from eval_client.core.capacity import CapacityLimits
from eval_client.core.events import (
    Abandon,
    AttemptEnded,
    AttemptOutcome,
    Drain,
    EndAttempt,
    EndpointsChanged,
    Event,
    GaveUp,
    GiveUp,
    Instruction,
    Job,
    QuotasGranted,
    Retry,
    RetryDue,
    RunFinished,
    RunStopped,
    ServiceSlots,
    Settle,
    SlotFreed,
    Start,
    TaskLost,
    TaskSlots,
    TrialsTaken,
)
from eval_client.core.progress import ErrorLimit, Progress
from eval_client.core.schedule import GIVEN_UP, PUT_BACK_S, Schedule
from proctor.types import FinishReason

ATTEMPTS = 3
PAIR = ("a", "t")
KINDS = {"end": 5, "free": 5, "due": 3, "limit": 3, "gave up": 2, "grant": 1, "task": 1, "drain": 0.05}
"""What happens to a `Client`, and how often."""


def schedule(*, error_limit: ErrorLimit | None = None, planned: int = 0) -> Schedule:
    """One agent and one task, both without a free slot, at an endpoint that takes ten."""
    limits = CapacityLimits(endpoint_of={"a": "e"}, concurrency={"a": 10}, pairs=[PAIR, ("a", "u")], pooled=())
    progress = Progress(planned={PAIR: planned}, scored={}, score_sum={})
    made = Schedule(limits, progress, attempts=ATTEMPTS, error_limit=error_limit)
    made.handle(EndpointsChanged({"e": 10}))
    return made


def taken(count: int) -> TrialsTaken:
    return TrialsTaken({PAIR: range(count)})


def tell(of: Schedule, *events: Event) -> list[Instruction]:
    """What the last of these events leads to."""
    told: Sequence[Instruction] = ()
    for event in events:
        told = of.handle(event)
    return list(told)


def playing(count: int = 1) -> Schedule:
    """So many trials under way."""
    of = schedule()
    assert len(tell(of, TaskSlots("t", count, count), taken(count))) == count
    return of


FAULT = FinishReason.TASK_ERROR


def lost(
    job: Job,
    turns: int = 0,
    outcome: AttemptOutcome = AttemptOutcome.LOST,
    *,
    started: bool = True,
) -> AttemptEnded:
    end = AttemptEnded(job, outcome, FAULT, "gone", fault=outcome.value, turns=turns, chance=0.5)
    return replace(end, started=started)


def test_limits_that_come_before_the_first_trial_end_nothing() -> None:
    of = schedule()
    assert tell(of, TaskSlots("t", 1, 1)) == []
    assert tell(of, taken(1)) == [Start(Job(0, PAIR), suspect=False, last_try=False)]


def test_a_run_without_trials_is_over_at_once() -> None:
    assert tell(schedule(), TrialsTaken({})) == [RunFinished()]


def test_the_end_comes_when_the_last_trial_is_settled_and_its_slot_free() -> None:
    of, job = playing(), Job(0, PAIR)
    assert tell(of, AttemptEnded(job, AttemptOutcome.FINISHED, FinishReason.COMPLETED)) == [Settle(job)]
    assert tell(of, SlotFreed(job)) == [RunFinished()]


def test_trials_start_in_the_order_in_which_they_are_taken() -> None:
    of = schedule()
    told = tell(of, TaskSlots("t", 2, 2), TrialsTaken({PAIR: (7, 0, 1)}))
    assert told == [Start(Job(number, PAIR), suspect=False, last_try=False) for number in (7, 0)]


JOB = Job(0, PAIR)
FAILED = lost(JOB)
UNANSWERED = lost(JOB, started=False)
AWAY = lost(JOB, 2, AttemptOutcome.SERVICE_AWAY)
DIVERGED = lost(JOB, 0, AttemptOutcome.DIVERGED)
INTERRUPTED = lost(JOB, 0, AttemptOutcome.INTERRUPTED)
FULL = AttemptEnded(JOB, AttemptOutcome.PUT_BACK, cause="full", fault="put_back")
FIRST, LAST, SETTLED = (0.5, True, False), (1.0, True, True), None
"""The wait before the next attempt, whether that suspects the trial, and whether it is the last one."""
Next = tuple[float, bool, bool] | None
OUTAGE = [(wait_s, False, False) for wait_s in (0.5, 1.0, 2.0, *[2.5] * 9)]


@pytest.mark.parametrize(
    ("ends", "following", "attempts_lost"),
    [
        ([FAILED] * 3, [FIRST, LAST, SETTLED], 2),
        ([lost(JOB, turns) for turns in (2, 4, 6, 8, 10)], [FIRST] * 5, 5),
        ([lost(JOB, turns) for turns in (3, 2, 3)], [FIRST, LAST, FIRST], 3),
        ([lost(JOB, 3)] * 3, [FIRST, LAST, SETTLED], 2),
        ([UNANSWERED] * 4, [(0.0, True, False), FIRST, LAST, SETTLED], 2),
        ([AWAY] * 12 + [FAILED] * 3, [*OUTAGE, FIRST, LAST, SETTLED], 2),
        ([AWAY, DIVERGED, DIVERGED], [OUTAGE[0], (0.0, False, False), (0.5, False, False)], 1),
        ([INTERRUPTED] * 6, [(0.0, False, False)] * 6, 0),
        ([FULL] * 6, [(PUT_BACK_S, False, False)] * 6, 0),
    ],
    ids=["faults", "each gets further", "one gets further", "none gets further", "a start never answered, once",
         "a service that is away", "a replay that differs after an outage", "a session of an earlier client",
         "put back"],
)  # fmt: skip
def test_what_costs_a_trial_an_attempt(ends: list[AttemptEnded], following: list[Next], attempts_lost: int) -> None:
    of, found = playing(), list[Next]()
    for end in ends:
        told = tell(of, end)
        if told == [Settle(JOB)]:
            found.append(None)
            continue
        *before, retry = told
        assert isinstance(retry, Retry)
        assert before == [EndAttempt(JOB)] * (end is not FULL)
        assert tell(of, SlotFreed(JOB)) == []
        (start,) = tell(of, RetryDue(JOB))
        assert isinstance(start, Start)
        found.append((retry.wait_s, start.suspect, start.last_try))
    assert found == following
    assert of.progress.attempts_lost == attempts_lost
    assert of.progress.faults.total() == len(ends)


def test_while_a_service_is_away_one_trial_of_its_task_starts_at_a_time() -> None:
    of = schedule()
    tell(of, TaskSlots("t", 3, 3), ServiceSlots("t", 0, "gone"))
    assert tell(of, taken(3)) == []
    assert of.progress.task_waits == {"t": "gone"}
    assert [type(told) for told in tell(of, ServiceSlots("t", 1, "gone"))] == [Start]
    assert tell(of, TaskSlots("t", 3, 3)) == []
    assert [type(told) for told in tell(of, ServiceSlots("t"))][:2] == [Start, Start]
    assert of.progress.task_waits == {}


def test_a_run_that_stops_does_not_wait_for_a_service() -> None:
    of, job = playing(), Job(0, PAIR)
    tell(of, Drain("stopped"))
    assert tell(of, AWAY) == [EndAttempt(job)]
    assert RunFinished() in tell(of, SlotFreed(job))


def test_an_agent_that_is_refused_plays_nothing_more() -> None:
    of = schedule()
    tell(of, TaskSlots("t", 1, 1), TrialsTaken({PAIR: range(3), ("a", "u"): (9,)}))
    first = Job(0, PAIR)
    assert tell(of, AttemptEnded(first, AttemptOutcome.UNAUTHORIZED, cause="no key", fault="refused")) == []
    assert of.unstarted() == {}
    assert tell(of, SlotFreed(first)) == [RunFinished()]
    assert of.refused == {PAIR: "no key", ("a", "u"): "no key"}


def test_refused_tools_end_one_pair() -> None:
    of = schedule()
    tell(of, TaskSlots("t", 1, 1), TrialsTaken({PAIR: range(2), ("a", "u"): (9,)}))
    first = Job(0, PAIR)
    tell(of, AttemptEnded(first, AttemptOutcome.TOOLS_REFUSED, cause="no tools"), SlotFreed(first))
    assert set(of.refused) == {PAIR}
    assert of.unstarted() == {("a", "u"): 1}


def test_a_run_that_drains_plays_to_the_end_what_is_under_way() -> None:
    of = schedule()
    tell(of, TaskSlots("t", 1, 1), taken(2))
    assert tell(of, Drain("enough")) == [RunStopped(at_once=False)]
    assert of.unstarted() == {}
    assert tell(of, lost(Job(0, PAIR))) == [Settle(Job(0, PAIR))]  # there is no other client to play it again
    assert tell(of, SlotFreed(Job(0, PAIR))) == [RunFinished()]
    assert of.result().stopped == "enough"


def test_an_abandoned_run_is_over_at_once() -> None:
    assert tell(playing(), Abandon("twice")) == [RunStopped(at_once=True), RunFinished()]


def test_of_two_spending_limits_the_first_is_told() -> None:
    of = playing(2)
    first, second = Job(0, PAIR), Job(1, PAIR)
    told = tell(of, AttemptEnded(first, AttemptOutcome.BUDGET, cause="spent", spend_limit="tokens"))
    assert told == [RunStopped(at_once=False)]
    tell(of, AttemptEnded(second, AttemptOutcome.BUDGET, cause="spent more", spend_limit="money"))
    assert (of.result().limit, of.result().stopped) == ("tokens", "spent")


def test_a_lost_task_is_given_up() -> None:
    of = schedule()
    told = tell(of, taken(2), TaskLost("t", "gone"))
    assert told == [GiveUp(Job(0, PAIR), "gone"), GiveUp(Job(1, PAIR), "gone")]
    assert tell(of, GaveUp(Job(0, PAIR))) == []
    assert tell(of, GaveUp(Job(1, PAIR))) == [RunFinished()]


def test_of_a_large_task_that_is_lost_some_trials_are_given_up_at_once_and_the_rest_is_played_if_it_is_back() -> None:
    of = schedule()
    first = tell(of, taken(GIVEN_UP + 2), TaskLost("t", "gone"))
    assert (len(first), tell(of, TaskLost("t", "gone"))) == (GIVEN_UP, [])
    tell(of, GaveUp(Job(0, PAIR)))
    assert tell(of, TaskLost("t", "gone")) == [GiveUp(Job(GIVEN_UP, PAIR), "gone")]
    assert tell(of, TaskSlots("t", 9, 9)) == [Start(Job(GIVEN_UP + 1, PAIR), suspect=False, last_try=False)]


def test_too_many_unscored_trials_drain_the_run() -> None:
    of = schedule(error_limit=ErrorLimit.read("2"), planned=5)
    tell(of, TaskSlots("t", 1, 1), taken(5))
    of.progress.unscored[PAIR] = 1
    assert RunStopped(at_once=False) not in tell(of, EndpointsChanged({"e": 10}))
    of.progress.unscored[PAIR] = 2
    assert RunStopped(at_once=False) in tell(of, EndpointsChanged({"e": 10}))
    assert of.stopped is not None


def test_trials_that_wait_for_an_endpoint_that_is_down_count_as_unscored() -> None:
    of = schedule(error_limit=ErrorLimit.read("3"), planned=5)
    tell(of, TaskSlots("t", 1, 1), taken(3))
    assert of.held_up() == 0
    assert RunStopped(at_once=False) in tell(of, EndpointsChanged({"e": 1}, frozenset({"e"})))


class Client:
    """Carries out what a schedule instructs, in a world of chance; knows by itself what must hold."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        size = self.chance.randint
        self.pooled = self.chance.random() < 0.5
        self.endpoints = {f"e{n}": size(0, 5) for n in range(size(1, 3))}
        self.agents = {f"a{n}": size(1, 4) for n in range(size(1, 4))}
        self.tasks = {f"t{n}": 0 for n in range(size(1, 3))}
        self.endpoint_of = {agent: self.chance.choice(sorted(self.endpoints)) for agent in self.agents}
        self.pairs = [(agent, task) for agent in self.agents for task in self.tasks]
        self.grants: dict[str, int] = {}
        self.taken = size(0, 20)
        self.waiting: set[Job] = set()
        self.under_way: set[Job] = set()
        self.ended: set[Job] = set()
        """Their attempts are over, their slots not free yet."""
        self.pausing: set[Job] = set()
        self.giving_up: set[Job] = set()
        self.settled: Counter[Job] = Counter()
        self.left: Counter[Job] = Counter()
        """Those that the next resume plays."""
        self.finished = self.stopped = False
        limits = CapacityLimits(
            endpoint_of=self.endpoint_of,
            concurrency=self.agents,
            pairs=self.pairs,
            pooled=self.endpoints if self.pooled else (),
        )
        progress = Progress(planned={}, scored={}, score_sum={})
        self.schedule = Schedule(limits, progress, attempts=ATTEMPTS)
        self.tell(EndpointsChanged(dict(self.endpoints)))

    def tell(self, event: Event) -> None:
        frees = not isinstance(event, AttemptEnded)
        self.stopped = self.stopped or isinstance(event, Drain)
        told = self.schedule.handle(event)
        for instruction in told:
            if not isinstance(instruction, Start):
                self.carry_out(instruction)
        started = [instruction.job for instruction in told if isinstance(instruction, Start)]
        self.leave(Counter(job.pair for job in started))
        if isinstance(event, AttemptEnded) and not any(isinstance(each, Settle | Retry) for each in told):
            self.left[event.job] += 1
        assert len(started) == (self.maximum() if frees and not self.stopped else 0)
        for job in started:
            self.waiting.remove(job)
            self.under_way.add(job)
        for name, used in self.use().items():
            if any(name in self.nodes(job) for job in started):
                assert used <= self.limit(name)

    def carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case Settle(job):
                self.settled[job] += 1
            case Retry(job, _):
                self.pausing.add(job)
            case GiveUp(job, _):
                self.waiting.remove(job)
                self.giving_up.add(job)
            case RunFinished():
                self.finished = True
                left = self.under_way | self.ended | self.giving_up
                assert not left
                assert self.stopped or not self.waiting | self.pausing

    def leave(self, started: Mapping[Pair, int]) -> None:
        """No trial is dropped but those of a run that stops, and of a pair that is refused: all that wait."""
        for pair in self.pairs:
            waiting = {job for job in self.waiting if job.pair == pair}
            if self.schedule.unstarted().get(pair, 0) + started.get(pair, 0) != len(waiting):
                assert pair not in {**self.schedule.unstarted(), **started}
                assert self.schedule.stopped is not None or pair in self.schedule.refused
                self.left.update(waiting)
                self.waiting -= waiting

    def nodes(self, job: Job) -> tuple[str, str, str]:
        agent, task = job.pair
        return self.endpoint_of[agent], agent, task

    def use(self) -> Counter[str]:
        return Counter(name for job in self.under_way | self.ended for name in self.nodes(job))

    def limit(self, name: str) -> int:
        whole = {**self.endpoints, **self.agents, **self.tasks}[name]
        granted = 0 if self.pooled and name in self.endpoints else whole
        return min(whole, self.grants.get(name, granted))

    def maximum(self) -> int:
        """The value of a maximum flow over what is free now, by networkx."""
        use = self.use()
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(["source", "sink"])
        for name in self.endpoints:
            graph.add_edge("source", name, capacity=max(0, self.limit(name) - use[name]))
        for name in self.agents:
            node = f"{name} in"
            graph.add_edge(self.endpoint_of[name], node, capacity=len(self.waiting))
            graph.add_edge(node, name, capacity=max(0, self.limit(name) - use[name]))
        for name in self.tasks:
            graph.add_edge(name, "sink", capacity=max(0, self.limit(name) - use[name]))
        for (agent, task), count in Counter(job.pair for job in self.waiting).items():
            graph.add_edge(agent, task, capacity=count)
        return int(nx.maximum_flow_value(graph, "source", "sink", flow_func=nx.algorithms.flow.edmonds_karp))

    def take(self) -> None:
        self.waiting = {Job(number, self.chance.choice(self.pairs)) for number in range(self.taken)}
        ids = {pair: [job.trial for job in self.waiting if job.pair == pair] for pair in self.pairs}
        self.tell(TrialsTaken(ids))

    def end_attempt(self, job: Job) -> None:
        self.under_way.remove(job)
        self.ended.add(job)
        outcome = self.chance.choice(list(AttemptOutcome))
        faulty = outcome in (AttemptOutcome.LOST, AttemptOutcome.FAILED, AttemptOutcome.DIVERGED)
        reason = FAULT if faulty or self.chance.random() < 0.2 else FinishReason.COMPLETED
        self.tell(AttemptEnded(job, outcome, reason, "cause", turns=self.chance.randint(0, 4), chance=0.5))
        self.stopped = self.schedule.stopped is not None

    def step(self) -> None:
        """Something happens."""
        kind = self.chance.choices(list(KINDS), list(KINDS.values()))[0]
        pick = self.chance.choice
        if kind == "end" and self.under_way:
            self.end_attempt(pick(sorted(self.under_way)))
        elif kind == "free" and self.ended:
            job = pick(sorted(self.ended))
            self.ended.remove(job)
            self.tell(SlotFreed(job))
        elif kind == "due" and self.pausing - self.ended:
            job = pick(sorted(self.pausing - self.ended))
            self.pausing.remove(job)
            self.waiting.add(job)
            self.tell(RetryDue(job))
        elif kind == "gave up" and self.giving_up:
            job = pick(sorted(self.giving_up))
            self.giving_up.remove(job)
            self.settled[job] += 1
            self.tell(GaveUp(job))
        elif kind == "grant" and self.pooled:
            name = pick([*self.endpoints])
            self.grants[name] = self.chance.randint(0, 6)
            self.tell(QuotasGranted({name: self.grants[name]}))
        elif kind == "task":
            self.tell(TaskLost(pick(sorted(self.tasks)), "gone"))
        elif kind == "drain":
            self.tell(Drain("enough"))
        elif kind == "limit":
            self.change_limit()

    def change_limit(self) -> None:
        name = self.chance.choice([*self.endpoints, *self.tasks])
        if name in self.endpoints:
            self.endpoints[name] = self.chance.randint(0, 6)
            self.tell(EndpointsChanged({name: self.endpoints[name]}))
        else:
            self.tasks[name] = self.chance.randint(0, 6)
            self.tell(TaskSlots(name, self.tasks[name], self.tasks[name]))

    def open_all(self) -> None:
        """From now on there is room for everything."""
        for name in self.tasks:
            self.tasks[name] = 50
            self.tell(TaskSlots(name, 50, 50))
        self.endpoints = dict.fromkeys(self.endpoints, 50)
        self.tell(EndpointsChanged(dict(self.endpoints)))
        self.grants.clear()
        if self.pooled:
            self.grants = dict.fromkeys(self.endpoints, 50)
            self.tell(QuotasGranted(dict(self.grants)))


@given(st.integers(min_value=0, max_value=10**9))
@settings(max_examples=300, deadline=None)
def test_whatever_happens_every_trial_is_settled_or_left_once(seed: int) -> None:
    client = Client(seed)
    client.take()
    for _ in range(80):
        client.step()
        if client.finished:
            break
    if not client.finished:
        client.open_all()
    for _ in range(5_000):
        if client.finished:
            break
        client.step()
    assert client.finished
    done = client.settled + client.left
    assert set(done.values()) <= {1}
    if not client.stopped:
        assert len(done) == client.taken
