"""Computes this shard's new quotas from the published state of all shards of its run."""

from collections.abc import Mapping

from eval_client.core.limits.shares import EndpointFeedback, Quota, ShardState, adjusted, given_up, granted
from eval_client.core.spend import NO_TOKENS, Tokens
from eval_client.store import shards


class QuotaExchange:
    """One exchange of quotas. Call it once with a snapshot of all shards; its attributes then have the results.

    Pure apart from those attributes.
    """

    def __init__(
        self,
        shard: int,
        mine: ShardState,
        feedback: Mapping[str, EndpointFeedback],
        ceilings: Mapping[str, int],
        whole: Mapping[str, int],
    ) -> None:
        self._shard, self._mine, self._feedback, self._ceilings, self._whole = shard, mine, feedback, ceilings, whole
        self.now = 0.0
        """The database's clock at the snapshot."""
        self.levels = shards.Levels()
        self.grants: dict[str, int] = {}
        """limit -> trials at once that this shard may have under way from now on"""
        self.elsewhere: dict[str, Tokens] = {}
        """agent -> tokens paid by the other shards"""
        self.given_up: frozenset[str] = frozenset()
        """Tasks that no live shard can reach."""

    def __call__(self, snapshot: shards.ShardSnapshot) -> tuple[shards.Levels, ShardState]:
        """The endpoints' new levels and this shard's new state, to be published."""
        self.now = snapshot.now
        endpoints = {
            name: adjusted(snapshot.levels.endpoints.get(name), ceiling, self._feedback[name], snapshot.now)
            for name, ceiling in self._ceilings.items()
        }
        self.levels = shards.Levels(endpoints=endpoints)
        limits = {**self._whole, **{f"endpoint {name}": int(level.limit) for name, level in endpoints.items()}}
        others = {number: state for number, state in snapshot.live.items() if number != self._shard}
        quotas = {name: self._quota(name, limits[name], own, others) for name, own in self._mine.slices.items()}
        self.elsewhere = _sum([*others.values(), *snapshot.gone])
        self.given_up = given_up([*others.values(), self._mine])
        return self.levels, self._mine.model_copy(update={"slices": quotas})

    def _quota(self, name: str, limit: int, own: Quota, others: Mapping[int, ShardState]) -> Quota:
        """This shard's new quota of a limit; what it may use is noted in `grants`."""
        published = {number: state.slices[name] for number, state in others.items() if name in state.slices}
        self.grants[name] = granted(limit, self._shard, {**published, self._shard: own})
        return own.model_copy(update={"held": max(own.held, self.grants[name])})


def _sum(states: list[ShardState]) -> dict[str, Tokens]:
    total: dict[str, Tokens] = {}
    for state in states:
        for agent, tokens in state.spent.items():
            total[agent] = total.get(agent, NO_TOKENS).plus(tokens)
    return total
