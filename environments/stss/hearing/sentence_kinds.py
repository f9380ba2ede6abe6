"""Words by which a sentence tells of the meeting, or of other things."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

SENTENCE = re.compile(r"[.!?;]\s")
"""Where a sentence ends."""
_KINDS: Mapping[str, re.Pattern[str]] = {
    kind: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)
    for kind, words in (
        ("others", r"he|she|they"),
        ("theirs", r"it's|it|his|her|their|who|that"),
        ("own", r"my"),
        ("speaker", r"i"),
        ("denied", r"not|no|never|\w+n't"),
        ("ahead", r"you|we|us|let's|come|i'll|we'll|shall|would|could|can|if|please"),
        ("reported", r"know|said|told|heard|think|thought"),
        ("bounded", r"by|before|until|'?till?|since|after|past"),
        ("usual", r"this morning|yesterday|last|every|always|ever|once|usual|days"),
        ("past", r"was|were|had|did|went|came|got|saw|\w+ed"),
    )
}


@lru_cache(maxsize=256)
def sentence_kinds(text: str) -> Sequence[str]:
    """The kinds of which a sentence, or a part of one, has words. What was found in the last texts is kept."""
    return tuple(kind for kind, words in _KINDS.items() if words.search(text))
