"""The one form of an invitation: what is read, what is asked about, and that nothing is guessed."""

from hypothesis import given
from hypothesis import strategies as st

from environments.stss.dataset import shipped
from environments.stss.invitation import ONLINE, FormContent, Leg, form_of, in_words, read
from environments.stss.town.schedule import DAY

PLACES = shipped().town.places
INN, STORE = "Anchor Inn", "Tidewater Store"


def heard(text: str, today: int = 0) -> FormContent:
    return read(text, PLACES, today)


LEGS = st.builds(
    Leg,
    st.sampled_from(["party", "chess club", "watching movies"]),
    st.sampled_from([INN, STORE, ONLINE, "Anchor Inn:taproom"]),
    st.sampled_from([0, 1]),
    st.integers(0, DAY - 1),
    st.none(),
).flatmap(lambda leg: st.integers(1, 300).map(lambda length: leg._replace(end=(leg.start or 0) + length)))


@given(LEGS)
def test_both_spellings_of_what_was_heard_are_read_as_the_same(leg: Leg) -> None:
    assert heard(form_of([leg])).legs == (leg,)
    assert heard(f"Would you like to {in_words([leg])}?").legs == (leg,)


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for said in (text, f"what: {text}", f"when: {text}", f"where: {text}", f"Would you like to {text}?"):
        heard(said)
