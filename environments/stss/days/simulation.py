"""Simulates two days in the town: advances people by due time, and handles encounters and the performer's requests."""

import asyncio
import math
from collections import Counter
from collections.abc import Sequence

from environments.stss import appointments, prompt
from environments.stss import reply as forms
from environments.stss.agent.performer import Performer
from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver, TalkResult
from environments.stss.characters.rule_driver import RuleDriver, legs_of
from environments.stss.dataset import SocialTask, Town
from environments.stss.days.person import Contacts, Person
from environments.stss.days.transcript import ActivityRecord, Agreed, EventLog, Talk
from environments.stss.invitation import SpokenLine, form_of
from environments.stss.town.schedule import DAY, END, REVIEW, START, Commitment, DayPlan, day_of
from proctor.types import Value

QUIET_HOUR = 23
CHARS_A_MINUTE = 240
"""By which a talk takes its simulated time."""
ASKS = 2
"""Limit of requests per day to the performer whether to talk to the same person."""
BREATH = 30
"""Every so many simulated minutes the simulation yields to other sessions, after each person's step."""
IDLE_TALK = ("Hello, nice weather today.", "It is. See you!")
"""What background characters say who have nothing to pass on; it names no activity."""
NO_TOPIC = "the day"


async def converse(
    performer: Performer, driver: Driver, context: Context, opening: SpokenLine, begins: str | None = None
) -> tuple[list[SpokenLine], tuple[int, ...]]:
    """A talk of the performer with a character, and for each line its turn of the trial; 0 for the character's.

    Each side has at most eight utterances. `begins`: the performer's first request if the character spoke first.
    """
    lines, turns, end = [opening], [performer.calls if begins is None else 0], False
    while not end and sum(line.speaker != lines[-1].speaker for line in lines) < SIDE_LIMIT:
        if lines[-1].speaker == context.partner:
            speaker, turn = context.persona.name, 0
            text, end = await driver.reply(context._replace(lines=tuple(lines)))
        else:
            speaker, opens = context.partner, len(lines) == 1
            request = begins if begins and opens else prompt.answered(context.persona.name, lines[-1].text)
            reply = await performer.ask(request, forms.Utterance, lambda reply: reply, begins=opens)
            turn = 0 if reply is None else performer.calls
            text, end = (forms.SILENCE, True) if reply is None else (reply.utterance, reply.end)
        lines.append(SpokenLine(speaker, forms.limited(text)))
        turns.append(turn)
    return lines, tuple(turns)


class DayLimits(Value):
    """Limit of talks per day, seconds per tile, and whether guests pass invitations on."""

    talks: tuple[int, int] = (14, 10)
    walk_s: int = 10
    pass_on: bool = False


