"""A character reads back what it has heard, asks where it is in doubt, and takes corrections."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.stss.characters.read_back import commitments_text
from tests.unit.environments.stss.characters.talking import DRIVER, INVITED, agreed, answers, context, promised

SAID = (
    "No.",
    "Yes.",
    "No, no, it's on!",
    "It is cancelled.",
    "At Gull Bakery, until six.",
    "I mean darts.",
    "Not Dev.",
)
READ_BACK = "kite contest at Harbour Green on 2023-02-14 16:00 to 17:00"


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (INVITED, READ_BACK),
        (f"{INVITED} It goes on until six.", "kite contest at Harbour Green on 2023-02-14 16:00 to 18:00"),
        (f"{INVITED} Dev is coming too.", f"{READ_BACK} with Dev Anand"),
        (
            "There will be an online quiz tomorrow at noon.",
            "online quiz on 2023-02-14 12:00 to 13:00",
        ),
        (
            "Would you join me for chess tomorrow at noon? From home, I mean.",
            "chess online on 2023-02-14 12:00 to 13:00",
        ),
        (
            "Could you buy rope at Tidewater Store tomorrow at 10:00 and then deliver it to Ben's house?",
            "buy rope at Tidewater Store on 2023-02-14 10:00 to 10:20 and then deliver rope at Ben's house",
        ),
    ],
)
async def test_the_acceptance_reads_back_all_that_was_heard(said: str, heard: str) -> None:
    (reply,) = await answers(said)
    assert reply == f"Yes, gladly: {heard}. I will be there."
    assert commitments_text(await agreed(said)) == re.sub(" with Dev Anand| online", "", heard) or "online" in heard


async def test_a_question_reads_back_what_was_heard() -> None:
    (reply,) = await answers("Would you play chess tomorrow at four in the afternoon? Dev is coming.")
    assert reply == "Play chess on 2023-02-14 16:00 to 17:00 with Dev Anand? Gladly, but where would that be?"


async def test_an_assumed_day_is_said() -> None:
    (reply,) = await answers("I invite you to a kite contest at Harbour Green at 16:00.")
    assert reply == f"Yes, gladly: {READ_BACK}. I will be there. I take it that you mean tomorrow."


@pytest.mark.parametrize(
    ("correction", "heard"),
    [
        ("No, at seven in the evening, not at four.", "kite contest at Harbour Green on 2023-02-14 19:00 to 20:00"),
        ("Not the green, the bakery.", "kite contest at Gull Bakery on 2023-02-14 16:00 to 17:00"),
        (
            "It's about our poetry workshop collaboration.",
            "poetry workshop collaboration at Harbour Green on 2023-02-14 16:00 to 17:00",
        ),
        ("No, no, today!", "kite contest at Harbour Green on 2023-02-13 16:00 to 17:00"),
        ("It goes on until six in the evening.", "kite contest at Harbour Green on 2023-02-14 16:00 to 18:00"),
        ("Leo is coming too.", f"{READ_BACK} with Leo Rossi"),
    ],
)
async def test_what_was_read_back_may_be_corrected(correction: str, heard: str) -> None:
    replies = await answers(INVITED, correction, "Yes, thank you. See you!")
    assert replies[0] == f"Yes, gladly: {READ_BACK}. I will be there."
    assert replies[1] == f"Yes, gladly: {heard}. I will be there."
    assert replies[2] == "See you then!"
    assert re.sub(" with Leo Rossi", "", heard) == commitments_text(await agreed(INVITED, correction))


@pytest.mark.parametrize(
    "leave",
    [
        "Thank you, see you then!",
        "Wonderful, I'll go and tell them at the bakery.",
        "Yes, at four. Goodbye!",
        "No problem!",
    ],
)
async def test_a_plain_yes_or_goodbye_settles(leave: str) -> None:
    assert (await answers(INVITED, leave))[1] == "See you then!"
    assert commitments_text(await agreed(INVITED, leave)) == READ_BACK


async def test_a_no_that_corrects_nothing_is_asked_about() -> None:
    replies = await answers(INVITED, "No, that is not what I said.", "At Gull Bakery.", "Yes.")
    assert replies[1] == "I am sorry, what did I get wrong?"
    assert "kite contest at Gull Bakery on 2023-02-14 16:00" in replies[2]
    assert await agreed(INVITED, "No, that is not what I said.") == ()


async def test_what_seems_called_off_is_asked_about_once() -> None:
    off = "Sorry, it is cancelled!"
    replies = await answers(INVITED, off, "Yes, I am sorry.")
    assert replies[1] == f"That is a pity. So {READ_BACK} won't take place?"
    assert replies[2] == "Another time, then!"
    for answer in ("No, no, it's on!", "It will take place.", "I mean Gull Bakery."):
        place = "Gull Bakery" if "Bakery" in answer else "Harbour Green"
        (promise,) = await agreed(INVITED, off, answer)
        assert promise.address == place
    for answer in ("Yes.", "No, it won't.", "Right, another time."):
        assert await agreed(INVITED, off, answer) == ()


async def test_an_unlikely_activity_is_asked_about_by_name() -> None:
    replies = await answers("Flute, you, me. When?", "Yes.", "At Grace's house, tomorrow at noon.")
    assert replies[0] == "You mean: Flute? Gladly, but where and when would that be?"
    assert replies[1] == "Flute? Gladly, but where and when would that be?"
    assert "Flute at Grace's house on 2023-02-14 12:00 to 13:00" in replies[2]


async def test_another_activity_that_is_unlikely_is_asked_about_too() -> None:
    sails = "It's about the sails."
    replies = await answers(INVITED, sails, "Yes.")
    assert replies[1] == f"{READ_BACK[0].upper()}{READ_BACK[1:]}? You mean: sails? Gladly."
    assert replies[2] == f"Yes, gladly: {READ_BACK.replace('kite contest', 'sails')}. I will be there."
    assert (await answers(INVITED, sails, "No."))[2].startswith(f"Yes, gladly: {READ_BACK}.")


async def test_people_of_whom_it_is_unclear_whether_they_come_are_asked_about_once() -> None:
    said = f"{INVITED} Ask Dev about it."
    replies = await answers(said, "Yes, he does.")
    assert replies[0] == f"Yes, gladly: {READ_BACK}. I will be there. Does Dev Anand take part too?"
    assert "with Dev Anand. I will be there." in replies[1] or replies[1] == "See you then!"
    assert (await answers(said, "No, he doesn't."))[1] == "See you then!"


async def test_a_talk_leaves_room_for_a_correction_and_ends() -> None:
    vague = "Come to a kite contest!"
    said = [vague, "At Harbour Green.", "Soon.", "No, tomorrow at six in the evening.", "No, at seven in the evening."]
    assert "19:00 to 20:00" in (await answers(*said))[-1]
    lines: list[str] = []
    ends = []
    for _ in range(4):
        lines.append(vague)
        reply, end = await DRIVER.reply(context(*lines))
        lines.append(reply)
        ends.append(end)
    assert ends == [False, False, False, True]


@given(st.lists(st.sampled_from([*SAID, INVITED]) | st.text(max_size=60), min_size=1, max_size=3))
async def test_any_talk_is_answered(said: list[str]) -> None:
    replies = await answers(*said)
    assert all(replies)
    assert len(await promised(said, replies)) <= 2


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("They shifted it to six in the evening.", "Harbour Green on 2023-02-14 18:00 to 19:00"),
        ("We do it at the school instead. And an hour later.", "Fernmouth School on 2023-02-14 17:00 to 18:00"),
        ("Change of plan. I am afraid that everybody must go to the inn.", "Anchor Inn on 2023-02-14 16:00 to 17:00"),
    ],
)
async def test_what_is_moved_after_an_agreement_is_heard(said: str, heard: str) -> None:
    _, reply = await answers(INVITED, said)
    assert reply.startswith(f"Yes, gladly: kite contest at {heard}")


async def test_two_times_that_exclude_each_other_are_asked_about_again() -> None:
    chess = "Will you play chess with me at the inn tomorrow?"
    asked, again = await answers(chess, "It could be at eight, it could be at nine.")
    assert asked == again == "Play chess at Anchor Inn on 2023-02-14? Gladly, but when would that be?"
    _, proposed = await answers(chess, "I leave that one to you.")
    assert proposed.endswith("I need a time. How about 15:00 instead?")


async def test_a_remark_after_an_agreement_is_no_other_plan() -> None:
    assert (await answers(INVITED, "Lovely, my shift ends at three."))[1] == "See you then!"
