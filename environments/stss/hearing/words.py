"""Words of everyday English that the grammar is made of."""

import re

NUMBERS = {
    name: number
    for number, name in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1
    )
}
HOUR = rf"(?:{'|'.join(NUMBERS)}|1[0-2]|0?[1-9])"
"""An hour of the twelve-hour clock."""
BEGINS = r"(?:^|(?<=[.!?;:]\s)|(?<=[.!?]\s[\"'(]))"
"""The beginning of a sentence."""
VERBS = frozenset(
    re.findall(
        r"\S+",
        """
        act add answer arrange ask assemble bake beat bring build bury buy call carry cast catch
        change check choose clean clear climb close collect compare compose cook copy count cover
        cut dance decorate deliver dig discuss draw drink drive drop dust eat examine exercise
        explore fasten feed fetch fill film find finish fix fly fold gather get give go haggle hand
        hang have hear help hide hold hunt inspect iron join judge keep knit lay learn leave lend
        lift light listen load lock look make mark measure meet mend mind mix move nail oil open
        organise organize pack paint pay photograph pick plan plant play polish post pour practice
        practise prepare press print pull push put raise read record rehearse repair replace return
        rinse roll row run sand save saw scrub search see sell send set sew share sharpen shift
        shovel show sign sing sit sketch solve sort sow stack stitch store stretch study sweep swim
        switch take talk taste teach tell test tidy tie tighten transcribe translate try tune turn
        type unload unpack visit wait walk wash watch water weed weigh wheel wind wipe wrap write
        """,
    )
)
VERB = rf"(?:{'|'.join(sorted(VERBS))})"
"""A verb that may begin a request, in its base form."""
EMPTY = frozenset(
    re.findall(
        r"\S+",
        """
        a while rest start change proper quarter fellow yet lad soul sport lamb dear darling half whole being
        all along also an and any anyone anything are ask asking at attend be believe big bit
        bother bring by came camera can click close come comes coming company computer could cut day
        do doing errand everybody everyone excuse favor favour favours fetch find for forgive friend
        friends fun get getting give go goes going good great guess hand hang have having hear hello
        help her here hey hi him his hold hope hour huge i idea idiot if in internet is it its join
        joining just keep kindly kindness kitchen know let let's like link listen little log look
        looking lot love lovely make making maybe me mean meet meeting mine minute moment my need
        news nice no not of on one ones online or our people perhaps person plan plans please
        promise proposition put question quick run said say see should show simple small so some
        somebody someone something sorry spare spread start stuff swear tag take talk teach tell
        thank thanks that the their them then there these they thing things think this those time to
        too try turn up us use voice want watch we what whatever will with wonder word would yes you
        your yours
        """,
    )
)
"""Words that name no activity when they stand alone."""


_FILLERS = re.compile(
    r",? ?\b(?:um+|uh+|er+m?|hm+)\b[,.]?|, (?:like|well|you know|honestly|perhaps|maybe|hear me out|oh),|"
    r", i mean[^,.]*,|\blike,",
    re.IGNORECASE,
)


_RANGE = re.compile(r"(?<![\d-])(\d{1,2}(?::\d\d)?) ?[-–] ?(\d{1,2}(?::\d\d| ?[ap]\.?m\b))", re.IGNORECASE)


def plain(text: str) -> str:
    """A text on one line, with straight quotes and without fillers such as `um`."""
    straight = " ".join(text.replace("’", "'").replace("‘", "'").split())
    return " ".join(_RANGE.sub(r"\1 to \2", _FILLERS.sub(" ", straight)).split())


def within(pattern: str, text: str) -> bool:
    """Whether words of a pattern occur in a text; case does not matter."""
    return re.search(rf"(?:(?<!\w)|(?='))(?:{pattern})(?!\w)", text, re.IGNORECASE) is not None


def is_empty(phrase: str) -> bool:
    """Whether a phrase names nothing that one could do."""
    words = re.findall(r"[\w'-]+", phrase.lower())
    return all(word in EMPTY or word.isdigit() or word in NUMBERS for word in words)
