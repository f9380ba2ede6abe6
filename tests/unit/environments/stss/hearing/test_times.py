"""When something is to be: ranges, lengths, what is later than another time, and what is in doubt."""

import pytest

from environments.stss.hearing.named.days import OUT_OF_REACH, days
from environments.stss.hearing.named.lengths import length, shift
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.slots import InvitationSlots, Situation, SpokenLine
from environments.stss.town.clock import DAY
from tests.unit.environments.stss.characters.talking import ADA, FINN, TOWN, answers

NINE = 9 * 60
INVITED = SpokenLine(ADA, "Come to the quiz at the inn tonight at eight.")


def at(*before: SpokenLine) -> Situation:
    return Situation(TOWN.places, NINE, ADA, FINN, before)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("Chess at the inn tonight, nine to half past ten.", 1260, 1350),
        ("Homework at the bakery tomorrow 10 til 12, come along.", 600, 720),
        ("Watch my boiler tomorrow, nine to half eleven? I've a sign to hang at ten.", 540, 690),
        ("A mending morning, half nine until about one, no, twelve.", 570, 720),
        ("We set off at ten to two.", 830, None),
        ("Keep an eye on the cloth for two hours from eleven.", 660, 780),
        ("A talk tonight at a quarter to seven, fifty minutes.", 1125, 1175),
        ("At half past seven this evening, for an hour and a quarter.", 1170, 1245),
        ("Low water's ten past one, so we start an hour after that.", 850, None),
        ("It must be on the green by seven tonight, no, make that eight.", None, 1200),
        ("Quarter to four at the latest.", None, 945),
        ("The clock said noon, an hour later than that would be one, so come at four.", 960, None),
        ("Talk about songs today at 4.45?", 1005, None),
        ("Photographs tonight, 10.30, on the roof.", 1350, None),
        ("Sketching at the green tomorrow from ten to eleven-thirty.", 600, 690),
        ("Take the lamp to the inn before eight tonight, I sing there at nine.", None, 1200),
        ("The fair is tomorrow, from quarter past five, and we close at half past six.", 1035, 1110),
        ("It must be over by eight tonight, so we start at six.", 1080, 1200),
        ("Supper at the inn tonight at seven. We will be four, with Leo.", 1140, None),
        ("It's back on the shelf tomorrow by a quarter to five, not a minute after that.", None, 1005),
        ("Scales at half past nine in the morning. Forty minutes ought to be enough.", 570, 610),
        ("A walk on the shore tomorrow. Till the tide turns, so half past five.", None, 1050),
        ("A lesson in knots at the workshop tomorrow, five to seven in the evening.", 1020, 1140),
        ("A lesson in knots at the workshop tomorrow, ten to five, in the afternoon.", 1010, None),
        ("We leave for the point at five to seven in the evening.", 1135, None),
        ("Yoga on the screen tonight, from nine to half past.", 1260, 1290),
        ("The seals come at eight tonight, so be there at quarter to.", 1185, None),
        ("Sketching at the green tomorrow from two to quarter to.", 840, 885),
        ("Shall we say two in the afternoon? No, three's better.", 900, None),
        ("Chess at the inn tonight at six. By nine I'm asleep.", 1080, None),
        ("Bring the cake by four in the afternoon, I'm hungry.", None, 960),
        ("Meet me at six in the evening, no, five to six.", 1075, None),
        ("That one's good! Come and see it at four.", 960, None),
        ("Help me unload the lorry at ten tomorrow.", 600, None),
        ("Come at nine. He walked half past me.", 540, None),
        ("Unveiling at the school tomorrow, five to twelve.", 715, None),
        ("He comes by here at noon. By a quarter to twelve would be grand.", None, 705),
        ("Half seven in the morning it starts, not by nine.", 450, None),
        ("Come between five and seven in the evening.", 1020, 1140),
        ("Nails at the shop tonight from six, and I'll stop at eight whatever's left.", 1080, 1200),
    ],
)
def test_start_and_end_of_a_text(text: str, start: int | None, end: int | None) -> None:
    assert recognise(text, at()).clock[:2] == (start, end)


