"""The inhabitants: agenda, position and activity of each, and who comes to perceive whom."""

from collections.abc import Iterator, Mapping, Sequence

from environments.stss.dataset import Persona, home_of
from environments.stss.days.transcript import ActivityRecord
from environments.stss.town.schedule import DAY, Block, Commitment, DayPlan, Kind, agenda
from environments.stss.town.world import TownMap

WAITING = "waiting"
Pair = tuple[str, str]
"""Names of two people, in alphabetical order."""


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
        steps = min(len(self._way), (now - self._left_at) * 60 // self._walk_s)
        if steps > self._walked:
            self._walked, self.tile = steps, self._way[steps - 1]
            self.place = self._world.place(self.tile)
        arrived = self._walked == len(self._way)
        self.kind = block.kind if arrived else "walk"
        self.due = self._next(now, block) if arrived else now + 1
        self.doing = WAITING if arrived and block.prompt and now < block.start else block.activity
        return self._changed(now, self.doing, f"{self._world.name}:{address}", "")

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


class Contacts:
    """The pairs who had their chance to talk; they get another once they have lost sight of each other."""

    def __init__(self, world: TownMap) -> None:
        self._world = world
        self._had: set[Pair] = set()

    def add(self, one: Person, other: Person) -> None:
        """Note that a pair has its chance now."""
        self._had.add(_pair(one, other))

    def new(self, moved: Sequence[Person], people: Mapping[str, Person], first: str) -> Iterator[tuple[Person, Person]]:
        """The pairs that perceive each other, of whom one has just moved, without those who had their chance.

        Pairs with the person named `first` come first. Outside of arenas nobody perceives anybody.
        """
        crowds: dict[tuple[str, str], list[Person]] = {person.place: [] for person in moved if person.place[1]}
        if not (crowds or self._had):
            return
        for person in people.values():
            if person.place in crowds:
                crowds[person.place].append(person)
        near = {_pair(one, other) for one in moved for other in crowds.get(one.place, ()) if one is not other}
        names = {person.name for person in moved}
        self._had = {pair for pair in self._had if pair in near or not names & set(pair)}
        for pair in sorted(near, key=lambda pair: (first not in pair, pair)):
            one, other = people[pair[0]], people[pair[1]]
            if not self._world.sees(one.tile, other.tile):
                self._had.discard(pair)
            elif pair not in self._had:
                yield one, other


def _pair(one: Person, other: Person) -> Pair:
    return min(one.name, other.name), max(one.name, other.name)
