"""The default driver: routines, slots and a few set phrases; the same for equal seeds, and free."""

from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver
from environments.stss.characters.negotiation import PATIENCE, Stance, negotiate, told
from environments.stss.characters.routine import chance, day_plan
from environments.stss.dataset import Town, home_of
from environments.stss.town.clock import DATES, DAY, time_text
from environments.stss.town.schedule import Commitment, DayPlan

FORWARD = 0.1
"""Probability, times sociability, that a character speaks first to the performer."""
GOSSIP = 0.5
"""Probability, times sociability, that two background characters who come across each other talk."""
_QUESTIONS = {
    "ask_activity": "What would that be for?",
    "ask_time": "Gladly, but when would that be?",
    "ask_place": "Gladly, but where would that be?",
}


class RuleDriver(Driver):
    """Drives one session's characters; all chance comes from the seed."""

    name = "rules"

    def __init__(self, town: Town, sociability: float, seed: str) -> None:
        """`seed` names task and run."""
        self._town = town
        self._sociability, self._seed = sociability, seed

    async def day_plan(self, context: Context, day: int) -> DayPlan:
        return day_plan(self._town, context.persona, day, self._sociability, self._seed)

    async def wants_to_talk(self, context: Context) -> str | None:
        dice = chance(self._seed, context.persona.name, context.partner, context.now // DAY)
        if dice.random() >= FORWARD * self._sociability:
            return None
        return f"Hello {_first(context.partner)}! How are you today?"

    def gossips(self, name: str, other: str, day: int) -> bool:
        """True where two background characters who come across each other talk."""
        return chance(self._seed, name, other, day, "gossip").random() < GOSSIP * self._sociability

    async def reply(self, context: Context) -> tuple[str, bool]:
        stance = self._stance(context)
        spoken = sum(line.speaker == context.persona.name for line in context.lines) + 1
        text, end = self._says(stance, context, spoken)
        return text, end or spoken >= SIDE_LIMIT or (spoken > PATIENCE and stance.move != "accept")

    async def after_conversation(self, context: Context) -> tuple[Commitment, ...]:
        stance = self._stance(context)
        return stance.commitments if stance.move in ("accept", "settled") else ()

    async def summary(self, context: Context) -> str:
        stance, partner = self._stance(context), context.partner
        if stance.move in ("accept", "settled"):
            return f"{partner} invited me to {told(stance.commitments)}. I agreed."
        slots = stance.slots
        if slots.activity is None:
            return f"I had a chat with {partner}."
        where = f" at {slots.place}" if slots.place else ""
        day = f" on {DATES[slots.day]}" if slots.day in (0, 1) else ""
        when = day + (f" at {time_text(slots.start)}" if slots.start is not None else "")
        return f"{partner} invited me to {slots.activity}{where}{when}. Nothing is settled."

    def _stance(self, context: Context) -> Stance:
        home = self._town.world.full(home_of(context.persona))
        return negotiate(context, self._town.places, home)

    def _says(self, stance: Stance, context: Context, spoken: int) -> tuple[str, bool]:
        if stance.move == "accept":
            return f"Yes, gladly: {told(stance.commitments)}. I will be there.", False
        if stance.move == "settled":
            return "See you then!", True
        if stance.move == "propose":
            start = stance.commitments[0].start
            return f"I am sorry, {stance.why}. How about {time_text(start)} instead?", False
        if stance.move == "decline":
            return f"I am sorry, {stance.why}.", True
        if stance.move == "chat":
            if spoken > 1:
                return "It was nice to talk to you. Goodbye!", True
            return f"Hello {_first(context.partner)}! I am {context.doing}. What about you?", False
        return _QUESTIONS[stance.move], False


def _first(name: str) -> str:
    return name.partition(" ")[0]
