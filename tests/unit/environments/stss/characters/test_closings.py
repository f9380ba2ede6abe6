"""What a text after an agreement or a proposal does: remarks change nothing, corrections and refusals do."""

import pytest

from environments.stss.characters.read_back import HOUR, commitments_text, end_meant
from environments.stss.hearing.slots import InvitationSlots
from tests.unit.environments.stss.characters.talking import ADA, INVITED, agreed, answers

AGREED = "kite contest at Harbour Green on 2023-02-14 16:00 to 17:00"
CHESS = "I invite you to a chess match at Harbour Green tomorrow at 10:00."
"""Ada has to work then, and proposes 13:00."""
MOVED = "chess match at Harbour Green on 2023-02-14 13:00 to 14:00"
CLOSINGS = (
    "Great! Don't forget to bring a kite.",
    "Great, but bring an umbrella!",
    "Cool, it's a date then!",
    "Lovely. I actually have to go and help Dev with the nets now. Bye!",
    "It's going to be wonderful. Bye!",
    "Super, I'll tell the others about it.",
    "I can't wait!",
    "Great. Unfortunately I have to go now. See you tomorrow!",
    "Excellent! I won't be late.",
    "Thank you! I won't keep you any longer. Goodbye!",
    "Wonderful! Next time we can play chess.",
    "Perfect, see you tomorrow. Don't bother bringing food!",
    "Great! And tell Dev that his lesson is cancelled.",
    "I'm on my way to the bakery now. Bye!",
    "I'm going to Gull Bakery now, see you tomorrow.",
    "Wonderful, I'll go and tell them at the bakery.",
    "Fantastic, it's so nice at Gull Bakery today!",
    "Gull Bakery closes at noon today, so I must hurry. See you!",
    "You are a star. Have a lovely day!",
    "That makes me very happy, thank you. See you there!",
    "No worries, take your time. Until tomorrow!",
    "I'm so glad. Don't worry about the rain.",
    "Splendid! Shall I bring some cake?",
    "Good, then I won't disturb you any more.",
    "Super. I have to be off now, my bread is in the oven.",
    "I have to go to the bakery now. Bye!",
    "Good, because my lesson is cancelled.",
    "Dev's class is cancelled, by the way.",
)


@pytest.mark.parametrize("closing", CLOSINGS)
async def test_a_friendly_closing_keeps_what_was_agreed(closing: str) -> None:
    assert commitments_text(await agreed(INVITED, closing)) == AGREED
    assert commitments_text(await agreed(INVITED, closing, "Bye!")) == AGREED


@pytest.mark.parametrize(
    "refusal",
    [
        "13:00 is too late for me.",
        "13:00 won't be possible.",
        "At 13:00 I have a class.",
        "That isn't good.",
        "I can't do that, unfortunately.",
    ],
)
async def test_a_refused_proposal_is_no_agreement(refusal: str) -> None:
    assert "won't take place?" in (await answers(CHESS, refusal, name=ADA))[1]
    assert await agreed(CHESS, refusal, name=ADA) == ()


@pytest.mark.parametrize(
    ("yes", "agreement"),
    [
        ("Yes.", MOVED),
        ("13:00 is fine.", MOVED),
        ("Yes, why not!", MOVED),
        ("Great, I'll come over from the bakery.", MOVED),
        ("Yes, but at Gull Bakery.", MOVED.replace("Harbour Green", "Gull Bakery")),
        ("Yes, today at 13:00.", MOVED.replace("14 ", "13 ")),
        ("Okay, until 16:00.", MOVED.replace("14:00", "16:00")),
        ("Fine. Dev is coming too.", MOVED),
    ],
)
async def test_a_yes_to_a_proposal_may_change_something(yes: str, agreement: str) -> None:
    assert commitments_text(await agreed(CHESS, yes, name=ADA)) == agreement
    if "Dev" in yes:
        assert "with Dev Anand" in (await answers(CHESS, yes, name=ADA))[1]


