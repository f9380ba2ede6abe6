"""The default driver: routines, slots and fixed phrases; deterministic for a seed, and without a model."""

from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver
from environments.stss.characters.negotiation import PATIENCE, Stance, commitments_text, negotiate
from environments.stss.characters.routine import chance, day_plan
from environments.stss.dataset import Town, home_of
from environments.stss.town.clock import DATES, DAY, time_text
from environments.stss.town.schedule import Commitment, DayPlan

FORWARD = 0.1
"""Probability, times sociability, that a character speaks first to the performer."""
GOSSIP = 0.5
"""Probability, times sociability, that two background characters who meet talk."""
_QUESTIONS = {
    "ask_activity": "What would that be for?",
    "ask_time": "Gladly, but when would that be?",
    "ask_place": "Gladly, but where would that be?",
}


class RuleDriver(Driver):
    """Drives one session's characters; all random choices come from the seed."""

    name = "rules"

    def __init__(self, town: Town, sociability: float, seed: str) -> None:
        """`seed` is made of task and seed of the trial."""
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
        """Whether two background characters who meet on a day talk."""
        return chance(self._seed, name, other, day, "gossip").random() < GOSSIP * self._sociability

    async def reply(self, context: Context) -> tuple[str, bool]:
        stance = self._stance(context)
        turn = sum(line.speaker == context.persona.name for line in context.lines) + 1
        text, end = self._utterance(stance, context, turn)
        return text, end or turn >= SIDE_LIMIT or (turn > PATIENCE and stance.move != "accept")

    async def after_conversation(self, context: Context) -> tuple[Commitment, ...]:
        stance = self._stance(context)
        return stance.commitments if stance.move in ("accept", "settled") else ()

    async def summary(self, context: Context) -> str:
        stance, partner = self._stance(context), context.partner
        if stance.move in ("accept", "settled"):
            return f"{partner} invited me to {commitments_text(stance.commitments)}. I agreed."
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

    def _utterance(self, stance: Stance, context: Context, turn: int) -> tuple[str, bool]:
        if stance.move == "accept":
            return f"Yes, gladly: {commitments_text(stance.commitments)}. I will be there.", False
        if stance.move == "settled":
            return "See you then!", True
        if stance.move == "propose":
            start = stance.commitments[0].start
            return f"I am sorry, {stance.why}. How about {time_text(start)} instead?", False
        if stance.move == "called_off":
            return "That is a pity. Another time, then!", True
        if stance.move == "decline":
            return f"I am sorry, {stance.why}.", True
        if stance.move == "chat":
            if turn > 1:
                return "It was nice to talk to you. Goodbye!", True
            return f"Hello {_first(context.partner)}! I am {context.doing}. What about you?", False
        return _QUESTIONS[stance.move], False


def _first(name: str) -> str:
    return name.partition(" ")[0]
