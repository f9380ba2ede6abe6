"""What is to be done to a thing that was named before: `bring it`, with the thing that is meant."""

import pytest

from environments.stss.hearing.activities.groups import does_it
from environments.stss.hearing.activities.things import with_thing
from environments.stss.hearing.activities.tokens import tokens
from environments.stss.hearing.read import read
from environments.stss.hearing.slots import Situation
from tests.unit.environments.stss.characters.talking import ADA, FINN, TOWN


@pytest.mark.parametrize(
    ("before", "phrase", "whole"),
    [
        ("I left my fiddle under the stage. Could you", "bring it", "bring my fiddle"),
        ("The kettle drips, and my old ship's lamp smokes. Would you", "mend it", "mend my old ship's lamp"),
        ("A radio, a bell and six loaves are ready.", "Fetch them", "Fetch six loaves"),
        ("The mixer's making that noise again. Please", "have a look at it", "have a look at the mixer"),
        ("Here. Minute hand.", "Take it", "Take it"),
        ("My glasses are gone.", "Find it", "Find it"),
        ("My sister found the lamp under the stage. Could you", "bring it", "bring the lamp"),
        ("My lamp broke, so", "mend it", "mend my lamp"),
        ("The kettle drips. Please", "fix it", "fix the kettle"),
        ("The boss wants three crates.", "roll them", "roll three crates"),
    ],
)
def test_a_pronoun_stands_for_the_thing_that_was_named(before: str, phrase: str, whole: str) -> None:
    assert with_thing(phrase, tokens(before, [], set())) == whole


@pytest.mark.parametrize("phrase", ["bring it", "look after them", "take a look at it", "Wind it by hand"])
def test_what_is_done_to_a_thing_may_be_an_activity(phrase: str) -> None:
    assert does_it(phrase)


@pytest.mark.parametrize(
    "phrase", ["know it", "think about it", "bring", "make it", "tell them", "share it", "visit them"]
)
def test_light_verbs_with_a_pronoun_are_none(phrase: str) -> None:
    assert not does_it(phrase)


def test_an_errand_names_its_thing_and_where_it_goes() -> None:
    slots = read(
        "I left my fiddle at the workshop. Could you bring it to the inn by six this evening?",
        Situation(TOWN.places, 600, ADA, FINN),
    )
    assert (slots.activity, slots.place, slots.end) == ("bring my fiddle to the inn", "Anchor Inn", 1080)
