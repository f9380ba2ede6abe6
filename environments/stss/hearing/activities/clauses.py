"""The shell of a clause: in which form it asks, wishes, offers or tells, whatever the activity is."""

from collections.abc import Sequence

from environments.stss.hearing.words import word_set

CONJUNCTIONS = word_set(
    """
    and but so because if that since when as which who while where before after until unless although or
    """
)
DETERMINERS = word_set("a an the my our some this that your another")
NEGATIVE = word_set("not n't no never cannot")
_MODALS = word_set("would could can will might may shall should must 'd 'll do does did")
_WISHES = word_set(
    """
    want wanted like love need hope hoping hoped wish thinking thought fancy wonder wondering going plan
    planning mean meaning
    """
)
_HOLDS = word_set(
    """
    hold holding host hosting give giving have having throw throwing organise organising organize organizing
    arrange arranging arranged run running start starting put putting doing set setting offer offering open
    opening get getting make making call calling try trying is 's are be got
    """
)
_INVITES = word_set(
    """
    join joining invite inviting invited invitation come coming attend attending welcome free up ready game
    company
    """
)
_LINKS = word_set("to for of about in us me at on")
_SELF = word_set("i we")


def shell(lead: Sequence[str]) -> str:
    """The form of a clause from its words up to what may be the activity."""
    words = set(lead)
    if not words:
        return "bare"
    end = f" {lead[-1]}" if lead[-1] in _LINKS else ""
    who = "you" if "you" in words else "we" if words & _SELF else "other"
    forms = (
        (words & NEGATIVE, f"not {who}"),
        (words & _MODALS, f"modal {who}{end}"),
        (lead[0] == "there", "there is"),
        ("let" in words, "let"),
        (words & _INVITES, f"invites{end}"),
        (words & _WISHES, f"wishes{end}"),
        (words & _HOLDS, f"holds {who}"),
        (lead[0] in DETERMINERS, "article"),
    )
    return next((form for fits, form in forms if fits), f"tells {who}")
