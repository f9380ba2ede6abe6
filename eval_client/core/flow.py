"""Pure: assignment by maximum flow, which decides what (agent, task) pairs start next.

The graph is source -> endpoint -> agent -> task -> sink. Trials under way use capacity and are never moved.
Edmonds-Karp runs incrementally: `start` augments the present flow along shortest paths over the free capacity. Among
shortest paths it chooses the agent furthest behind, and of its tasks the one furthest behind, so none starves.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from eval_client.core import Pair

Vertex = tuple[str, str]
"""(kind, name), kind being "endpoint", "agent" or "task"."""


@dataclass
class _Node:
    """A capacity, and how much of it is in use. `used` may exceed a capacity that has shrunk."""

    capacity: int = 0
    used: int = 0

    @property
    def open(self) -> bool:
        return self.used < self.capacity


@dataclass
class _Work:
    """How many trials are pending, and how many were started so far."""

    pending: int = 0
    started: int = 0

    @property
    def progress(self) -> float:
        return self.started / (self.started + self.pending)


@dataclass
class _Agent(_Node, _Work):
    """An agent, with its work over all its pairs."""

    tasks: dict[str, _Work] = field(default_factory=dict)
    """The agent's tasks with pending trials."""

    @property
    def ready(self) -> bool:
        return self.used < self.capacity and self.pending > 0

    @property
    def rank(self) -> "_Rank":
        return self.progress, self.used


_Rank = tuple[float, int]
"""(progress, trials under way); the lowest is served first."""


@dataclass
class _Endpoint(_Node):
    """An endpoint, with a heap of its agents that may have a trial to start, the lowest rank first.

    An entry whose agent's rank has risen is corrected when it reaches the top. For a rank that has fallen, a second
    entry is pushed; `queued` has the rank of the entry that counts.
    """

    agents: list[str] = field(default_factory=list)
    heap: list[tuple[_Rank, str]] = field(default_factory=list)
    queued: dict[str, _Rank] = field(default_factory=dict)

    def put(self, rank: _Rank, agent: str) -> None:
        """Queue the agent at this rank, unless it is queued at a lower one."""
        queued = self.queued.get(agent)
        if queued is None or rank < queued:
            self.queued[agent] = rank
            heapq.heappush(self.heap, (rank, agent))