class Simulation:
    """One session's town."""

    def __init__(
        self, town: Town, task: SocialTask, performer: Performer, drivers: tuple[Driver, RuleDriver], limits: DayLimits
    ) -> None:
        """`drivers`: of all that the background characters do, and of their talks with one another."""
        self._world, self._places = town.world, town.places
        self._driver, self._rules = drivers
        self._performer, self._limits = performer, limits
        self._people = {
            name: Person(town.personas[name], town.positions[name], town.world, limits.walk_s, START)
            for name in sorted(task.all_chars)
        }
        self._self = self._people[task.performer]
        self._talks_today = 0
        self._asked: Counter[str] = Counter()
        self._contacts = Contacts(town.world)
        self._records: list[ActivityRecord] = []
        self._talks: list[Talk] = []
        self._agreed: list[Agreed] = []

    async def run(self) -> EventLog:
        """Simulates both days and returns their event log. Raises AgentUnavailable and EnvironmentFault."""
        due = [(START, self._morning), (REVIEW, self._review), (DAY, self._midnight), (DAY + START, self._morning)]
        breath = START
        await self._plan_all(START)
        while (now := min([at for at, _ in due] + [person.due for person in self._people.values()])) < END:
            if due and due[0][0] == now:
                await due.pop(0)[1](now)
            resting = now >= breath
            breath = now + BREATH if resting else breath
            moved = [person for person in self._people.values() if person.due == now]
            for person in moved:
                self._keep(person.advance(now))
                if resting:
                    await asyncio.sleep(0)
            await self._encounters(moved, now)
        return EventLog(tuple(self._records), tuple(self._talks), tuple(self._agreed))

    def _keep(self, record: ActivityRecord | None) -> None:
        if record is not None:
            self._records.append(record)

    # The performer's plans.

    async def _morning(self, now: int) -> None:
        performer, day, home = self._performer, day_of(now), self._self.home
        today = [each for each in performer.commitments if day_of(each.start) == day]
        text = prompt.day(now, performer.reminder, today)
        plan = await performer.ask(
            text, forms.Day, lambda reply: appointments.day_plan_of(reply, day, self._places, home), begins=True
        )
        self._self.live(plan or appointments.day_at_home(day), now)

    async def _review(self, now: int) -> None:
        notes = await self._performer.ask(prompt.REVIEW, forms.Review, lambda reply: reply.notes, begins=True)
        self._performer.notes += notes or ()

    async def _midnight(self, now: int) -> None:
        self._asked.clear()
        self._contacts = Contacts(self._world)
        self._talks_today = 0
        for person in self._people.values():
            person.met.clear()
        await self._plan_all(now)

    async def _plan_all(self, now: int) -> None:
        """Plans the day of every person; the performer sleeps until its request at 06:00."""
        for person in self._people.values():
            if person is self._self:
                person.live(appointments.day_at_home(day_of(now)), now)
            else:
                person.live(await self._driver.day_plan(self._context(person, now), day_of(now)), now)

    # Encounters and talks.

    async def _encounters(self, moved: Sequence[Person], now: int) -> None:
        """Persons who moved at this minute may talk to those they perceive; pairs with the performer come first."""
        for one, other in self._contacts.new(moved, self._people, self._self.name):
            if self._can_talk(one, other, now):
                self._contacts.add(one, other)
                if self._self in (one, other):
                    await self._encounter(other if one is self._self else one, now)
                else:
                    await self._gossip(one, other, now)

    def _can_talk(self, one: Person, other: Person, now: int) -> bool:
        both_free = all(person.kind != "sleep" and person.talking_until <= now for person in (one, other))
        return both_free and other.name not in one.met and now % DAY // 60 != QUIET_HOUR

    async def _encounter(self, partner: Person, now: int) -> None:
        """The performer meets a character: either may begin a talk, the character first."""
        if self._talks_today >= self._limits.talks[day_of(now)] or self._asked[partner.name] >= ASKS:
            return
        self._asked[partner.name] += 1
        place, checklist = self._self.place[0], self._performer.checklist
        first = await self._driver.wants_to_talk(self._context(partner, now))
        if first is not None:
            opening = SpokenLine(partner.name, forms.limited(first))
            text = prompt.approached(now, place, partner.name, opening.text, checklist)
            await self._talk(partner, opening, now, text)
            return
        text = prompt.encounter(now, place, partner.name, partner.doing, checklist)
        reply = await self._performer.ask(text, forms.Encounter, lambda reply: reply, begins=True)
        if reply is not None and reply.talk:
            await self._talk(partner, SpokenLine(self._self.name, forms.limited(reply.utterance)), now, None)

    async def _talk(self, partner: Person, opening: SpokenLine, now: int, begins: str | None) -> None:
        """A talk with the performer. `begins`: its first request if the partner spoke first, else None."""
        self._talks_today += 1
        context = self._context(partner, now)
        lines, turns = await converse(self._performer, self._driver, context, opening, begins)
        context = context._replace(lines=tuple(lines))
        result = await self._driver.after_conversation(context)
        self._conclude((self._self, partner), lines, now, result, *turns)
        partner.memory.append(await self._driver.summary(context))
        await self._note(partner, lines[-1], now)

    def _conclude(
        self, people: tuple[Person, Person], lines: Sequence[SpokenLine], now: int, result: TalkResult, *turns: int
    ) -> None:
        """Records a talk, its duration, and the commitments of the second of its people."""
        minutes = math.ceil(sum(len(line.text) for line in lines) / CHARS_A_MINUTE)
        until = min(now + max(1, minutes), END)
        topic = result.topic or NO_TOPIC
        names = lines[0].speaker, lines[1].speaker
        self._talks.append(Talk(now, until - now, names, tuple(lines), turns, result.invited_to, result.dropped))
        for person, partner in (people, people[::-1]):
            person.met.add(partner.name)
            self._keep(person.talk(partner.name, topic, now, until))
        for promise in result.commitments:
            self._agreed.append(Agreed(now, people[1].name, people[1].commit(promise, now)))

    async def _note(self, partner: Person, last: SpokenLine, now: int) -> None:
        me, performer = self._self, self._performer
        left = [row for row in me.plan.rows if row.end > now and day_of(row.start) == day_of(now)]

        def check(reply: forms.Note) -> tuple[forms.Note, Commitment | None, DayPlan | None]:
            promise = None
            if reply.commitment is not None:
                promise = appointments.commitment_of(
                    reply.commitment, now, performer.commitments, self._places, me.home
                )
            if reply.reschedule is None:
                return reply, promise, None
            rows = appointments.rows_of(reply.reschedule, day_of(now), self._places, me.home)
            if rows and rows[0].start < now:
                raise appointments.ActionError("reschedule: the first row lies in the past; give the rest of today")
            return reply, promise, me.plan._replace(rows=rows)

        text = prompt.note(partner.name, last.text if last.speaker == partner.name else None, left)
        checked = await performer.ask(text, forms.Note, check)
        if checked is None:
            return
        reply, promise, plan = checked
        if reply.note:
            performer.notes.append(f"{partner.name}: {reply.note}")
        if promise is not None:
            performer.commitments.append(me.commit(promise, now))
            self._agreed.append(Agreed(now, me.name, performer.commitments[-1]))
        if plan is not None:
            me.live(plan, now)

    async def _gossip(self, one: Person, other: Person, now: int) -> None:
        """A talk of two background characters, always driven by rules."""
        if not self._rules.gossips(one.name, other.name, day_of(now)):
            return
        if not self._invited(one):
            one, other = other, one
        lines, result = [SpokenLine(one.name, IDLE_TALK[0]), SpokenLine(other.name, IDLE_TALK[1])], TalkResult()
        if self._limits.pass_on and (invited := self._invited(one)):
            form = form_of(legs_of(invited, one.home))
            opening = SpokenLine(one.name, f"{self._self.name} invites you. {form}")
            context = self._context(other, now, [opening], one)
            reply, _ = await self._rules.reply(context)
            lines = [opening, SpokenLine(other.name, reply)]
            result = await self._rules.after_conversation(context)
        self._conclude((one, other), lines, now, result)

    def _invited(self, person: Person) -> list[Commitment]:
        """A character's first commitment to the performer, with the second leg if it is an errand."""
        promised = [promise for promise in person.commitments if promise.with_whom == self._self.name]
        return promised[: 2 if len(promised) > 1 and promised[1].after_previous else 1]

    def _context(
        self, person: Person, now: int, lines: Sequence[SpokenLine] = (), partner: Person | None = None
    ) -> Context:
        name, promised = (partner or self._self).name, tuple(person.commitments)
        where, heard = person.place[0], tuple(lines)
        return Context(person.persona, now, name, heard, person.doing, where, promised, tuple(person.memory))
