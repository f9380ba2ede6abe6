"""Assignment: as good as networkx's Edmonds-Karp in every state, fair among maximum flows, and nothing starves."""

import random
from collections import Counter
from collections.abc import Mapping
from itertools import product

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_client.core import Pair
from eval_client.core.flow import Flow


def limit(flow: Flow, endpoints: Mapping[str, int], agents: Mapping[str, int], tasks: Mapping[str, int]) -> Flow:
    """The flow, with these limits."""
    for name, capacity in endpoints.items():
        flow.limit_endpoint(name, capacity)
    for name, capacity in agents.items():
        flow.limit_agent(name, capacity)
    for name, capacity in tasks.items():
        flow.limit_task(name, capacity)
    return flow


class Assignment:
    """A random assignment problem, and what is under way in it, kept apart from the code under test."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        size = self.chance.randint
        self.endpoints = {f"e{i}": size(0, 12) for i in range(size(1, 4))}
        self.agents = {f"a{i}": size(0, 6) for i in range(size(1, 7))}
        self.tasks = {f"t{i}": size(0, 6) for i in range(size(1, 6))}
        self.endpoint_of = {agent: self.chance.choice(sorted(self.endpoints)) for agent in self.agents}
        self.pending: Counter[Pair] = Counter()
        self.running: Counter[Pair] = Counter()
        self.flow = limit(Flow(self.endpoint_of), self.endpoints, self.agents, self.tasks)
        for agent in self.agents:
            for task in self.tasks:
                if self.chance.random() < 0.6:
                    self.plan((agent, task), size(0, 8))

    def plan(self, pair: Pair, trials: int) -> None:
        self.pending[pair] += trials
        self.flow.add(pair, trials)

    def free(self) -> "nx.DiGraph[str]":
        """What is free now: there is a path from source to sink where the maximum flow is not 0."""
        use: Counter[str] = Counter()
        for (agent, task), count in self.running.items():
            for name in (self.endpoint_of[agent], agent, task):
                use[name] += count
        edges = [("source", name, limit - use[name]) for name, limit in self.endpoints.items()]
        edges += [(self.endpoint_of[name], name, limit - use[name]) for name, limit in self.agents.items()]
        edges += [(name, "sink", limit - use[name]) for name, limit in self.tasks.items()]
        edges += [(agent, task, count) for (agent, task), count in self.pending.items()]
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from(["source", "sink"])
        graph.add_weighted_edges_from([edge for edge in edges if edge[2] > 0], weight="capacity")
        return graph

    def start(self) -> list[Pair]:
        started = self.flow.start()
        for pair in started:
            self.pending[pair] -= 1
            self.running[pair] += 1
        return started

    def change(self) -> None:
        """One random event: a trial ends, a limit moves, or more is pending."""
        event = self.chance.random()
        running = [pair for pair, count in self.running.items() if count]
        if event < 0.6 and running:
            pair = self.chance.choice(running)
            self.running[pair] -= 1
            self.flow.release(pair)
        elif event < 0.7:
            name = self.chance.choice(sorted(self.tasks))
            self.tasks[name] = self.chance.randint(0, 6)
            self.flow.limit_task(name, self.tasks[name])
        elif event < 0.8:
            name = self.chance.choice(sorted(self.endpoints))
            self.endpoints[name] = self.chance.randint(0, 12)
            self.flow.limit_endpoint(name, self.endpoints[name])
        elif running and event < 0.9:
            pair = self.chance.choice(running)
            self.running[pair] -= 1
            self.pending[pair] += 1
            self.flow.release(pair)
            self.flow.add_again(pair)
        else:
            self.plan(self.chance.choice(sorted(self.pending) or [("a0", "t0")]), 1)


@settings(max_examples=500)
@given(seed=st.integers(0, 2**32))
def test_every_start_is_a_maximum_flow_over_what_is_free(seed: int) -> None:
    case = Assignment(seed)
    for _ in range(6):
        expected = nx.maximum_flow_value(case.free(), "source", "sink", flow_func=nx.algorithms.flow.edmonds_karp)
        assert len(case.start()) == expected
        assert not nx.has_path(case.free(), "source", "sink")
        case.change()


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32))
def test_nothing_is_started_beyond_a_limit_or_without_being_owed(seed: int) -> None:
    case = Assignment(seed)
    case.start()
    assert min(case.pending.values(), default=0) >= 0
    for kind, nodes in case.flow.use().items():
        limits = {"endpoint": case.endpoints, "agent": case.agents, "task": case.tasks}[kind]
        for name, (used, capacity) in nodes.items():
            assert capacity == limits[name]
            assert used <= capacity


@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_every_trial_owed_is_started_in_the_end(seed: int) -> None:
    case = Assignment(seed)
    limit(case.flow, dict.fromkeys(case.endpoints, 3), dict.fromkeys(case.agents, 2), dict.fromkeys(case.tasks, 1))
    pending = case.pending.total()
    under_way: list[Pair] = []
    for _ in range(pending + 1):
        under_way += case.start()
        if under_way:
            case.flow.release(under_way.pop(case.chance.randrange(len(under_way))))
    assert case.pending.total() == 0


def test_fifty_agents_share_the_tasks_evenly() -> None:
    """AgentBench v0.2 gives everything to the first ten of fifty agents here."""
    agents, tasks = [f"a{i:02}" for i in range(50)], [f"t{j:02}" for j in range(20)]
    flow = limit(Flow(dict.fromkeys(agents, "e")), {"e": 1000}, dict.fromkeys(agents, 20), dict.fromkeys(tasks, 10))
    for pair in product(agents, tasks):
        flow.add(pair, 10)
    by_agent = Counter(agent for agent, _ in flow.start())
    assert by_agent.total() == 200
    assert set(by_agent.values()) == {4}


def test_a_blocked_agent_is_served_by_moving_a_planned_trial() -> None:
    flow = limit(Flow({"a": "e1", "b": "e2"}), {"e1": 1, "e2": 1}, {"a": 1, "b": 1}, {"x": 1, "y": 1})
    for pair in (("a", "x"), ("a", "y"), ("b", "x")):
        flow.add(pair)
    assert sorted(flow.start()) == [("a", "y"), ("b", "x")]


def test_a_pair_says_what_it_waits_for() -> None:
    flow = limit(Flow({"a": "e"}), {"e": 5}, {"a": 1}, {"t": 0})
    flow.add(("a", "t"), 3)
    assert flow.start() == []
    assert flow.waits_for(("a", "t")) == "task"
    flow.limit_task("t", 2)
    assert flow.start() == [("a", "t")]
    assert flow.waits_for(("a", "t")) == "agent"
    flow.limit_agent("a", 9)
    flow.limit_endpoint("e", 1)
    assert flow.waits_for(("a", "t")) == "endpoint"
    flow.add(("a", "t"), -2)
    assert flow.waits_for(("a", "t")) is None
