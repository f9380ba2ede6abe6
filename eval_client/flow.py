"""Assignment by maximum flow: which pairs of agent and task start next.

The graph is source -> endpoint -> agent -> task -> sink. Trials under way are capacity already taken and are never
moved. Edmonds-Karp is kept incrementally: `start` augments along shortest paths from the flow that stands, over what is
free. Among the shortest paths it takes the pair furthest behind, so none starves.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

Pair = tuple[str, str]
"""(agent, task)"""
Vertex = tuple[str, str]
"""(kind, name), kind being "endpoint", "agent" or "task"."""


@dataclass
class _Node:
    """A capacity, and how much of it is in use. Use may exceed a capacity that has shrunk."""

    capacity: int = 0
    used: int = 0

    @property
    def open(self) -> bool:
        return self.used < self.capacity


@dataclass
class _Edge:
    """A pair: trials owed and not begun, trials begun so far, and all it will have begun at the end."""

    owed: int = 0
    begun: int = 0

    @property
    def progress(self) -> float:
        return self.begun / (self.begun + self.owed)


@dataclass
class Flow:
    """The assignment's state machine. Names are those of the plan."""

    endpoint_of: dict[str, str]
    """agent -> its endpoint"""
    _endpoints: dict[str, _Node] = field(default_factory=dict)
    _agents: dict[str, _Node] = field(default_factory=dict)
    _tasks: dict[str, _Node] = field(default_factory=dict)
    _edges: dict[Pair, _Edge] = field(default_factory=dict)
    _owing: dict[str, dict[str, _Edge]] = field(default_factory=dict)
    """agent -> its tasks with something owed"""

    def limit_endpoint(self, name: str, capacity: int) -> None:
        """An endpoint takes this many trials at once."""
        self._endpoints.setdefault(name, _Node()).capacity = capacity

    def limit_agent(self, name: str, capacity: int) -> None:
        """An agent plays this many trials at once."""
        self._agents.setdefault(name, _Node()).capacity = capacity

    def limit_task(self, name: str, capacity: int) -> None:
        """A task holds this many sessions at once."""
        self._tasks.setdefault(name, _Node()).capacity = capacity

    def owe(self, pair: Pair, trials: int = 1) -> None:
        """More trials of a pair wait to be started."""
        edge = self._edges.setdefault(pair, _Edge())
        edge.owed += trials
        if edge.owed:
            self._owing.setdefault(pair[0], {})[pair[1]] = edge

    def drop(self, pair: Pair) -> int:
        """Forget what a pair is owed; the number forgotten."""
        forgotten = self._edges[pair].owed
        self._edges[pair].owed = 0
        self._owing[pair[0]].pop(pair[1], None)
        return forgotten

    def put_back(self, pair: Pair) -> None:
        """A started trial never began: it is owed again and its capacity is free."""
        self._edges[pair].begun -= 1
        self.release(pair)
        self.owe(pair)

    def release(self, pair: Pair) -> None:
        """A trial of the pair ended: its endpoint, agent and task have one more free."""
        agent, task = pair
        for node in (self._endpoints[self.endpoint_of[agent]], self._agents[agent], self._tasks[task]):
            node.used -= 1

    def start(self) -> list[Pair]:
        """A maximum flow over all that is free, one entry a trial. They count as under way from now on."""
        planned: dict[Pair, int] = {}
        self._fill_directly(planned)
        while planned and (path := self._augmenting_path(planned)):
            self._augment(path, planned)
        return [pair for pair, count in planned.items() for _ in range(count)]

    def waits_for(self, pair: Pair) -> str | None:
        """What the trials owed to a pair wait for: `endpoint`, `agent` or `task`; None where nothing is owed."""
        agent, task = pair
        if not self._edges[pair].owed:
            return None
        if not self._tasks[task].open:
            return "task"
        return "endpoint" if not self._endpoints[self.endpoint_of[agent]].open else "agent"

    def use(self) -> dict[str, dict[str, tuple[int, int]]]:
        """(used, capacity) of every endpoint, agent and task."""
        kinds = {"endpoint": self._endpoints, "agent": self._agents, "task": self._tasks}
        return {kind: {name: (n.used, n.capacity) for name, n in nodes.items()} for kind, nodes in kinds.items()}

    def _fill_directly(self, planned: dict[Pair, int]) -> None:
        """Augment along paths without detour, the shortest there are, always by the pair furthest behind.

        Nothing becomes free meanwhile, so a pair found blocked stays blocked; ranks only rise, so one found outdated is
        put back with its new one.
        """
        heap = [(self._rank(pair), pair) for pair in self._open_pairs()]
        heapq.heapify(heap)
        while heap:
            rank, pair = heapq.heappop(heap)
            agent, task = pair
            endpoint = self.endpoint_of[agent]
            if not (self._endpoints[endpoint].open and self._agents[agent].open and self._tasks[task].open):
                continue
            if rank == self._rank(pair):
                self._augment([("endpoint", endpoint), ("agent", agent), ("task", task)], planned)
            if self._edges[pair].owed:
                heapq.heappush(heap, (self._rank(pair), pair))

    def _rank(self, pair: Pair) -> tuple[float, int, int]:
        """What is served first: the pair furthest behind, then the agent and the task with the least under way."""
        return self._edges[pair].progress, self._agents[pair[0]].used, self._tasks[pair[1]].used

    def _open_pairs(self) -> Iterable[Pair]:
        open_tasks = self._open_tasks()
        if open_tasks:
            for agent, tasks in self._owing.items():
                if tasks and self._agents[agent].open and self._endpoints[self.endpoint_of[agent]].open:
                    yield from ((agent, task) for task in open_tasks if task in tasks)

    def _open_tasks(self) -> list[str]:
        return [name for name, node in self._tasks.items() if node.open]

    def _augmenting_path(self, planned: dict[Pair, int]) -> list[Vertex]:
        """A shortest path from an open endpoint to an open task in the residual graph of the planned trials, or []."""
        came: dict[Vertex, Vertex | None] = {("endpoint", name): None for name, n in self._endpoints.items() if n.open}
        useful = list(dict.fromkeys(self._open_tasks() + [task for (_, task), count in planned.items() if count]))
        queue = deque(came)
        while queue:
            vertex = queue.popleft()
            if vertex[0] == "task" and self._tasks[vertex[1]].open:
                return _path_to(vertex, came)
            for following in self._residual(vertex, useful, planned):
                if following not in came:
                    came[following] = vertex
                    queue.append(following)
        return []

    def _residual(self, vertex: Vertex, useful: list[str], planned: dict[Pair, int]) -> Iterable[Vertex]:
        """Where the residual graph leads: forward over what is free, backward over planned trials.

        Of the tasks only the useful ones count: those that are open or could lose a planned trial.
        """
        kind, name = vertex
        if kind == "endpoint":
            for agent in self._owing:
                if self.endpoint_of[agent] == name and self._agents[agent].open:
                    yield "agent", agent
        elif kind == "agent":
            owing = self._owing.get(name, {})
            yield from (("task", task) for task in useful if task in owing)
            if any(count for (agent, _), count in planned.items() if agent == name):
                yield "endpoint", self.endpoint_of[name]
        else:
            yield from (("agent", agent) for (agent, task), count in planned.items() if count and task == name)

    def _augment(self, path: list[Vertex], planned: dict[Pair, int]) -> None:
        """One more trial planned, along a path that begins at an endpoint and ends at a task."""
        self._endpoints[path[0][1]].used += 1
        self._tasks[path[-1][1]].used += 1
        for (kind, name), (next_kind, next_name) in pairwise(path):
            match kind, next_kind:
                case "endpoint", "agent":
                    self._agents[next_name].used += 1
                case "agent", "endpoint":
                    self._agents[name].used -= 1
                case "agent", "task":
                    self._plan((name, next_name), 1, planned)
                case "task", "agent":
                    self._plan((next_name, name), -1, planned)

    def _plan(self, pair: Pair, trials: int, planned: dict[Pair, int]) -> None:
        planned[pair] = planned.get(pair, 0) + trials
        edge = self._edges[pair]
        edge.begun += trials
        edge.owed -= trials
        if edge.owed:
            self._owing.setdefault(pair[0], {})[pair[1]] = edge
        else:
            self._owing[pair[0]].pop(pair[1], None)


def _path_to(vertex: Vertex, came: dict[Vertex, Vertex | None]) -> list[Vertex]:
    path = [vertex]
    while (before := came[path[-1]]) is not None:
        path.append(before)
    return path[::-1]
