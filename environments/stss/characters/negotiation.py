"""Where a character driven by rules stands in a talk: what it has heard in the form, and what it makes of it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.characters.driver import Context
from environments.stss.characters.routine import Habits, habits
from environments.stss.dataset import Town, home_of
from environments.stss.invitation import ONLINE, FormContent, Leg, changed, missing, read, same
from environments.stss.town.clock import DAY, END, time_text
from environments.stss.town.schedule import Commitment, overlaps

HOUR = 60
ERRAND = 20
"""Minutes of a leg of an errand without an end."""
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
    """Number of texts in a row that were not in the form."""

    @property
    def kept(self) -> tuple[Commitment, ...]:
        """The commitments that hold if the talk ends here."""
        agreed = self.move in ("accept", "settled", "ask_what_is_off")
        return (*self.earlier, *(self.commitments if agreed else self.stands))


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
    agreed = before.move in ("accept", "settled", "ask_what_is_off")
    if not heard.legs and not heard.unread:
        move: Move = "settled" if agreed else before.move
        return before._replace(move=move, in_vain=before.in_vain + 1, unread=())
    legs = changed(before.legs, heard.legs, whole=heard.whole) if heard.legs else before.legs
    other = agreed and not missing(heard.legs) and not same(heard.legs[0].activity, before.legs[0].activity)
    earlier = (*before.earlier, *before.commitments) if other else before.earlier
    stands = () if other else before.commitments if agreed else before.stands
    base = Stance("ask", legs, unread=heard.unread, earlier=earlier, stands=stands, in_vain=before.in_vain)
    if agreed and (heard.unread or missing(legs)):
        return before._replace(move="accept", unread=heard.unread, in_vain=before.in_vain + 1)
    if heard.unread or missing(legs):
        return base._replace(in_vain=before.in_vain + 1 if legs == before.legs else 0)
    return _weighed(base, context._replace(commitments=(*context.commitments, *earlier)), town)


def _called_off(before: Stance, activity: str) -> Stance:
    """The stance after something was called off: the latest invitation of that name, or an earlier one."""
    if any(same(activity, leg.activity) for leg in before.legs):
        return Stance("called_off", earlier=before.earlier, in_vain=before.in_vain)
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
        made.append(
            Commitment(
                activity=leg.activity or "",
                address=home if leg.place == ONLINE else leg.place or home,
                start=start,
                end=end,
                with_whom=partner,
                after_previous=follows,
            )
        )
    return tuple(made)


def nearest_free(wanted: Sequence[Commitment], context: Context, own: Habits) -> tuple[Commitment, ...]:
    """The commitments at the nearest free time of the same day; empty if there is none."""
    day, length = wanted[0].start // DAY, wanted[-1].end - wanted[0].start
    starts = sorted(range(day * DAY, (day + 1) * DAY, STEP), key=lambda start: (abs(start - wanted[0].start), start))
    for start in starts:
        moved = tuple(_moved(promise, start - wanted[0].start) for promise in wanted)
        if start + length <= END and obstacle(moved, context, own) is None:
            return moved
    return ()


def _moved(promise: Commitment, by: int) -> Commitment:
    return promise.model_copy(update={"start": promise.start + by, "end": promise.end + by})


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
        if overlaps(start, min(end, start + HOUR // 2), opens, closes):
            return f"I have to work until {time_text(closes)}"
    for earlier in context.commitments:
        if overlaps(start, end, earlier.start, earlier.end):
            return f"I have promised somebody: {earlier.activity}, {time_text(earlier.start)}"
    return None