@pytest.mark.parametrize(
    "announced", ["Wait, I made a mistake.", "Hold on.", "Hm, actually no.", "No, that's wrong.", "No no, wait."]
)
async def test_a_correction_that_is_only_announced_is_asked_for(announced: str) -> None:
    replies = await answers(INVITED, announced, "The time.", "At 17:00.")
    assert replies[1] == replies[2] == "I am sorry, what did I get wrong?"
    assert "17:00 to 18:00" in replies[3]
    assert (await answers(INVITED, announced, "Nothing, see you."))[2] == "See you then!"


@pytest.mark.parametrize("question", ["What?", "Is it at 4 or at 5?", "Did you get all of that?"])
async def test_a_question_after_an_agreement_is_answered_with_what_was_heard(question: str) -> None:
    assert (await answers(INVITED, question))[1] == f"Yes, gladly: {AGREED}. I will be there."


@pytest.mark.parametrize("answer", ["It does.", "Yes, it does.", "No no, you misunderstood me.", "Yes, it will."])
async def test_what_was_wrongly_taken_for_a_refusal_is_on_again(answer: str) -> None:
    assert commitments_text(await agreed(INVITED, "It is cancelled.", answer)) == AGREED


@pytest.mark.parametrize(
    "off",
    [
        "I must withdraw my invitation.",
        "I have to take my invitation back.",
        "Please ignore my invitation.",
        "I don't want you to come.",
        "Let's drop it.",
        "I changed my mind.",
        "Yes, but I am not coming.",
        "I'm not coming after all.",
        "Great! Unfortunately I can't come.",
        "Sorry, I can't.",
    ],
)
async def test_what_is_called_off_in_other_words_is_kept_by_nobody(off: str) -> None:
    assert "won't take place?" in (await answers(INVITED, off))[1]
    assert await agreed(INVITED, off) == ()


@pytest.mark.parametrize(
    ("first", "correction", "agreement"),
    [
        (INVITED, "Make it five o'clock, please.", AGREED.replace("16:00 to 17:00", "17:00 to 18:00")),
        (INVITED, "Actually, the contest starts at 17:00.", AGREED.replace("16:00 to 17:00", "17:00 to 18:00")),
        (INVITED, "Great, but at Gull Bakery.", AGREED.replace("Harbour Green", "Gull Bakery")),
        (INVITED, "No, I mean a chess match.", AGREED.replace("kite contest", "chess match")),
    ],
)
async def test_an_explicit_correction_changes_just_that(first: str, correction: str, agreement: str) -> None:
    assert commitments_text(await agreed(first, correction)) == agreement


async def test_a_time_after_a_proposal_keeps_no_end_that_nobody_named() -> None:
    promised = await agreed(CHESS, "Yes.", "Actually at 13:30.", name=ADA)
    assert commitments_text(promised) == MOVED.replace("13:00 to 14:00", "13:30 to 14:30")


async def test_a_no_to_the_activity_is_no_yes_whatever_stands_before_it() -> None:
    replies = await answers("Flute, you, me. When?", "Sure. It's not a flute, it's a tea party.")
    assert replies[1].startswith(("Tea party?", "You mean: tea party?"))


@pytest.mark.parametrize("leave", ["Goodbye!", "Thank you, bye!", "See you!"])
async def test_who_leaves_a_question_about_the_activity_open_keeps_what_was_agreed(leave: str) -> None:
    assert commitments_text(await agreed(INVITED, "It's about the sails and so on.")) == AGREED
    assert commitments_text(await agreed(INVITED, "It's about the sails and so on.", leave)) == AGREED


async def test_who_is_said_not_to_come_does_not_take_part() -> None:
    replies = await answers(f"{INVITED} Ask Dev about it.", "Yes, tomorrow at 16:00, but Dev isn't coming.")
    assert "Does Dev Anand take part too?" in replies[0]
    assert "with Dev" not in replies[1]


@pytest.mark.parametrize(
    ("correction", "first", "then"),
    [
        ("No, deliver it to Leo's house.", "Tidewater Store", "Leo's house"),
        ("No, not to Ben's house, to Leo's house.", "Tidewater Store", "Leo's house"),
        ("No, buy it at Gull Bakery.", "Gull Bakery", "Ben's house"),
    ],
)
async def test_a_correction_of_one_leg_of_an_errand_keeps_the_other(correction: str, first: str, then: str) -> None:
    errand = "Could you buy rope at Tidewater Store tomorrow at 10:00 and then deliver it to Ben's house?"
    buy, deliver = await agreed(errand, correction)
    assert (buy.address, deliver.address) == (first, then)


