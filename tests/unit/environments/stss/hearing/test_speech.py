"""Speech as it comes: typed without apostrophes, called off in passing, and with days and places that are no plan."""

import pytest

from environments.stss.hearing.named.people import people
from environments.stss.hearing.read import read
from environments.stss.hearing.recognise import recognise
from environments.stss.hearing.refusals import invited, refuses
from environments.stss.hearing.slots import Situation, SpokenLine
from environments.stss.hearing.words import plain
from tests.unit.environments.stss.characters.talking import ADA, FINN, TOWN


def after(*lines: str) -> Situation:
    """A talk in which Finn has said these lines to Ada."""
    return Situation(TOWN.places, 600, ADA, FINN, [SpokenLine(FINN, line) for line in lines])


def test_a_text_message_is_spelt_out() -> None:
    assert plain("im late n cant cook, can u bring soup 2nite? dont ring") == (
        "I'm late and can't cook, can you bring soup tonight? don't ring"
    )
    assert plain("its 4 now, so r we off b4 its lid is on") == "it's 4 now, so are we off before its lid is on"
    assert plain("U-boats and Im Hof, don't") == "U-boats and Im Hof, don't"
    assert people(plain("chess tmrw, elif n jonas are coming"), after()) == {"Elif Kaya", "Jonas Weber"}
    assert people(plain("im at the inn, elif is coming too"), after()) == {"Elif Kaya"}
    assert people("Only Ben, sadly.", after("Who's coming?")) == {"Ben Osei"}


@pytest.mark.parametrize(
    ("text", "question", "start"),
    [
        ("Evening, evening! At eight in the morning I'm a stone.", "At eight, when I'm in bed?", 1200),
        ("In the morning. At half eight at night I wind my own clocks.", "Half eight in the MORNING?", 510),
        ("Ten at the outside.", "How late does it get?", None),
        ("Three, with a pot of tea. It's on till twenty past.", "When?", 900),
    ],
)
def test_times_in_an_answer(text: str, question: str, start: int | None) -> None:
    assert recognise(text, after(question)).clock.start == start


def test_no_gear_is_needed_where_it_was_asked_for() -> None:
    assert not refuses("No boots, it's dry.", after("Do I need boots?"), changes=False)
    assert not refuses("No tickets, no list.", after("Do they need tickets?"), changes=False)
    assert not refuses("Oh no, sorry, it's four now, still tomorrow.", after("Is it at two tomorrow?"), changes=True)
    assert refuses("No dance tonight, the fiddler's ill.", after("Is the dance still on?"), changes=False)
    assert refuses("No dance tonight.", after("Do I need a ticket for the dance?"), changes=False)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("No bowls at the green this afternoon, Finn.", ""),
        ("I'm scrapping tomorrow's walk.", ""),
        ("Don't go to the green, it's flooded.", ""),
        ("Absolutely not.", "Will you swim with me tomorrow at six?"),
        ("I can't, sorry, I'm ill.", "Chess tonight at eight? Shall I bring the board?"),
        ("Not me, I'm ill.", "Who's coming with me to the dance tonight?"),
        ("No. My aunt comes at ten, but I'll keep you a chair.", "Chess tomorrow at ten. You'll come?"),
        ("I must say no to this one.", "Chess tonight at eight, will you come?"),
    ],
)
def test_what_is_called_off_in_passing_or_declined(text: str, before: str) -> None:
    assert refuses(text, after(before), changes=False)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("You don't have to go anywhere, just turn on the radio.", "Where do I go for it?"),
        ("It did, and it brought three letters that nobody wanted.", "Did your parcel come back from Hull?"),
        ("Finn plays the spoons. Leo said no, and so sweetly.", "Who's playing tonight, is it just you?"),
        ("How could one say no to that?", "Chess tonight at eight. Will you come?"),
        ("There's no salt in it, I promise.", ""),
        ("Absolutely, I'll come, not a problem.", "Chess tonight at eight?"),
        ("No charge at the door tonight, come to the dance at eight.", ""),
    ],
)
def test_what_sounds_like_a_no_and_is_none(text: str, before: str) -> None:
    assert not refuses(text, after(before), changes=False)


def test_a_question_about_what_was_or_who_comes_invites_to_nothing() -> None:
    assert invited(after("Would you come to the quiz tonight?"))
    assert not invited(after("Was it a good fair on Tuesday?"))
    assert not invited(after("Who's singing tonight?"))


def test_days_and_places_in_passing() -> None:
    assert recognise("Then today. Your Tuesday stays free.", after()).day == 0
    assert recognise("Today, and by tomorrow all will smell of it.", after("Which evening would that be?")).day == 0
    assert recognise("Today I bake, so come tomorrow.", after("When shall I come?")).day == 1
    assert recognise("Is your Tuesday free? Chess at four?", after()).day == 1
    assert recognise("A gull walked in this morning and looked about.", after()).day is None
    assert recognise("I was thinking of a swim this morning at eleven.", after()).day == 0
    assert recognise("The ferry was late, so the tour starts at eleven this morning.", after()).day == 0
    assert recognise("Not mine, I'd only lose it. The school, please.", after()).place.place == "Fernmouth School"
    assert recognise("Eat mine for me.", after()).place.place is None
    assert recognise("Perhaps mine?", after("Where?")).place.place == "Ada's house"
    assert recognise("Fetch them home to me.", after()).place.place == "Ada's house"
    assert recognise("Not Dev, he's away. Grace and Kiri will come.", after("Who's coming?")).people == {
        "Grace Obi",
        "Kiri Tane",
    }
    assert recognise("The strongest arms in Fernmouth pull with me.", after()).place.place is None
    assert recognise("There's too much mud on the green, so the bakery.", after()).place.place == "Gull Bakery"
    assert recognise("I rode past the inn, and your lamp was lit.", after()).place.place is None


def test_what_is_off_and_empty_words_are_no_part_of_an_activity() -> None:
    assert read("Sketching is off tomorrow.", after()).activity == "Sketching"
    assert read("Would you visit me, live on the internet?", after()).activity is None
