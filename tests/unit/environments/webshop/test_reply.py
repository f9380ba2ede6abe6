"""Replies are read in `compat` as by AgentBench v0.2's expression, and in `strict` never worse."""

import json
import random
import re
from collections.abc import Sequence

import pytest

from environments.webshop import reply
from environments.webshop.functions import TOOLSET
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import Profile
from tests.support import SHARED_DATA

PUBLISHED = re.compile(r"[Aa]ction: *\n* *((?:search|click)\[.+?\])")
ANY_MARK = re.compile(r"(?i)action[*_]{0,3}:")
SPLIT = re.compile(r"(.+)\[(.+)\]")
MARKS = ("Action:", "action:", "ACTION:", "**Action:**", "Action :", "Action:Action:", "Reaction:", "ction:")
BLANKS = ("", "", " ", "  ", "\n", "\n\n", "\n\n\n", " \n", "\n ", " \n\n ", "\n \n", "\t", "\r\n", "\r", "\u00a0", "`")
NAMES = ("search[", "click[", "search[", "click[", "Search[", "click [", "buy[", "search", "click[[", "search[]")
VALUES = (
    *("desk", "buy now", "7 [US] oz", "a]b", "]", "[", "", " ", "\n", "x\ny", "İ", "桌子", "😀", "a\rb", "\u2028"),
    "]]",
)
ENDS = ("]", "]", "]", "]", "", " ]", "]]", "].", "\n]", "\n", "] ", "]\n")
REPLIES = 20_000


def made(seed: int) -> str:
    """A reply of one to three actions, each of them right, or wrong in some places."""
    dice = random.Random(seed)
    pieces: list[Sequence[str]] = [MARKS, BLANKS, NAMES, VALUES, ENDS]
    if dice.random() < 0.5:
        pieces = [pieces[0][:2], pieces[1][:10], pieces[2][:2], *pieces[3:]]
    actions = ("".join(map(dice.choice, pieces)) for _ in range(dice.randint(1, 3)))
    return dice.choice(("", "Thought:\nhm\n\n")) + dice.choice(("", "\n", " ")).join(actions)


def published(text: str) -> tuple[str, str] | None:
    """Name and argument as the published code takes them from a reply."""
    found = PUBLISHED.search(text)
    split = found and SPLIT.match(found[1])
    return (split[1], split[2].lower()) if split else None


def test_compat_reads_what_the_published_expression_reads() -> None:
    replies = [made(seed) for seed in range(REPLIES)]
    taken = [move and move[:2] for move in map(reply.read, replies)]
    wanted = [published(text) for text in replies]
    assert [text for text, move, right in zip(replies, taken, wanted, strict=True) if move != right] == []
    assert 0.3 < sum(map(bool, wanted)) / REPLIES < 0.9, "replies of both kinds"


def test_strict_reads_an_action_wherever_compat_does() -> None:
    for text in map(made, range(REPLIES)):
        if (move := reply.read(text)) is not None:
            strict = reply.read(text, "strict")
            assert strict is not None, text
            assert strict == move or len(ANY_MARK.findall(text)) > 1, text


@pytest.mark.shared
def test_published_replies() -> None:
    lines = (SHARED_DATA / "webshop" / "published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        assert reply.read(row["reply"], "compat") == reply.read(row["reply"], "strict")
        assert list(reply.read(row["reply"]) or ())[:2] == row["published"]


@pytest.mark.parametrize("profile", ["compat", "strict"])
@pytest.mark.parametrize(
    "text",
    [
        "Action:" + " " * 5_000_000 + "x",
        "Action:" + "\n" * 5_000_000 + "x",
        "Action:" + " \n" * 2_500_000 + "x",
        "Action: search[" * 300_000,
        "Action:\nsearch[" * 300_000,
        "Action: click[]\n" * 300_000,
        "Action: click[" * 2_000 + "x" * 5_000_000,
    ],
    ids=["blanks", "lines", "both", "never closed", "lines never closed", "empty", "long"],
)
def test_no_reply_takes_long_to_read(text: str, profile: Profile) -> None:
    """What looks back and forth would take hours: the test would not end."""
    assert reply.read(text, profile) is None


def test_a_reply_of_a_long_search_is_read_whole() -> None:
    assert reply.read(f"Action: search[{'X' * 5_000_000}]") == ("search", "x" * 5_000_000, "")


@pytest.mark.parametrize(
    ("name", "arguments", "move"),
    [
        ("search_action", {"keywords": "Blue [dry] Jeans"}, ShopMove("search", "blue [dry] jeans")),
        ("click_action", {"value": "7 [US] oz"}, ShopMove("click", "7 [us] oz")),
    ],
)
def test_a_call_is_the_move_of_its_whole_text(name: str, arguments: dict[str, str], move: ShopMove) -> None:
    function = TOOLSET.find(name, strict=True)
    assert function is not None
    assert function.read(function.checked(json.dumps(arguments), strict=True)) == move
    assert [each.name for each in TOOLSET.functions if each.write(move) is not None] == [name]
    assert function.write(move) == {key: value.lower() for key, value in arguments.items()}
    assert function.write(None) is None
