"""What a character hears in single utterances: days, places, people and refusals."""

import pytest

from environments.stss.hearing.named.days import OUT_OF_REACH
from environments.stss.hearing.read import read
from environments.stss.hearing.slots import InvitationSlots, Situation, SpokenLine
from tests.unit.environments.stss.characters.talking import ADA, FINN, INVITED, TOWN, agreed, answers

CLARA = "Clara Novak"


def heard(text: str, asked: str = "") -> InvitationSlots:
    before = [SpokenLine(FINN, asked)] if asked else []
    return read(text, Situation(TOWN.places, 600, CLARA, FINN, before))


@pytest.mark.parametrize(
    "text",
    [
        "There's a quilt fair at the school on Saturday at three in the afternoon.",
        "We rehearse at the inn on Friday evening at eight.",
        "I'm holding a puppet show at the green on the 16th at noon.",
        "In three days we have a book sale at the school, at two o'clock.",
        "Would you help me paint the fence next Tuesday at four in the afternoon, at the inn?",
        "A week from today, at noon, we hold a pie contest on the green.",
        "Come to the concert in two weeks, at the school, at eight in the evening.",
    ],
)
async def test_a_day_that_is_not_simulated_is_heard_and_told(text: str) -> None:
    assert heard(text).day == OUT_OF_REACH
    (reply,) = await answers(text)
    assert "on another day" in reply
    assert "I am sorry, I can plan for today and tomorrow only. Would one of the two do?" in reply
    assert await agreed(text) == ()


async def test_a_day_that_is_not_simulated_may_be_changed() -> None:
    (promise,) = await agreed("I invite you to a quiz at the inn on Saturday at 15:00.", "Yes, tomorrow.")
    assert promise.start == 24 * 60 + 15 * 60


@pytest.mark.parametrize(
    "text",
    [
        "I'd a jam session with the lads from Saltby on Saturday. What a laugh.",
        "Ben and I spent a delightful hour over that book on Sunday.",
    ],
)
def test_what_was_on_a_weekday_is_a_story(text: str) -> None:
    assert heard(text) == InvitationSlots()


@pytest.mark.parametrize(
    ("text", "asked", "place"),
    [
        ("Let's meet in front of the school at two tomorrow to measure the yard.", "", "Fernmouth School"),
        ("I'm giving a reading in the school library tomorrow at four in the afternoon.", "", "Fernmouth School"),
        ("Singing, on the green, tomorrow, and afterwards we all go to the inn.", "", "Harbour Green"),
        ("I bought flour at the store. Would you bake bread with me at my house?", "", "Clara's house"),
        ("Oh, just come to me.", "Where shall we meet?", "Clara's house"),
        ("At home, where else?", "Where shall we meet?", "Clara's house"),
    ],
)
def test_the_place_is_where_it_is_to_be(text: str, asked: str, place: str) -> None:
    assert heard(text, asked).place == place


@pytest.mark.parametrize(
    ("text", "asked", "negated"),
    [
        ("I can't make it to the quiz tonight.", "", True),
        ("Something's come up, I have to give the quiz a miss.", "", True),
        ("I've got to cancel, my throat's on fire.", "See you at the concert tonight!", True),
        ("I can't come up the hill with this knee. Would you bring the cart down?", "", False),
        ("No, at eight.", "At seven?", False),
        ("Wild horses couldn't keep me away.", "Will you come to my quiz tonight at eight?", False),
        ("I wouldn't miss it for the world!", "Will you come to my quiz tonight at eight?", False),
        ("It's at the inn now, not at the school.", "See you at the concert tonight!", False),
    ],
)
def test_a_refusal_is_told_from_a_change(text: str, asked: str, negated: bool) -> None:
    assert heard(text, asked).negated is negated


def test_who_declines_names_nothing_new() -> None:
    asked = "Bread tasting today at eleven, here in the bakery!"
    assert heard("I can't come, I must sign for a parcel.", asked).activity is None
    assert heard("I can't come to the tasting, sorry.", asked).activity is not None


async def test_who_may_take_part_is_asked_about_after_a_proposal_too() -> None:
    chess = "I invite you to chess at Harbour Green tomorrow at 10:00. Ask Dev about it."
    replies = await answers(chess, "Yes.", "Yes.", name="Ada Birch")
    assert "Dev" not in replies[0]
    assert "Does Dev Anand take part too?" in replies[1]


async def test_times_that_compete_are_asked_about() -> None:
    (reply,) = await answers("Two, or at half past nine.")
    assert "when" in reply


@pytest.mark.parametrize(
    ("text", "asked", "names"),
    [
        ("Yes, she promised.", "Will Ada come?", {"Ada Birch"}),
        ("No, she's got bread to bake.", "Will Ada come?", set()),
        ("Yes, gladly.", "Will you come swimming with Ada and me?", set()),
        ("No, Leo and Dev too.", "Is it just us?", {"Dev Anand", "Leo Rossi"}),
        ("Kiri won't be there, but Ada will.", "", {"Ada Birch"}),
        ("Hugo's up for it.", "", {"Hugo Martin"}),
    ],
)
def test_those_who_take_part(text: str, asked: str, names: set[str]) -> None:
    assert heard(text, asked).people == names
    assert not heard(text, asked).negated


async def test_who_is_said_to_stay_away_is_not_asked_about() -> None:
    assert "take part" not in (await answers(f"Finn can't come. {INVITED}", name=ADA))[0]


@pytest.mark.parametrize(
    "text",
    [
        "Would you take the parcel to the ferry? It leaves at ten to five today.",
        "Would you feed my cat at my house tomorrow? She eats at seven in the morning.",
        "Could you carry the chairs to the inn? I open at five in the afternoon.",
    ],
)
async def test_the_time_of_something_else_is_not_taken_for_the_start(text: str) -> None:
    (reply,) = await answers(text)
    assert "when would that be?" in reply


def test_not_until_a_day_is_that_day() -> None:
    assert heard("Not until tomorrow, at noon.").day == 1
    assert heard("I'm away until Thursday.").day is None


def test_the_latest_time_is_an_end() -> None:
    assert heard("Could you bring my glasses to the workshop no later than 15:00?").end == 15 * 60


@pytest.mark.parametrize(
    ("text", "asked", "negated"),
    [
        ("The boat won't be ready in time, so no trip tomorrow, sorry.", "", True),
        ("We're closed tomorrow, so the tasting isn't taking place.", "", True),
        ("Tomorrow I'm on the mainland all day.", "Would you help me with the shelves tomorrow?", True),
        ("I'm away until Thursday.", "Would you help me with the shelves tomorrow?", True),
        ("I've promised Ada to help in the bakery.", "Shall we go rowing at six?", True),
        ("Tomorrow? I would if I could.", "Would you help me with the shelves tomorrow?", True),
        ("It'd be my pleasure.", "Would you help me with the shelves tomorrow?", False),
        ("Nothing I'd rather do.", "Would you help me with the shelves tomorrow?", False),
        ("I'm not very handy, but I'll do my best.", "Would you help me with the shelves tomorrow?", False),
        ("You needn't bring anything but yourself.", "What do I need to bring?", False),
        ("There's no bread left at home. Would you bring me a loaf by six?", "", False),
    ],
)
def test_a_refusal_is_told_from_a_promise(text: str, asked: str, negated: bool) -> None:
    assert heard(text, asked).negated is negated
