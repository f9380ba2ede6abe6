"""One inhabitant: its agenda, position and activity."""

from collections.abc import Sequence

from environments.stss.dataset import Persona, home_of
from environments.stss.days.event_log import ActivityRecord
from environments.stss.town.clock import DAY
from environments.stss.town.schedule import Block, Commitment, DayPlan, Kind, agenda
from environments.stss.town.world import TownMap

WAITING = "waiting"


class Person:
    """Follows its agenda. `due` is the next minute at which `advance` must be called."""

    def __init__(self, persona: Persona, tile: int, world: TownMap, walk_s: int, start: int) -> None:
        self.persona = persona
        self.name = persona.name
        self.home = world.full(home_of(persona))
        self.tile = tile
        self.place = world.place(tile)
        """Sector and arena of the tile."""
        self.due = start
        self.kind: Kind = "act"
        self.doing = ""
        self.talking_until = 0
        self.met: set[str] = set()
        """Names of those it has talked to today."""
        self.commitments: list[Commitment] = []
        self.memory: list[str] = []
        self.plan = DayPlan(start, start, ())
        self._late = 0
        self._agenda: list[Block] = []
        self._appointments: list[Block] = []
        """The blocks of the agenda for which it leaves early enough."""
        self._world, self._walk_s = world, walk_s
        self._goal: str | None = None
        self._way: Sequence[int] = ()
        self._left_at = 0
        self._walked = 0
        self._last: ActivityRecord | None = None

    def live(self, plan: DayPlan, now: int) -> None:
        """Starts a day with a plan, or continues it with another."""
        day = now // DAY
        if day * DAY > self.plan.wake:
            self._late = self.plan.bed
        self.plan = plan
        self.due = max(now, self.talking_until)
        self._rebuild(day)

    def _rebuild(self, day: int) -> None:
        self._agenda = agenda(day, self.plan, self._late, self.commitments, self.home)
        self._appointments = [block for block in self._agenda if block.prompt]

    def commit(self, promise: Commitment, now: int) -> Commitment:
        """Adds a commitment. The second leg of an errand starts no earlier than its place can be reached."""
        if promise.after_previous and self.commitments:
            before = self.commitments[-1]
            way = self._walk_minutes(self._world.tiles(self._world.full(before.address)), promise.address)
            start = max(promise.start, before.end + way)
            promise = promise.model_copy(update={"start": start, "end": start + promise.end - promise.start})
        self.commitments.append(promise)
        self._rebuild(now // DAY)
        return promise

    def talk(self, partner: str, topic: str, now: int, until: int) -> ActivityRecord | None:
        """Stops walking and talks until minute `until`."""
        self.talking_until = self.due = until
        self.kind, self._goal = "talk", None
        return self._changed(now, f"conversing about {topic}", f"<persona> {partner}", partner)

    def advance(self, now: int) -> ActivityRecord | None:
        """Acts at a minute. Returns a record if the activity or position changed."""
        if self.talking_until > now:
            self.due = self.talking_until
            return None
        block = self._block(now)
        address = self._world.full(block.address)
        if address != self._goal:
            self._goal, self._left_at, self._walked = address, now, 0
            self._way = self._world.path(self.tile, address)
        self._walk(now)
        arrived = self._walked == len(self._way)
        self.kind = block.kind if arrived else "walk"
        self.due = self._next(now, block) if arrived else now + 1
        self.doing = WAITING if arrived and block.prompt and now < block.start else block.activity
        return self._changed(now, self.doing, f"{self._world.name}:{address}", "")

    def _walk(self, now: int) -> None:
        steps = min(len(self._way), (now - self._left_at) * 60 // self._walk_s)
        if steps > self._walked:
            self._walked, self.tile = steps, self._way[steps - 1]
            self.place = self._world.place(self.tile)

    def _block(self, now: int) -> Block:
        """The block to follow: the next commitment once it is time to leave for it, else the agenda's current block."""
        for block in self._appointments:
            if block.start > now >= block.start - self._minutes_to(block):
                return block
        return next(block for block in reversed(self._agenda) if block.start <= now)

    def _next(self, now: int, block: Block) -> int:
        """The next minute to act: the start or end of the block, or the departure for a commitment."""
        if now < block.start:
            return block.start
        departures = [each.start - self._minutes_to(each) for each in self._appointments if each.start > now]
        return max(now + 1, min([block.end, *(departure for departure in departures if departure > now)]))

    def _minutes_to(self, block: Block) -> int:
        return self._walk_minutes([self.tile], block.address)

    def _walk_minutes(self, tiles: Sequence[int], address: str) -> int:
        """Minutes of the longest way from any of the tiles to the address, rounded up."""
        full = self._world.full(address)
        steps = max((self._world.distance(tile, full) for tile in tiles), default=0)
        return -(-steps * self._walk_s // 60)

    def _changed(self, now: int, activity: str, address: str, partner: str) -> ActivityRecord | None:
        record = ActivityRecord(now, self.name, self.tile, *self.place, activity, address, self.kind, partner)
        if self._last is not None and self._last[1:] == record[1:]:
            return None
        self._last = record
        return record
