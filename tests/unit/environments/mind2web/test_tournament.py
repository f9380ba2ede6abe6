"""Steps prepared for play, the tournament's bounds, the policies that read questions, and pickles that are refused."""

import pickle
import weakref
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.mind2web import policies, prompt
from environments.mind2web.data.converter import convert
from environments.mind2web.environment import Mind2Web
from environments.mind2web.pages.markup import ElementChoice, Rendered
from environments.mind2web.reply import read, write
from environments.mind2web.tournament import GROUP, Prediction, Profile, Tournament
from proctor.types import Message


@given(st.integers(0, 10), st.sampled_from(["compat", "strict"]), st.lists(st.integers(-1, 4), min_size=3, max_size=3))
def test_a_tournament_of_ten_ends_within_three_questions(count: int, profile: Profile, picks: list[int]) -> None:
    candidates = [str(number) for number in range(count)]
    tournament, asked, last = Tournament(candidates, profile), 0, ""
    while group := tournament.group():
        assert (1 if profile == "strict" else 2) <= len(group) <= GROUP
        assert set(group) <= set(candidates)
        pick = picks[asked]
        asked += 1
        if 0 <= pick < len(group):
            last = group[pick]
            tournament.choose(Prediction(last, "CLICK "))
    assert tournament.prediction.element in ("", last)
    assert tournament.earlier.element == last
    assert bool(asked) == (count >= (1 if profile == "strict" else 2))


@given(
    st.sampled_from("ABCDEF"),
    st.sampled_from(["CLICK", "TYPE", "SELECT"]),
    st.from_regex(r"[^\s](.*[^\s])?", fullmatch=True),
)
def test_what_is_written_is_read_again(letter: str, operation: str, value: str) -> None:
    said = "" if operation == "CLICK" else value
    assert read(write(letter, operation, said)) == (letter, f"{operation} {said}", True)


def asked(task: str, *labels: str, previous: tuple[str, ...] = ()) -> tuple[Message, ...]:
    page = Rendered(
        "<html> A. None of the above\n</html>", tuple(ElementChoice(str(at), label) for at, label in enumerate(labels))
    )
    return (prompt.asked(page, task, previous),)


def test_naive_takes_the_words_of_the_task_that_are_still_open() -> None:
    labels = ("<a id=0> Buy lamps", "<a id=1> Pay now", "<a id=2> Home")
    assert policies.naive("main", asked("Buy lamps and pay", *labels)).content == "Answer: B.\nAction: CLICK"
    later = asked("Buy lamps and pay", *labels, previous=("[a]  Buy lamps -> CLICK",))
    assert policies.naive("main", later).content == "Answer: C.\nAction: CLICK"
    assert policies.naive("main", asked("Something else", *labels)).content == "Answer: A."


def test_random_answers_what_is_shown_and_hangs_on_the_seed_alone() -> None:
    question = asked("Buy lamps", "<a id=0>", "<a id=1>")
    replies = [policies.chance("s", seed)("main", question).content for seed in range(60)]
    assert {read(reply).letter for reply in replies} == {"A", "B", "C"}
    assert {read(reply).action.split()[0] for reply in replies} == {"CLICK", "TYPE", "SELECT"}
    assert replies == [policies.chance("s", seed)("main", question).content for seed in range(60)]


def test_policies_answer_texts_that_are_no_question() -> None:
    for policy in (policies.naive, policies.chance("s", 0)):
        assert read(policy("main", (Message(role="user", content="Hello"),)).content).letter == "A"


class Harmful:
    """Calls a function when it is loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("harm",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (pickle.dumps({"scores": Harmful()}), "builtins.print"),
        (pickle.dumps({"scores": {}}), "ranks: is missing"),
        (pickle.dumps({"scores": {"k": {"1": "x"}}, "ranks": {}}), "scores.k.1"),
        (pickle.dumps([1]), "the file"),
        (pickle.dumps({"scores": {}, "ranks": {}})[:-1], "is not a readable pickle"),
        (pickle.dumps({"scores": {"k": {"1": float("nan")}}, "ranks": {"k": {"1": 0}}}), "scores.k.1"),
        (pickle.dumps({"scores": {"k": {"1": 0.5}}, "ranks": {"k": {"1": -1}}}), "ranks.k.1"),
        (pickle.dumps({"scores": {"k": {"1": 0.5, "2": 0.1}}, "ranks": {"k": {"1": 0, "2": 0}}}), "ranks.k: "),
        (pickle.dumps({"scores": {"k": {"1": 0.5}}, "ranks": {}}), "k: is in only one of scores and ranks"),
        (pickle.dumps({"scores": {}, "ranks": {"k": {"1": 0}}}), "k: is in only one of scores and ranks"),
        (b"", "is not a readable pickle"),
        (b"\x80\x04\x95" + b"\xff" * 8, "is not a readable pickle"),
        (b"garbage", "is not a readable pickle"),
        (b"\x80\x04P1\n.", "refers to objects outside"),
    ],
)
def test_other_pickles_are_refused_and_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, told: str
) -> None:
    (tmp_path / "scores.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=r"scores\.pkl: ") as refused:
        list(convert(tmp_path / "scores.pkl"))
    assert told in str(refused.value)
    assert capsys.readouterr().out == ""


def test_all_who_play_a_step_at_once_get_the_same_one_and_none_is_kept() -> None:
    environment = Mind2Web()
    sample, other = environment.samples()[:2]
    contest = environment.contest(sample)
    group = contest.line()[:5]
    assert environment.contest(sample) is contest
    assert environment.contest(other) is not contest
    assert contest.shown(group) is contest.shown(group)
    assert contest.shown(group) == contest.render(group) != contest.shown(group[:1])
    seen = weakref.ref(contest)
    del contest
    assert seen() is None
