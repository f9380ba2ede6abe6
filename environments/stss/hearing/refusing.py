"""How likely a text refuses: calls off what it speaks of, or declines what it answers to.

`refusing.json` has a weight for each clue, learned by `python -m tools.hearing` from the development half and from
practice sentences. What the rules of `refusals` find is a clue, and so are up to three words in a row, if they may be
clues to an activity too; of other words only the shape is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from environments.stss.hearing.activities.activity import known_words, listen
from environments.stss.hearing.activities.tokens import SlotSpan
from environments.stss.hearing.refusals import calls_off, declines, invited, may_call_off, offers
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.weights import likelihood, stored

WEIGHTS = Path(__file__).with_name("refusing.json")
UNLIKELY = 0.5
"""The probability below which a text is heard as no refusal, whatever the rules say."""
LIKELY = 0.15
"""The probability from which on a character asks whether a text is one that is heard as none."""


class HeardRefusal(NamedTuple):
    """Whether a text refuses."""

    rule: bool
    """Whether it refuses by the rules alone."""
    likelihood: float

    @property
    def heard(self) -> bool:
        """Whether it is heard as a refusal."""
        return self.rule and self.likely

    @property
    def likely(self) -> bool:
        """Whether it is likelier one than none."""
        return self.likelihood >= UNLIKELY

    @property
    def possible(self) -> bool:
        """Whether it is likely enough to be asked about."""
        return self.likelihood >= LIKELY


def refusal(text: str, spans: Sequence[SlotSpan], situation: Situation, *, rule: bool) -> HeardRefusal:
    """Whether a text refuses, in which `spans` name days, times and places; `rule`: what the rules say."""
    return HeardRefusal(rule, likelihood(stored(WEIGHTS), clues(text, spans, situation, rule=rule)))


def clues(text: str, spans: Sequence[SlotSpan], situation: Situation, *, rule: bool) -> set[str]:
    """The clues to whether a text refuses."""
    heard = listen(text, spans, situation, known_words(), refuses=rule)
    invites = invited(situation)
    shown = ["^", *heard.shown]
    return {
        *("always", f"asked {heard.question}", f"answers {heard.answers}|{heard.told}|{invites}"),
        *(f"rule {rule}|{invites}", f"calls off {calls_off(text, '')}", f"declines {declines(text)}|{invites}"),
        *(f"may {may_call_off(text)}|{invites}", f"offers {offers(text)}", f"ends {shown[-1]}"),
        *_in_a_row(shown),
    }


def _in_a_row(shown: Sequence[str]) -> Iterator[str]:
    for length in (1, 2, 3):
        for first in range(len(shown) - length + 1):
            yield " ".join(shown[first : first + length])
