"""The default driver: routines, slots and fixed phrases; deterministic for a seed, and without a model."""

from collections.abc import Sequence

from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver
from environments.stss.characters.negotiation import NOT_A_DAY, PATIENCE, negotiate
from environments.stss.characters.read_back import heard_text, listed
from environments.stss.characters.routine import chance, day_plan
from environments.stss.characters.stance import BEGINNING, Stance
from environments.stss.dataset import Town, home_of
from environments.stss.hearing.read import WHAT_FOR
from environments.stss.town.clock import DAY, time_text
from environments.stss.town.schedule import Commitment, DayPlan

FORWARD = 0.1
"""Probability, times sociability, that a character speaks first to the performer."""
GOSSIP = 0.5
"""Probability, times sociability, that two background characters who meet talk."""
_QUESTIONS = {"activity": WHAT_FOR, "place": "where", "start": "when", "day": "on which day", "end": "until when"}


class RuleDriver(Driver):
    """Drives one session's characters; all random choices come from the seed."""

    name = "rules"

    def __init__(self, town: Town, sociability: float, seed: str) -> None:
        """`seed` is made of task and seed of the trial."""
        self._town = town
        self._sociability, self._seed = sociability, seed
        self._last: tuple[Context, Stance] | None = None
        """Whose stance was asked for last, and that stance."""

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
        stance = self.stance(context)
        turn = sum(line.speaker == context.persona.name for line in context.lines) + 1
        text, end = self._utterance(stance, context, turn)
        return text, end or turn >= SIDE_LIMIT or (stance.in_vain >= PATIENCE and stance.move != "accept")

    async def after_conversation(self, context: Context) -> tuple[Commitment, ...]:
        return self.stance(context).kept

    async def summary(self, context: Context) -> str:
        stance, partner = self.stance(context), context.partner
        if stance.slots.activity is None:
            return f"I had a chat with {partner}."
        settled = "I agreed." if stance.move in ("accept", "settled") else "Nothing is settled."
        return f"{partner} invited me to {heard_text(stance.slots, context.now)}. {settled}"

    def stance(self, context: Context) -> Stance:
        """The character's stance after all lines of the talk so far."""
        home = self._town.world.full(home_of(context.persona))
        heard, before = self._so_far(context)
        stance = negotiate(context, self._town.places, home, heard, before)
        self._last = context, stance
        return stance

    def _so_far(self, context: Context) -> tuple[int, Stance]:
        """How many lines of this talk were heard before, and the stance after them."""
        if self._last is not None:
            begun, stance = self._last
            heard = len(begun.lines)
            if context._replace(lines=context.lines[:heard]) == begun:
                return heard, stance
        return 0, BEGINNING

    def _utterance(self, stance: Stance, context: Context, turn: int) -> tuple[str, bool]:
        heard = heard_text(stance.slots, context.now)
        match stance.move:
            case "accept":
                return f"Yes, gladly: {heard}. I will be there.{_assumed(stance, context)}{_who(stance)}", False
            case "settled":
                return "See you then!", True
            case "ask_what_is_wrong":
                return "I am sorry, what did I get wrong?", False
            case "ask_consent":
                more = f", or {listed(_asked(stance.missing))} instead" if stance.missing else ""
                return f"Will {heard or 'it'} take place, then{more}?{_who(stance)}", False
            case "propose":
                start = time_text(stance.commitments[0].start)
                return f"{_echo(heard)}I am sorry, {stance.why}. How about {start} instead?", False
            case "decline":
                why = stance.why if stance.why.endswith("?") else f"{stance.why}."
                return f"{_echo(heard)}I am sorry, {why}{_who(stance)}", stance.in_vain > 0
            case "confirm_refusal":
                return f"That is a pity. {_refusal(stance, heard)}", False
            case "called_off":
                return "Another time, then!", True
            case "confirm_activity":
                more = f"Gladly, but {_question(stance.missing)}?" if stance.missing else "Gladly."
                return f"{_echo(heard)}You mean: {stance.guess}? {more}{_who(stance)}{_off(stance)}", False
            case "ask":
                but = "Gladly, but" if stance.slots.day in (None, 0, 1) else f"I am sorry, {NOT_A_DAY} And"
                question = f"{but} {_question(stance.missing)}?" if stance.missing else "Gladly."
                return f"{_echo(heard)}{question}{_who(stance)}{_off(stance)}", False
            case "chat":
                said, end = _small_talk(context, turn)
                return (said, end) if end else (f"{said}{_off(stance)}", end)


def _echo(heard: str) -> str:
    """What was heard, as a question before the answer to it."""
    return f"{_sentence(heard)}? " if heard else ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _refusal(stance: Stance, heard: str) -> str:
    """The question whether something won't take place, or what it is."""
    if stance.slots.activity is not None:
        more = listed(_asked(stance.missing)) if stance.missing else ""
        known = stance.slots.day is not None or stance.slots.start is not None
        question = f" Or {more} will it be instead?" if known else f" {_sentence(more)} would it have been?"
        return f"So {heard} won't take place?{question if more else ''}"
    more = listed(["What is it that won't take place", *_asked(stance.missing[1:])])
    return f"{_echo(heard)}{more}?"


def _question(missing: Sequence[str]) -> str:
    """The question for all slots that are missing."""
    asked = listed(_asked(missing))
    return asked if "activity" in missing else f"{asked} would that be"


def _asked(missing: Sequence[str]) -> list[str]:
    return [_QUESTIONS[name] for name in missing]


def _assumed(stance: Stance, context: Context) -> str:
    """Says that the day was assumed, where none was named."""
    if stance.slots.day is not None:
        return ""
    return f" I take it that you mean {'tomorrow' if context.now < DAY else 'today'}."


def _who(stance: Stance) -> str:
    """The question whether those who were named take part."""
    if not stance.asks_about_people:
        return ""
    names = sorted(stance.named - stance.slots.people)
    if not names:
        return " Who else takes part?"
    return f" {'Does' if len(names) == 1 else 'Do'} {listed(names)} take part too?"


def _off(stance: Stance) -> str:
    """The question whether something is called off."""
    return " Or is something called off?" if stance.doubts else ""


def _small_talk(context: Context, turn: int) -> tuple[str, bool]:
    if turn == 1:
        return f"Hello {_first(context.partner)}! I am {context.doing}. What can I do for you?", False
    if turn == 2:
        return "I see. Is there anything that I can do for you?", False
    return "It was nice to talk to you. Goodbye!", True


def _first(name: str) -> str:
    return name.partition(" ")[0]