@dataclass
class Flow:
    """The state machine of the assignment. All names are those of the plan."""

    endpoint_of: dict[str, str]
    """agent -> its endpoint"""
    most: int | None = None
    """How many trials may be under way in all; None: as many as the others take."""
    _under_way: int = 0
    _endpoints: dict[str, _Endpoint] = field(default_factory=dict)
    _agents: dict[str, _Agent] = field(default_factory=dict)
    _tasks: dict[str, _Node] = field(default_factory=dict)
    _open_tasks: dict[str, _Node] = field(default_factory=dict)
    _pairs: dict[Pair, _Work] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for agent, endpoint in self.endpoint_of.items():
            self._endpoints.setdefault(endpoint, _Endpoint()).agents.append(agent)
            self._agents[agent] = _Agent()

    def limit_endpoint(self, name: str, capacity: int) -> None:
        """Set how many trials an endpoint takes at once."""
        self._endpoints.setdefault(name, _Endpoint()).capacity = capacity

    def limit_agent(self, name: str, capacity: int) -> None:
        """Set how many trials an agent plays at once."""
        self._agents[name].capacity = capacity
        self._queue(name)

    def limit_task(self, name: str, capacity: int) -> None:
        """Set how many sessions a task holds at once."""
        self._tasks.setdefault(name, _Node()).capacity = capacity
        self._use_task(name, 0)

    def add(self, pair: Pair, trials: int = 1) -> None:
        """Add pending trials of a pair; a negative number takes some away."""
        self._change(pair, trials, 0)
        self._queue(pair[0])

    def add_again(self, pair: Pair) -> None:
        """Make a trial pending again that was started and released; it no longer counts as started."""
        self._change(pair, 1, -1)
        self._queue(pair[0])

    def release(self, pair: Pair) -> None:
        """Free the capacity of a trial that ended, at its endpoint, agent and task."""
        agent, task = pair
        self._endpoints[self.endpoint_of[agent]].used -= 1
        self._agents[agent].used -= 1
        self._under_way -= 1
        self._use_task(task, -1)
        self._queue(agent)

    def start(self) -> list[Pair]:
        """A maximum flow over the free capacity: the pairs to start, one entry for each trial.

        The trials count as under way from now on.
        """
        planned: dict[Pair, int] = {}
        self._fill_directly(planned)
        while planned and self._open_tasks and self._has_room and (path := self._augmenting_path(planned)):
            self._augment(path, planned)
        return [pair for pair, count in planned.items() for _ in range(count)]

    def waits_for(self, pair: Pair) -> str | None:
        """What the pending trials of a pair wait for: `endpoint`, `agent` or `task`; None if there are none."""
        agent, task = pair
        if not self._pairs[pair].pending:
            return None
        if not self._tasks[task].open:
            return "task"
        return "endpoint" if not self._endpoints[self.endpoint_of[agent]].open else "agent"

    def use(self) -> dict[str, dict[str, tuple[int, int]]]:
        """(used, capacity) of every endpoint, agent and task."""
        kinds: dict[str, Mapping[str, _Node]] = {
            "endpoint": self._endpoints,
            "agent": self._agents,
            "task": self._tasks,
        }
        return {kind: {name: (n.used, n.capacity) for name, n in nodes.items()} for kind, nodes in kinds.items()}

    @property
    def _has_room(self) -> bool:
        return self.most is None or self._under_way < self.most

    def _fill_directly(self, planned: dict[Pair, int]) -> None:
        """Augment along direct paths, the shortest ones, always for the agent furthest behind.

        No capacity becomes free in here, so an agent without an open task is set aside until the next start.
        """
        aside = []
        while self._open_tasks and self._has_room and (first := self._first_agent()):
            endpoint, agent = first
            if (task := self._first_task(agent)) is None:
                aside.append(agent)
            else:
                self._augment([("endpoint", endpoint), ("agent", agent), ("task", task)], planned)
                self._queue(agent)
        for agent in aside:
            self._queue(agent)

    def _first_agent(self) -> tuple[str, str] | None:
        """(endpoint, agent) to serve first, removed from its heap; None if no open endpoint has a ready agent."""
        tops = ((top, name) for name, node in self._endpoints.items() if node.open and (top := self._top(node)))
        first = min(tops, default=None)
        if first is None:
            return None
        (_, agent), endpoint = first
        node = self._endpoints[endpoint]
        heapq.heappop(node.heap)
        del node.queued[agent]
        return endpoint, agent

    def _top(self, endpoint: _Endpoint) -> tuple[_Rank, str] | None:
        """The entry at the top of an endpoint's heap, after the outdated ones are removed."""
        while endpoint.heap:
            rank, name = endpoint.heap[0]
            agent, counts = self._agents[name], endpoint.queued.get(name) == rank
            if counts and agent.ready and agent.rank == rank:
                return rank, name
            heapq.heappop(endpoint.heap)
            if counts:
                del endpoint.queued[name]
                self._queue(name)
        return None

    def _first_task(self, agent: str) -> str | None:
        """The agent's open task with pending trials that is furthest behind, then has the fewest sessions under way."""
        pending, open_tasks = self._agents[agent].tasks, self._open_tasks
        names = [name for name in pending if name in open_tasks]
        return min(names, key=lambda name: (pending[name].progress, open_tasks[name].used), default=None)

    def _augmenting_path(self, planned: dict[Pair, int]) -> list[Vertex]:
        """A shortest path from an open endpoint to an open task in the residual graph of the planned trials, or []."""
        came: dict[Vertex, Vertex | None] = {("endpoint", name): None for name, n in self._endpoints.items() if n.open}
        useful = list(dict.fromkeys([*self._open_tasks, *(task for (_, task), count in planned.items() if count)]))
        queue = deque(came)
        while queue:
            vertex = queue.popleft()
            if vertex[0] == "task" and vertex[1] in self._open_tasks:
                return _path_to(vertex, came)
            for following in self._residual(vertex, useful, planned):
                if following not in came:
                    came[following] = vertex
                    queue.append(following)
        return []

    def _residual(self, vertex: Vertex, useful: list[str], planned: dict[Pair, int]) -> Iterable[Vertex]:
        """The next vertices in the residual graph: forward over free capacity, backward over planned trials.

        Of the tasks only the `useful` ones count: those that are open or could lose a planned trial.
        """
        kind, name = vertex
        if kind == "endpoint":
            yield from (("agent", agent) for agent in self._endpoints[name].agents if self._agents[agent].ready)
        elif kind == "agent":
            pending = self._agents[name].tasks
            yield from (("task", task) for task in useful if task in pending)
            if any(count for (agent, _), count in planned.items() if agent == name):
                yield "endpoint", self.endpoint_of[name]
        else:
            yield from (("agent", agent) for (agent, task), count in planned.items() if count and task == name)

    def _augment(self, path: list[Vertex], planned: dict[Pair, int]) -> None:
        """Plan one more trial along a path from an endpoint to a task."""
        self._endpoints[path[0][1]].used += 1
        self._under_way += 1
        self._use_task(path[-1][1], 1)
        for (kind, name), (next_kind, next_name) in pairwise(path):
            match kind, next_kind:
                case "endpoint", "agent":
                    self._agents[next_name].used += 1
                case "agent", "endpoint":
                    self._agents[name].used -= 1
                    self._queue(name)
                case "agent", "task":
                    self._plan((name, next_name), 1, planned)
                case "task", "agent":
                    self._plan((next_name, name), -1, planned)
                    self._queue(next_name)

    def _plan(self, pair: Pair, trials: int, planned: dict[Pair, int]) -> None:
        planned[pair] = planned.get(pair, 0) + trials
        self._change(pair, -trials, trials)

    def _change(self, pair: Pair, pending: int, started: int) -> None:
        """Add to the pending and the started trials, of the pair and of its agent; negative numbers subtract."""
        agent = self._agents[pair[0]]
        work = self._pairs.setdefault(pair, _Work())
        for each in (agent, work):
            each.pending += pending
            each.started += started
        if work.pending:
            agent.tasks[pair[1]] = work
        else:
            agent.tasks.pop(pair[1], None)

    def _queue(self, name: str) -> None:
        """Queue an agent that may have become ready, or more urgent."""
        agent = self._agents[name]
        if agent.ready:
            self._endpoints[self.endpoint_of[name]].put(agent.rank, name)

    def _use_task(self, name: str, more: int) -> None:
        """Add to a task's sessions under way; `more` is 0 after its capacity has changed."""
        task = self._tasks[name]
        task.used += more
        if task.open:
            self._open_tasks[name] = task
        else:
            self._open_tasks.pop(name, None)


def _path_to(vertex: Vertex, came: dict[Vertex, Vertex | None]) -> list[Vertex]:
    path = [vertex]
    while (before := came[path[-1]]) is not None:
        path.append(before)
    return path[::-1]
