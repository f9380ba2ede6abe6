"""Policies read the transcript alone; what they reach is measured in the environment's tests."""

from collections.abc import Sequence

from environments.knowledge_graph import policies, prompt
from environments.knowledge_graph.dataset import QuestionEntry
from proctor.types import Message

ENTRY = QuestionEntry(
    id="q",
    source="own",
    question="which ships of the yard carry salt?",
    entities={"Bell & Sons": "m.1", "salt": "m.2"},
    actions=("get_relations(m.1)", "get_neighbors(m.1,isles.yard.ships)", "count(#0)"),
    answers=(("m.3", None),),
)
LISTED = "Observation: [isles.yard.cats, isles.yard.ships]"
SHIPS = "Observation: variable #0, which are instances of isles.ship"


def after(*turns: tuple[str, str]) -> Sequence[Message]:
    said = ((Message(role="assistant", content=a), Message(role="user", content=b)) for a, b in turns)
    return (*prompt.BEFORE, prompt.question(ENTRY), *(message for turn in said for message in turn))


def last_line(policy: str, *turns: tuple[str, str]) -> str:
    makers = {
        "reference": policies.reference(ENTRY),
        "naive": policies.naive(ENTRY),
        "random": policies.chance(ENTRY, 1),
    }
    return makers[policy]("main", after(*turns)).content.split("\n")[-1]


FIRST = ("Action: get_relations(m.1)", LISTED)
SECOND = ("Action: get_neighbors(m.1,isles.yard.ships)", SHIPS)


def test_the_reference_takes_one_gold_action_a_reply_and_answers_with_the_last_variable() -> None:
    assert last_line("reference") == "Action: get_relations(m.1)"
    assert last_line("reference", FIRST) == "Action: get_neighbors(m.1,isles.yard.ships)"
    counted = ("Action: count(#0)", "Observation: variable #1, which is a number")
    assert last_line("reference", FIRST, SECOND, counted) == "Final Answer: #1"


def test_the_reference_gives_up_where_a_call_fails() -> None:
    assert last_line("reference", FIRST, ("Action: x", "x cannot be executed")) == "I give up."


def test_the_naive_policy_follows_the_words_of_the_question() -> None:
    assert last_line("naive") == "Action: get_relations(m.1)"
    assert last_line("naive", FIRST) == "Action: get_neighbors(m.1,isles.yard.ships)"
    assert last_line("naive", FIRST, SECOND) == "Action: get_relations(m.2)"


def test_the_naive_policy_intersects_what_is_of_one_type() -> None:
    other = ("Action: get_relations(m.2)", LISTED)
    for kind, line in (("isles.ship", "Action: intersection(#0,#1)"), ("isles.cat", "Final Answer: #1")):
        third = (
            "Action: get_neighbors(m.2,isles.yard.ships)",
            f"Observation: variable #1, which are instances of {kind}",
        )
        assert last_line("naive", FIRST, SECOND, other, third) == line


def test_the_random_policy_is_well_formed_and_varies_with_its_seed() -> None:
    lines = {policies.chance(ENTRY, seed)("main", after(FIRST)).content.split("\n")[-1] for seed in range(20)}
    assert lines == {f"Action: get_neighbors(m.1,isles.yard.{name})" for name in ("cats", "ships")}
