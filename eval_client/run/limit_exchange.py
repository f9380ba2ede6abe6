"""Pure: what one client says of what a run shares, once it sees what the others say; and what it gets by that."""

from collections.abc import Mapping

from eval_client.core.shares import EndpointFeedback, Quota, ShardState, given_up, granted, raised
from eval_client.store import shards


class QuotaExchange:
    """To be called once, with what all say; afterwards its attributes have what this shard takes from that."""

    def __init__(
        self,
        shard: int,
        mine: ShardState,
        heard: Mapping[str, EndpointFeedback],
        ceilings: Mapping[str, int],
        whole: Mapping[str, int],
    ) -> None:
        self._shard, self._mine, self._heard, self._ceilings, self._whole = shard, mine, heard, ceilings, whole
        self.now = 0.0
        self.levels = shards.Levels()
        self.grants: dict[str, int] = {}
        self.elsewhere: dict[str, tuple[int, int]] = {}
        self.given_up: frozenset[str] = frozenset()

    def __call__(self, coordinator: shards.ShardSnapshot) -> tuple[shards.Levels, ShardState]:
        """All that is shared, as it is from now on."""
        self.now = coordinator.now
        endpoints = {
            name: raised(coordinator.levels.endpoints.get(name), ceiling, self._heard[name], coordinator.now)
            for name, ceiling in self._ceilings.items()
        }
        self.levels = shards.Levels(endpoints=endpoints)
        limits = {**self._whole, **{f"endpoint {name}": int(level.limit) for name, level in endpoints.items()}}
        others = {number: standing for number, standing in coordinator.live.items() if number != self._shard}
        slices = {name: self._slice(name, limits[name], own, others) for name, own in self._mine.slices.items()}
        self.elsewhere = _sum([*others.values(), *coordinator.gone])
        self.given_up = given_up([*others.values(), self._mine])
        return self.levels, self._mine.model_copy(update={"slices": slices})

    def _slice(self, name: str, limit: int, own: Quota, others: Mapping[int, ShardState]) -> Quota:
        told = {number: standing.slices[name] for number, standing in others.items() if name in standing.slices}
        self.grants[name] = granted(limit, self._shard, {**told, self._shard: own})
        return own.model_copy(update={"held": max(own.held, self.grants[name])})


def _sum(standings: list[ShardState]) -> dict[str, tuple[int, int]]:
    total: dict[str, tuple[int, int]] = {}
    for standing in standings:
        for agent, (prompt, completion) in standing.spent.items():
            before = total.get(agent, (0, 0))
            total[agent] = (before[0] + prompt, before[1] + completion)
    return total