def test_a_length_in_an_answer_ends_what_was_spoken_of() -> None:
    asked = at(INVITED, SpokenLine(FINN, "How long will it take?"))
    assert recognise("Two hours on the nose, and then you're free.", asked).clock.end == 22 * 60
    assert recognise("And could it be an hour later?", at(INVITED)).clock.start == 21 * 60
    asked = at(INVITED, SpokenLine(FINN, "I'm up at six. How long does it go on?"))
    assert recognise("It stops at half ten, cross my heart.", asked).clock.end == 22 * 60 + 30
    assert recognise("Then let us say nine tonight instead.", asked).clock[:2] == (21 * 60, None)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("It lasts three quarters of an hour.", 45),
        ("It takes a couple of hours.", 120),
        ("For two and a half hours.", 150),
        ("For one hour and ten minutes.", 70),
        ("A call at ten, five minutes, no more.", None),
        ("I waited four hours for a man who only wanted to look.", None),
        ("For an hour, or for two hours.", None),
    ],
)
def test_how_long_a_text_says_that_something_lasts(text: str, minutes: int | None) -> None:
    assert length(text, asked=False) == minutes


@pytest.mark.parametrize(
    ("text", "before", "start"),
    [
        ("Ten o'clock instead.", "Is nine in the morning not the middle of your night?", 600),
        ("Four o'clock is my breakfast, but yes.", "Will you come this afternoon at four?", 960),
        ("Four in the morning, I said.", "Will you come this afternoon at four?", 240),
        ("Morning. At night I sleep.", "Eight in the morning or at night?", 480),
        ("They moved it, it's seven now.", "Is it at six in the evening?", 1140),
        ("No, in the morning at eight.", "Will you come to the quiz tonight at eight?", 480),
        ("Morning. Chess at the inn today at five?", "Good day.", 1020),
    ],
)
def test_the_half_of_the_day_goes_on_from_what_was_said_before(text: str, before: str, start: int) -> None:
    assert recognise(text, at(SpokenLine(FINN, before))).clock.start == start


def test_of_several_lengths_in_an_answer_the_longest_holds() -> None:
    text = "For two hours, with a break for ten minutes."
    assert length(text, asked=True) == 120
    assert length(text, asked=False) is None


def test_an_earlier_time_is_below_zero() -> None:
    assert [found.minutes for found in (shift("half an hour earlier"), shift("two hours later")) if found] == [-30, 120]
    assert shift("two hours") is None
    assert shift("not half an hour later") is None


def test_a_morning_that_is_over_is_no_day_of_a_plan() -> None:
    assert [span.value for span in days("this morning", NINE)] == [0]
    assert days("I sold six this morning", 14 * 60) == []
    assert [span.value for span in days("tomorrow", DAY + NINE)] == [OUT_OF_REACH]


def test_a_doubted_time_takes_the_place_of_the_one_before_unless_it_was_asked_for() -> None:
    known = InvitationSlots("chess", "Anchor Inn", start=NINE, end=600)
    latest = InvitationSlots(start=700, end=800, doubted=frozenset({"start", "end"}))
    assert known.merged(latest.sure(())) == known._replace(start=None, end=None, doubted=frozenset({"start", "end"}))
    assert known.merged(latest.sure(("start",))) == known._replace(start=700, end=800)
    assert known.merged(latest._replace(doubted=frozenset({"end"})).sure(("place",))).end is None


async def test_a_doubtful_end_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("environments.stss.hearing.read.doubted", lambda *_: frozenset({"end"}))
    invited = "I invite you to a sack race at Harbour Green tomorrow at 16:00 to 17:30."
    asks, yes = await answers(invited, "Until a quarter to seven in the evening, please.")
    assert asks == (
        "Sack race at Harbour Green on 2023-02-14 16:00 to an open end? Gladly, but until when would that be?"
    )
    assert yes.startswith("Yes, gladly: sack race at Harbour Green on 2023-02-14 16:00 to 18:45.")


async def test_a_doubtful_start_is_asked_for() -> None:
    two_times = "Would you sweep the reading room before noon tomorrow? Their man comes at one, or says he does."
    assert (await answers(two_times))[0].endswith("when would that be?")


async def test_what_is_done_to_something_named_before_is_an_answer_to_what_for() -> None:
    invited = "My knee clicks. Would you come by the store tomorrow at three in the afternoon?"
    assert "have a look at it at Tidewater Store" in (await answers(invited, "I would like to have a look at it."))[1]
