"""What a character asks where it is in doubt: its own question again, whether that was a yes, what is called off."""

import pytest

from environments.stss.characters.driver import Context
from environments.stss.characters.read_back import commitments_text
from environments.stss.hearing.slots import SpokenLine
from tests.unit.environments.stss.characters.talking import DRIVER, FINN, INVITED, TOWN, agreed, answers

CLARA = "Clara Novak"
AGREED = "kite contest at Harbour Green on 2023-02-14 16:00 to 17:00"
CHESS = "Would you play chess with me at the inn tomorrow at four in the afternoon?"


async def answered(asked: str, *said: str) -> list[str]:
    """What Finn answers to each of these texts of Clara's, the first of which is an answer to him."""
    lines = [SpokenLine(FINN, asked)]
    for text in said:
        lines.append(SpokenLine(CLARA, text))
        context = Context(TOWN.personas[FINN], now=600, partner=CLARA, lines=tuple(lines), doing="at home")
        lines.append(SpokenLine(FINN, (await DRIVER.reply(context))[0]))
    return [line.text for line in lines[2::2]]


@pytest.mark.parametrize(
    ("asked", "text", "again"),
    [
        ("And where is that?", "Down by the big stones, as always.", "Gladly, but where would that be?"),
        ("When is it?", "When the cows come home.", "Gladly, but when would that be?"),
        ("Lovely. Who else will be there?", "The same as ever.", "Gladly. Who else takes part?"),
    ],
)
async def test_its_own_question_is_asked_again_where_the_answer_was_not_understood(
    asked: str, text: str, again: str
) -> None:
    assert await answered(asked, text) == [again]


@pytest.mark.parametrize("nobody", ["Nobody.", "Just us two."])
async def test_nobody_is_an_answer_to_who_comes(nobody: str) -> None:
    assert "Who else" not in (await answered("Who else will be there?", nobody))[0]


async def test_an_answer_that_is_no_plain_refusal_is_asked_about() -> None:
    will_it = "Will play chess at Anchor Inn on 2023-02-14 16:00 to 17:00 take place, then?"
    yes = await answered(CHESS, "I'd cross the sea on a plank for that.", "Yes, of course.")
    assert yes[0] == will_it
    assert yes[1].startswith("Yes, gladly: play chess at Anchor Inn")
    no = await answered(CHESS, "I'd cross the sea on a plank for that.", "No, I can't, sorry.", "Yes.")
    assert no[1].startswith("That is a pity. So play chess at Anchor Inn on 2023-02-14 16:00 to 17:00 won't take")
    assert no[2] == "Another time, then!"


async def test_a_refusal_is_of_what_the_character_had_invited_to() -> None:
    reply = "That is a pity. So play chess at Anchor Inn on 2023-02-14 16:00 to 17:00 won't take place?"
    assert await answered(CHESS, "I'm sorry, I can't.") == [reply]


async def test_a_refusal_that_may_be_a_change_is_asked_about() -> None:
    (reply,) = await answered(CHESS, "The school has me until then, alas.")
    assert reply.endswith("won't take place? Or where and when will it be instead?")


async def test_which_plan_is_called_off_is_asked_where_it_is_unknown() -> None:
    replies = await answers("The picnic is cancelled.", "The one on the green, tomorrow at noon.")
    assert replies == [
        "That is a pity. So picnic won't take place? Where and when would it have been?",
        "Another time, then!",
    ]


async def test_words_that_may_call_something_off_are_asked_about() -> None:
    (reply,) = await answers("The oven has broken down and nobody can mend it.")
    assert reply.endswith(" Or is something called off?")
    assert "called off" not in (await answers("Nice weather, isn't it?"))[0]


async def test_a_remark_that_is_neither_yes_nor_leave_is_answered_with_what_was_agreed_once() -> None:
    replies = await answers(INVITED, "The wind has turned to the north.", "The gulls are loud.")
    assert replies[1] == f"Yes, gladly: {AGREED}. I will be there."
    assert replies[2] == "See you then!"
    assert commitments_text(await agreed(INVITED, "The wind has turned to the north.")) == AGREED


@pytest.mark.parametrize("only", ["No, with Leo Rossi, please.", "No, Leo Rossi will be there."])
async def test_a_correction_of_who_comes_takes_the_place_of_others(only: str) -> None:
    replies = await answers(f"{INVITED} Dev is coming too.", only)
    assert "with Dev Anand" in replies[0]
    assert replies[1] == f"Yes, gladly: {AGREED} with Leo Rossi. I will be there."


async def test_nobody_else_takes_back_who_comes() -> None:
    assert (await answers(f"{INVITED} Dev is coming too.", "No, nobody else will come."))[1].endswith(
        f"{AGREED}. I will be there."
    )


async def test_an_end_that_is_taken_back_is_none() -> None:
    replies = await answers(f"{INVITED} It goes on until six.", "No, it has no fixed end.")
    assert replies[1] == f"Yes, gladly: {AGREED}. I will be there."


async def test_what_is_no_longer_online_has_a_place() -> None:
    (reply,) = await answers("I've given up on Zoom: chess tomorrow at noon at the school.")
    assert "chess at Fernmouth School" in reply


async def test_those_named_in_passing_are_asked_about_whatever_follows_their_name() -> None:
    (reply,) = await answers(f"{INVITED} Dev's talked me into it.")
    assert reply.endswith("Does Dev Anand take part too?")
    assert "take part" not in (await answers(f"{INVITED} I borrowed Dev's kite."))[0]
