"""The default driver: routines, the one form of an invitation, fixed phrases; deterministic for a seed."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.appointments import ERRAND, HOUR
from environments.stss.characters.driver import SIDE_LIMIT, Context, Driver, TalkResult
from environments.stss.characters.routine import Habits, chance, day_plan, habits
from environments.stss.dataset import Town, home_of
from environments.stss.invitation import FORM, ONLINE, FormContent, Leg, changed, form_of, in_words, missing, read, same
from environments.stss.summary import RULES
from environments.stss.town.schedule import DAY, END, Commitment, DayPlan, overlaps, time_text

STEP = 30
"""Minutes between alternative times to propose."""
NOT_A_DAY = "I can plan for today and tomorrow only"
Move = Literal["chat", "ask", "propose", "decline", "accept", "settled", "called_off", "ask_what_is_off"]


class Stance(NamedTuple):
    """A character's next move after the lines so far."""

    move: Move = "chat"
    legs: tuple[Leg, ...] = ()
    """The latest invitation, as far as it was heard."""
    commitments: tuple[Commitment, ...] = ()
    """What it agrees to (accept, settled, ask_what_is_off) or proposes (propose)."""
    why: str = ""
    """What stands against it (propose, decline)."""
    unread: tuple[str, ...] = ()
    """Parts of the last text that could not be read (ask, accept)."""
    earlier: tuple[Commitment, ...] = ()
    """The commitments of an earlier invitation in the same talk."""
    stands: tuple[Commitment, ...] = ()
    """What was agreed to before a change of it that it can't agree to (propose, decline)."""
    in_vain: int = 0
    """Number of texts in a row that brought nothing new in the form."""

    @property
    def agreed(self) -> bool:
        """Whether it agrees to the latest invitation."""
        return self.move in ("accept", "settled", "ask_what_is_off")

    @property
    def kept(self) -> tuple[Commitment, ...]:
        """The commitments that hold if the talk ends here."""
        return (*self.earlier, *(self.commitments if self.agreed else self.stands))


