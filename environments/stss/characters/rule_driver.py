"""The default driver: routines, the one form of an invitation, fixed phrases; deterministic for a seed."""

from collections.abc import Sequence

from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver, TalkResult
from environments.stss.characters.negotiation import Stance, negotiate
from environments.stss.characters.routine import chance, day_plan
from environments.stss.dataset import Town, home_of
from environments.stss.invitation import FORM, ONLINE, Leg, form_of, in_words, missing
from environments.stss.summary import RULES
from environments.stss.town.clock import DAY
from environments.stss.town.schedule import Commitment, DayPlan

FORWARD = 0.1
"""Probability, times sociability, that a character speaks first to the performer."""
GOSSIP = 0.5
"""Probability, times sociability, that two background characters who meet talk."""
ACCEPTS = "Yes, gladly: "
"""How the answer begins that agrees."""
AGREED = "I agreed."
"""How a summary ends of a talk that came to an agreement."""
UNSETTLED = ("Nothing is settled.", "Please say it", "I am sorry", "Another time", "called off", "I had a chat")
"""Words of answers and summaries that agree to nothing."""
PATIENCE = 3
"""Number of texts in a row that are not in the form, after which a character leaves."""


class RuleDriver(Driver):
    """Drives one session's characters; all random choices come from the seed."""

    name = RULES

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
        stance = negotiate(context, self._town)
        turn = sum(line.speaker == context.persona.name for line in context.lines) + 1
        text, end = _utterance(self._heard(stance, context), stance, context)
        return text, end or turn >= SIDE_LIMIT

    async def after_conversation(self, context: Context) -> TalkResult:
        stance = negotiate(context, self._town)
        activity = stance.kept[-1].activity if stance.kept else _activity(stance)
        return TalkResult(stance.kept, _activity(stance) or activity, activity)

    async def summary(self, context: Context) -> str:
        stance, partner = negotiate(context, self._town), context.partner
        if not stance.legs:
            return f"I had a chat with {partner}."
        if stance.move in ("accept", "settled"):
            return f"{partner} asked me: {form_of(self._heard(stance, context))}. {AGREED}"
        return f"{partner} asked me: {form_of(stance.legs)}. Nothing is settled."

    def _heard(self, stance: Stance, context: Context) -> tuple[Leg, ...]:
        """What was heard, with the times that were agreed to or are proposed."""
        home = self._town.world.full(home_of(context.persona))
        legs = legs_of(stance.commitments, home)
        online = (leg._replace(place=said.place) for leg, said in zip(legs, stance.legs, strict=True)) if legs else ()
        return tuple(online) or stance.legs


def legs_of(promised: Sequence[Commitment], home: str) -> tuple[Leg, ...]:
    """Commitments as legs; at `home` they are online."""
    return tuple(
        Leg(
            each.activity,
            ONLINE if each.address == home else each.address,
            *((None, None, None) if each.after_previous else _times(each)),
        )
        for each in promised
    )


def _times(promise: Commitment) -> tuple[int, int, int]:
    """Day, start and end as a leg has them."""
    day = promise.start // DAY
    return day, promise.start % DAY, promise.end - day * DAY


def _activity(stance: Stance) -> str:
    """The activity that was heard, if any."""
    return (stance.legs[0].activity or "") if stance.legs else ""


def _utterance(heard: Sequence[Leg], stance: Stance, context: Context) -> tuple[str, bool]:
    """The next utterance, and whether the talk ends with it; `heard` is the stance's invitation with its times."""
    words, unread = in_words(heard), _unread(stance)
    match stance.move:
        case "accept":
            again = f" {unread}To change it, say it as `{FORM}`." if unread else ""
            return f"{ACCEPTS}{words}. I will be there.{again}", False
        case "settled":
            leaves = stance.in_vain > 1
            return f"As agreed: {words}. If that changes, say it as `{FORM}`. See you then!", leaves
        case "propose":
            when = form_of([heard[0]._replace(activity=None, place=None)])
            stays = " Else it stays as agreed." if stance.stands else ""
            asked = _sentence(in_words(stance.legs))
            return f"{asked}? I am sorry, {stance.why}. How about `{when}` instead?{stays}", False
        case "decline":
            return f"{_sentence(words)}? I am sorry, {stance.why}.", stance.in_vain > 0
        case "called_off":
            return "What a pity. Another time, then!", False
        case "ask_what_is_off":
            return f"What is called off? We have agreed on {words}. Say it as `not: ACTIVITY`.", False
        case "ask":
            if stance.in_vain >= PATIENCE:
                return "I am sorry, I do not understand. Goodbye!", True
            echo = f"{_sentence(words)}? " if words else ""
            return f"{echo}{unread}{_question(missing(stance.legs))}", False
        case "chat":
            return _small_talk(stance, context)


def _unread(stance: Stance) -> str:
    return f"I have not understood {' and '.join(stance.unread)}. " if stance.unread else ""


_QUESTIONS = {"what": "what would it be", "where": "where", "when": "on which day, and from when to when"}


def _question(labels: Sequence[str]) -> str:
    """Asks for what is missing, in the form."""
    asked = ", and ".join(_QUESTIONS[label] for label in labels)
    parts = dict(part.split(": ", 1) for part in FORM.split("; "))
    form = "; ".join(f"{label}: {parts[label]}" for label in labels) or FORM
    return f"{_sentence(asked)}? Please say it as `{form}`." if asked else f"Please say it again, as `{form}`."


def _small_talk(stance: Stance, context: Context) -> tuple[str, bool]:
    """The answer to free words: how to ask for something."""
    if stance.in_vain >= PATIENCE:
        return "It was nice to talk to you. Goodbye!", True
    hello = f"Hello {_first(context.partner)}! I am {context.doing}." if stance.in_vain <= 1 else "I see."
    return f"{hello} If you want me to do something, what, where and when? Please say it as `{FORM}`.", False


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _first(name: str) -> str:
    return name.partition(" ")[0]
