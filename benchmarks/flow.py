"""Assignment: kept incrementally against solved anew, and how close to the shortest possible run it comes.

Every incremental value is held against networkx's Edmonds-Karp and scipy's maximum flow; a difference ends the program.
"""

import heapq
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import networkx as nx
import numpy as np

from benchmarks.measure import Figure, figure, main, median
from eval_client.core import Pair
from eval_client.core.flow import Flow

SIZES = ((5, 8), (50, 20), (200, 50), (500, 100))
MAKESPAN_BUDGET = 1.05
PUBLISHED = (27, 8)
"""Agents and tasks of AgentBench's table of results (arXiv 2308.03688, Table 3)."""
QUICK_SHOP = (9, 4)


class Problem:
    """Agents by tasks under some bound: what binds, and how many of the pairs are owed."""

    def __init__(self, agents: int, tasks: int, share: float, seed: int) -> None:
        self.chance = random.Random(seed)
        size = self.chance.randint
        self.agents = {f"a{i}": size(2, 8) for i in range(agents)}
        self.tasks = {f"t{i}": size(2, 8) * max(1, agents // tasks) for i in range(tasks)}
        self.endpoints = {f"e{i}": size(4, 12) * 2 for i in range(max(1, agents // 5))}
        self.endpoint_of = {agent: f"e{i % len(self.endpoints)}" for i, agent in enumerate(self.agents)}
        self.owed: Counter[Pair] = Counter(
            {(a, t): size(50, 100) for a in self.agents for t in self.tasks if self.chance.random() < share}
        )
        self.running: Counter[Pair] = Counter()
        self.flow = Flow(self.endpoint_of)
        for names, limit in (
            (self.endpoints, self.flow.limit_endpoint),
            (self.agents, self.flow.limit_agent),
            (self.tasks, self.flow.limit_task),
        ):
            for name, capacity in names.items():
                limit(name, capacity)
        for pair, trials in self.owed.items():
            self.flow.add(pair, trials)

    def start(self) -> int:
        """Start what can be; how many that are."""
        started = self.flow.start()
        self.owed.subtract(started)
        self.running.update(started)
        return len(started)

    def edges(self) -> dict[tuple[str, str], int]:
        """The graph over what is free."""
        used: Counter[str] = Counter()
        for (agent, task), count in self.running.items():
            used.update({agent: count, task: count, self.endpoint_of[agent]: count})
        edges = {("source", name): capacity - used[name] for name, capacity in self.endpoints.items()}
        edges |= {(self.endpoint_of[name], name): capacity - used[name] for name, capacity in self.agents.items()}
        edges |= {(name, "sink"): capacity - used[name] for name, capacity in self.tasks.items()}
        return edges | {pair: owed for pair, owed in self.owed.items() if owed}


def by_networkx(edges: Mapping[tuple[str, str], int]) -> int:
    """The value of a maximum flow, the graph built and solved anew."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for (tail, head), capacity in edges.items():
        graph.add_edge(tail, head, capacity=capacity)
    return int(nx.maximum_flow_value(graph, "source", "sink", flow_func=nx.algorithms.flow.edmonds_karp))


def by_scipy(edges: Mapping[tuple[str, str], int]) -> int:
    """The value of a maximum flow, the graph built and solved anew."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    index = {name: i for i, name in enumerate(dict.fromkeys(name for edge in edges for name in edge))}
    tails, heads = zip(*((index[tail], index[head]) for tail, head in edges), strict=True)
    capacities = np.array(list(edges.values()), dtype=np.int32)
    graph = csr_array((capacities, (tails, heads)), shape=(len(index), len(index)))
    return int(maximum_flow(graph, index["source"], index["sink"]).flow_value)


def measure(quick: bool) -> Iterator[Figure]:
    """The sizes, then the makespans."""
    for agents, tasks in SIZES[:2] if quick else SIZES:
        for share in (1.0, 0.1):
            if agents * tasks * share >= agents:
                yield from _size(agents, tasks, share, 100 if quick else 1000)
    yield from _makespans(1, *QUICK_SHOP) if quick else _makespans(8, *PUBLISHED)


def _size(agents: int, tasks: int, share: float, events: int) -> Iterator[Figure]:
    problem = Problem(agents, tasks, share, seed=1)
    fresh: dict[str, list[float]] = {"networkx": [], "scipy": []}
    incremental = []
    solvers: dict[str, Callable[[Mapping[tuple[str, str], int]], int]] = {"networkx": by_networkx, "scipy": by_scipy}
    problem.start()
    for event in range(events):
        pair = problem.chance.choice([pair for pair, count in problem.running.items() if count])
        problem.running[pair] -= 1
        edges = problem.edges() if event % (events // 10) == 0 else None
        began = time.process_time()
        problem.flow.release(pair)
        started = problem.start()
        incremental.append(time.process_time() - began)
        for name, solve in solvers.items() if edges else ():
            began = time.process_time()
            value = solve(edges or {})
            fresh[name].append(time.process_time() - began)
            if value != started:
                raise SystemExit(f"{agents} x {tasks}: {started} started where {name} finds {value}")
    case = f"{agents} x {tasks}, {share:.0%} of pairs owed"
    yield figure(f"{case}: incremental", 1e6 * median(incremental), "us CPU/finish")
    for name, seconds in fresh.items():
        yield figure(f"{case}: fresh {name}", 1e6 * median(seconds), "us CPU/finish")


class Shop(NamedTuple):
    """A run to be simulated: capacities, and how long each trial of a pair takes."""

    endpoint_of: dict[str, str]
    endpoints: dict[str, int]
    agents: dict[str, int]
    tasks: dict[str, int]
    owed: dict[Pair, int]
    seconds: dict[Pair, float]

    def bound(self) -> float:
        """No schedule is shorter: the busiest endpoint, agent or task, each fully used all the time."""
        work: Counter[str] = Counter()
        for pair, trials in self.owed.items():
            for name in (pair[0], pair[1], self.endpoint_of[pair[0]]):
                work[name] += trials * self.seconds[pair]  # type: ignore[assignment]
        capacity = self.endpoints | self.agents | self.tasks
        return max([*(work[name] / capacity[name] for name in work), *self.seconds.values()])


def shop(seed: int, agents: int, tasks: int) -> Shop:
    """Agents of speeds that differ tenfold, tasks of lengths that differ tenfold, unequal capacities."""
    chance = random.Random(seed)
    speed = {f"a{i}": 10 ** chance.uniform(-0.5, 0.5) for i in range(agents)}
    length = {f"t{i}": 10 ** chance.uniform(0.5, 1.5) for i in range(tasks)}
    endpoints = {f"e{i}": chance.randint(8, 32) for i in range(6)}
    trials = {task: chance.randint(50, 300) for task in length}
    pairs = [(agent, task) for agent in speed for task in length]
    return Shop(
        endpoint_of={agent: chance.choice(sorted(endpoints)) for agent in speed},
        endpoints=endpoints,
        agents={agent: chance.randint(4, 16) for agent in speed},
        tasks={task: chance.randint(16, 64) for task in length},
        owed={(agent, task): trials[task] for agent, task in pairs},
        seconds={(agent, task): speed[agent] * length[task] for agent, task in pairs},
    )


class ByFlow:
    """Proctor's own assignment."""

    def __init__(self, shop: Shop) -> None:
        self._flow = Flow(shop.endpoint_of)
        self.release, self.start = self._flow.release, self._flow.start
        for names, limit in (
            (shop.endpoints, self._flow.limit_endpoint),
            (shop.agents, self._flow.limit_agent),
            (shop.tasks, self._flow.limit_task),
        ):
            for name, capacity in names.items():
                limit(name, capacity)
        for pair, trials in shop.owed.items():
            self._flow.add(pair, trials)


class FirstCome:
    """Whatever fits, in the plan's order: the first agent's first task, then its second, then the next agent."""

    def __init__(self, shop: Shop) -> None:
        self._endpoint_of, self._owed = shop.endpoint_of, dict(shop.owed)
        self._free = shop.endpoints | shop.agents | shop.tasks

    def release(self, pair: Pair) -> None:
        """A trial of the pair ended."""
        self._take(pair, -1)

    def start(self) -> list[Pair]:
        """What starts now."""
        started = []
        for pair in list(self._owed):
            while self._fits(pair):
                started.append(self._begin(pair))
        return started

    def _begin(self, pair: Pair) -> Pair:
        self._take(pair, 1)
        self._owed[pair] -= 1
        if not self._owed[pair]:
            del self._owed[pair]
        return pair

    def _fits(self, pair: Pair) -> bool:
        return pair in self._owed and all(self._free[name] for name in self._names(pair))

    def _take(self, pair: Pair, units: int) -> None:
        for name in self._names(pair):
            self._free[name] -= units

    def _names(self, pair: Pair) -> tuple[str, str, str]:
        return pair[0], pair[1], self._endpoint_of[pair[0]]


class RoundRobin(FirstCome):
    """One trial a pair, then the next pair."""

    def start(self) -> list[Pair]:
        started, idle = [], 0
        while idle < len(self._owed):
            pair = next(iter(self._owed))
            trials = self._owed.pop(pair)
            self._owed[pair] = trials  # now the last
            idle += 1
            if self._fits(pair):
                started.append(self._begin(pair))
                idle = 0
        return started


class OwnQueues(FirstCome):
    """Every agent plays its tasks one after the other, as scripts that loop over tasks do."""

    def start(self) -> list[Pair]:
        started, seen = [], set()
        for pair in list(self._owed):
            if pair[0] not in seen:
                while self._fits(pair):
                    started.append(self._begin(pair))
            if pair in self._owed:
                seen.add(pair[0])
        return started


POLICIES: dict[str, type[ByFlow] | type[FirstCome]] = {
    "flow": ByFlow,
    "first come": FirstCome,
    "round-robin": RoundRobin,
    "a queue an agent": OwnQueues,
}


def makespan(shop: Shop, policy: ByFlow | FirstCome) -> float:
    """Simulated seconds until the last trial ends."""
    now, ends = 0.0, list[tuple[float, Pair]]()
    while True:
        for pair in policy.start():
            heapq.heappush(ends, (now + shop.seconds[pair], pair))
        if not ends:
            return now
        now, pair = heapq.heappop(ends)
        policy.release(pair)


def _makespans(seeds: int, agents: int, tasks: int) -> Iterator[Figure]:
    case = f"makespan, {agents} agents x {tasks} tasks"
    ratios: dict[str, list[float]] = {name: [] for name in POLICIES}
    for seed in range(seeds):
        scene = shop(seed, agents, tasks)
        for name, policy in POLICIES.items():
            ratios[name].append(makespan(scene, policy(scene)) / scene.bound())
    for name, values in ratios.items():
        budget = MAKESPAN_BUDGET if name == "flow" else None
        yield figure(f"{case}: {name}, median", median(values), "x bound", at_most=budget)
        yield figure(f"{case}: {name}, worst", max(values), "x bound")


if __name__ == "__main__":
    main(measure, __doc__)