@pytest.mark.parametrize(
    ("more", "second"),
    [
        (["Great! I also have a chess match at Gull Bakery today at 18:00.", "Yes, thanks. Bye!"], "13 18:00 to 19:00"),
        (["I also invite you to a chess match at Gull Bakery tomorrow at 18:00."], "14 18:00 to 19:00"),
        (["I also invite you to a chess match at Gull Bakery.", "Tomorrow at 18:00."], "14 18:00 to 19:00"),
        (["I also invite you to a chess match at Gull Bakery tomorrow at 16:30.", "Yes."], "14 17:00 to 18:00"),
    ],
)
async def test_a_second_invitation_is_one_of_its_own(more: list[str], second: str) -> None:
    kite, chess = await agreed(INVITED, *more)
    assert commitments_text([kite]) == AGREED
    assert commitments_text([chess]) == f"chess match at Gull Bakery on 2023-02-{second}"


async def test_a_second_invitation_that_is_called_off_leaves_the_first() -> None:
    (kite,) = await agreed(INVITED, "I also have a chess match at Gull Bakery today at 18:00.", "It is cancelled.")
    assert commitments_text([kite]) == AGREED


async def test_a_start_that_is_changed_alone_moves_the_end_with_it() -> None:
    assert "16:00 to 18:00" in commitments_text(await agreed(INVITED, "Until 18:00."))
    assert "10:00 to 12:00" in commitments_text(await agreed(INVITED, "Until 18:00.", "No, at 10:00."))


async def test_a_place_is_taken_back_for_online_while_a_question_is_open() -> None:
    replies = await answers(
        "Would you join me for chess at Gull Bakery?", "Online, tomorrow at noon, not at the bakery."
    )
    assert replies[1] == "Yes, gladly: chess online on 2023-02-14 12:00 to 13:00. I will be there."


async def test_who_must_go_elsewhere_moves_no_place() -> None:
    replies = await answers(INVITED, "No, I have to go to the bakery now.", "Nothing, see you.")
    assert replies[1:] == ["I am sorry, what did I get wrong?", "See you then!"]


async def test_what_is_cancelled_of_somebody_s_own_is_no_refusal() -> None:
    lesson = "My lesson is cancelled, so would you play chess with me at Gull Bakery tomorrow at 18:00?"
    assert "play chess at Gull Bakery on 2023-02-14 18:00 to 19:00. I will" in (await answers(lesson))[0]
    for off in ("My kite contest is cancelled.", "The contest is cancelled.", "My plan is cancelled."):
        assert await agreed(INVITED, off) == ()
    off = "My party tomorrow at Gull Bakery is cancelled."
    assert "So party at Gull Bakery on 2023-02-14 won't take place?" in (await answers(off))[0]


@pytest.mark.parametrize(
    ("answer", "activity"),
    [
        ("I would like to change the battery in Finn's hearing aid.", "change the battery in Finn's hearing aid"),
        (
            "It's to tell Ben that his clock is ready and bring me his money, please.",
            "tell Ben that his clock is ready",
        ),
        ("I mean the five-a-side. Today, please.", "five-a-side"),
    ],
)
async def test_an_activity_that_is_told_expressly_is_taken_as_it_is_told(answer: str, activity: str) -> None:
    open_question = "Come to the green tomorrow at 16:00!"
    for replies in (await answers(open_question, answer), await answers(INVITED, f"No, {answer}")):
        assert f": {activity}" in replies[1]


async def test_an_end_before_the_start_is_no_end() -> None:
    assert commitments_text(await agreed(INVITED, "No, it ends at 15:00.")) == AGREED
    assert end_meant(InvitationSlots(end=2 * HOUR), 22 * HOUR) == 2 * HOUR, "past midnight"


async def test_an_errand_takes_the_time_of_its_legs_as_it_is_read_back() -> None:
    errand = "Could you buy rope at Tidewater Store tomorrow from 10:00 to 10:05 and then deliver it to Ben's house?"
    text = commitments_text(await agreed(errand))
    assert "10:00 to 10:20" in text
    assert text in (await answers(errand))[0]