def negotiate(context: Context, town: Town) -> Stance:
    """The character's stance after all lines of the talk so far."""
    stance = Stance()
    for line in context.lines:
        if line.speaker == context.partner:
            stance = _after(stance, read(line.text, town.places, context.now // DAY), context, town)
    return stance


def _after(before: Stance, heard: FormContent, context: Context, town: Town) -> Stance:
    if heard.off is not None:
        before = _called_off(before, heard.off)
        if not heard.legs or before.move == "ask_what_is_off":
            return before
    vain = before.in_vain + 1
    if not heard.legs and not heard.unread:
        move: Move = "settled" if before.agreed else "chat" if before.move == "called_off" else before.move
        return before._replace(move=move, in_vain=vain, unread=())
    legs = changed(before.legs, heard.legs, whole=heard.whole) if heard.legs else before.legs
    other = before.agreed and not missing(heard.legs) and not same(heard.legs[0].activity, before.legs[0].activity)
    earlier = (*before.earlier, *before.commitments) if other else before.earlier
    stands = () if other else before.commitments if before.agreed else before.stands
    in_vain = vain if legs == before.legs else 0
    if before.agreed and (heard.unread or missing(legs)):
        return before._replace(move="accept", unread=heard.unread, in_vain=vain)
    base = Stance("ask", legs, unread=heard.unread, earlier=earlier, stands=stands, in_vain=in_vain)
    if heard.unread or missing(legs):
        return base
    return _weighed(base, context._replace(commitments=(*context.commitments, *earlier)), town)


def _called_off(before: Stance, activity: str) -> Stance:
    """The stance after something was called off: the latest invitation of that name, or an earlier one."""
    if any(same(activity, leg.activity) for leg in before.legs):
        return Stance("called_off", earlier=before.earlier)
    left = tuple(promise for promise in before.earlier if not same(activity, promise.activity))
    if left != before.earlier:
        return before._replace(earlier=left, in_vain=0)
    move: Move = "ask_what_is_off" if before.kept else before.move
    return before._replace(move=move, in_vain=before.in_vain + 1)


def _weighed(base: Stance, context: Context, town: Town) -> Stance:
    """Accepts a complete invitation, or proposes the nearest free time of the same day, or declines."""
    home, own = town.world.full(home_of(context.persona)), habits(context.persona, town.places)
    if any(leg.day is not None and leg.day > 1 for leg in base.legs):
        return base._replace(move="decline", why=NOT_A_DAY)
    wanted = wanted_commitments(base.legs, home, context.partner)
    why = obstacle(wanted, context, own)
    if why is None:
        return base._replace(move="accept", commitments=wanted, stands=(), in_vain=0)
    free = nearest_free(wanted, context, own)
    return base._replace(move="propose" if free else "decline", commitments=free, why=why)


def wanted_commitments(legs: Sequence[Leg], home: str, partner: str) -> tuple[Commitment, ...]:
    """The commitments of a complete invitation. A second leg without a time begins when the first one ends."""
    made: list[Commitment] = []
    length = ERRAND if len(legs) > 1 else HOUR
    for leg in legs:
        follows = leg.start is None
        start = made[-1].end if follows else (leg.day or 0) * DAY + (leg.start or 0)
        end = start + length if leg.end is None or leg.start is None else start + leg.end - leg.start
        place = home if leg.place == ONLINE else leg.place or home
        promise = Commitment(activity=leg.activity or "", address=place, start=start, end=end, with_whom=partner)
        made.append(promise.model_copy(update={"after_previous": follows}))
    return tuple(made)


def nearest_free(wanted: Sequence[Commitment], context: Context, own: Habits) -> tuple[Commitment, ...]:
    """The commitments at the nearest free time of the same day; empty if there is none."""
    day, length = wanted[0].start // DAY, wanted[-1].end - wanted[0].start
    starts = sorted(range(day * DAY, (day + 1) * DAY, STEP), key=lambda start: (abs(start - wanted[0].start), start))
    for start in starts:
        by = start - wanted[0].start
        moved = tuple(each.model_copy(update={"start": each.start + by, "end": each.end + by}) for each in wanted)
        if start + length <= END and obstacle(moved, context, own) is None:
            return moved
    return ()


def obstacle(wanted: Sequence[Commitment], context: Context, own: Habits) -> str | None:
    """The first thing that stands against commitments, as an utterance; None if there is none."""
    for promise in wanted:
        if (why := _obstacle(promise, context, own)) is not None:
            return why
    if len(wanted) > 1 and wanted[1].start < wanted[0].end:
        return "the second thing must come after the first"
    return None


def _obstacle(promise: Commitment, context: Context, own: Habits) -> str | None:
    start, end = promise.start, promise.end
    clock, day = start % DAY, start // DAY
    if start <= context.now:
        return "that time is over"
    if start >= END:
        return "that is too late at night"
    late = clock + DAY < own.bed
    if not (own.wake <= clock < own.bed or late) or clock + late * DAY + end - start > own.bed:
        return "I am asleep then"
    if own.duty is not None and promise.address.partition(":")[0] != own.duty[2].partition(":")[0]:
        opens, closes = day * DAY + own.duty[0], day * DAY + own.duty[1]
        if overlaps(start, end, opens, closes):
            return f"I have to work from {time_text(opens)} to {time_text(closes)}"
    for earlier in context.commitments:
        if overlaps(start, end, earlier.start, earlier.end):
            return f"I have promised somebody: {earlier.activity}, {time_text(earlier.start)}"
    return None


FORWARD = 0.1
"""Probability, times sociability, that a character speaks first to the performer."""
GOSSIP = 0.5
"""Probability, times sociability, that two background characters who meet talk."""
ACCEPTS = "Yes, gladly: "
"""How the answer begins that agrees."""
CHANGES = f"If that changes, say it as `{FORM}`; if it is off, as `not: ACTIVITY`."
AGREED = "I agreed."
"""How a summary ends of a talk that came to an agreement."""
UNSETTLED = ("Nothing is settled.", "Please say it", "I am sorry", "Another time", "called off", "I had a chat")
"""Words of answers and summaries that agree to nothing."""
PATIENCE = 3
"""Number of texts in a row that bring nothing new in the form, after which a character leaves."""


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
        return f"Hello {context.partner.partition(' ')[0]}! How are you today?"

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
        heard = (stance.legs[0].activity or "") if stance.legs else ""
        activity = stance.kept[-1].activity if stance.kept else heard
        return TalkResult(stance.kept, heard or activity, activity)

    async def summary(self, context: Context) -> str:
        stance, partner = negotiate(context, self._town), context.partner
        if not stance.legs:
            return f"I had a chat with {partner}."
        if stance.agreed:
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
    legs: list[Leg] = []
    for each in promised:
        day = each.start // DAY
        times = (None, None, None) if each.after_previous else (day, each.start % DAY, each.end - day * DAY)
        legs.append(Leg(each.activity, ONLINE if each.address == home else each.address, *times))
    return tuple(legs)


def _utterance(heard: Sequence[Leg], stance: Stance, context: Context) -> tuple[str, bool]:
    """The next utterance, and whether the talk ends with it; `heard` is the stance's invitation with its times."""
    words, unread = in_words(heard), ""
    if stance.in_vain >= PATIENCE:
        agreed = f"As agreed: {words}. See you then!"
        return agreed if stance.agreed else "I am sorry, I do not understand. Goodbye!", True
    if stance.unread:
        unread = f"I have not understood {' and '.join(stance.unread)}. "
    match stance.move:
        case "accept":
            again = f" {unread}To change it, say it as `{FORM}`." if unread else ""
            return f"{ACCEPTS}{words}. I will be there.{again}", False
        case "settled":
            return f"As agreed: {words}. {CHANGES} See you then!", False
        case "propose":
            when = form_of([heard[0]._replace(activity=None, place=None)])
            stays = " Else it stays as agreed." if stance.stands else ""
            how = f" If that suits you, say `{when}`." if stance.in_vain else ""
            asked = _sentence(in_words(stance.legs))
            return f"{asked}? I am sorry, {stance.why}. How about `{when}` instead?{how}{stays}", False
        case "decline":
            how = f" For something else, say it as `{FORM}`." if stance.in_vain else ""
            return f"{_sentence(words)}? I am sorry, {stance.why}.{how}", False
        case "called_off":
            return "What a pity. Another time, then!", False
        case "ask_what_is_off":
            return f"What is called off? We have agreed on {words}. Say it as `not: ACTIVITY`.", False
        case "ask":
            echo = f"{_sentence(words)}? " if words else ""
            return f"{echo}{unread}{_question(missing(stance.legs))}", False
        case "chat":
            begins = f"Hello {context.partner.partition(' ')[0]}! I am {context.doing}."
            asks = f"If you want me to do something, what, where and when? Please say it as `{FORM}`."
            return f"{begins if stance.in_vain <= 1 else 'I see.'} {asks}", False


_QUESTIONS = {"what": "what would it be", "where": "where", "when": "on which day, and from when to when"}


def _question(labels: Sequence[str]) -> str:
    """Asks for what is missing, in the form."""
    asked = ", and ".join(_QUESTIONS[label] for label in labels)
    parts = dict(part.split(": ", 1) for part in FORM.split("; "))
    form = "; ".join(f"{label}: {parts[label]}" for label in labels) or FORM
    return f"{_sentence(asked)}? Please say it as `{form}`." if asked else f"Please say it again, as `{form}`."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
