"""What of a reply is its question, and which questions are answered by a hint."""

import pytest

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.reply import MAX_QUESTION, Screening, question_of, screen

ENGLISH = Puzzle(
    id="e",
    language="en",
    story="A man took the train home and jumped off. He had been to the doctor.",
    truth="He had been blind.",
    story_keys=("A man took the train home.", "He jumped off."),
    keys=("He had been blind.",),
    key_lines=1,
)
CHINESE = ENGLISH.model_copy(
    update={"language": "zh", "story": "一个人坐火车回家，跳车了。", "story_keys": ("一个人坐火车回家。", "他跳车了。")}
)
PUZZLES: dict[Language, Puzzle] = {"en": ENGLISH, "zh": CHINESE}


@pytest.mark.parametrize(
    ("reply", "compat", "strict"),
    [
        ("  Was he ill?  \nWas he blind?", "Was he ill?", "Was he ill?"),
        ("\n \nWas he ill?", "", "Was he ill?"),
        ("Was he ill?\r\nmore", "Was he ill?", "Was he ill?"),
        ("", None, None),
        (" \n\t\n", "", None),
        ("\t", "", None),
        (" ", "", None),
        ("\u3000\u200a", "", None),
        ("x" * (MAX_QUESTION + 1), "x" * MAX_QUESTION, "x" * MAX_QUESTION),
        ("alone \ud83d?", "alone ??", "alone ??"),
    ],
)
def test_the_question_is_the_first_line(reply: str, compat: str | None, strict: str | None) -> None:
    assert (question_of(reply, "compat"), question_of(reply, "strict")) == (compat, strict)


@pytest.mark.parametrize(
    ("language", "question", "verdict"),
    [
        ("en", "Great job, tell me an other story", Screening.GO_ON),
        ("en", "I have no further questions.", Screening.GO_ON),
        ("en", "So the man took the train home?", Screening.IN_STORY),
        ("en", "Why did he jump?", Screening.GUESS),
        ("en", "So why?", Screening.GUESS),
        ("en", "Did he ask himself why he was blind?", Screening.ASK),
        ("en", "Was he blind?", Screening.ASK),
        ("en", "Did he take the train to see his blind mother?", Screening.ASK),
        ("en", "", Screening.ASK),
        ("zh", "谢谢你，再见", Screening.GO_ON),
        ("zh", "一个人坐火车回家吗？", Screening.IN_STORY),
        ("zh", "请问为什么他跳车？", Screening.GUESS),
        ("zh", "他是盲人吗？", Screening.ASK),
    ],
)
def test_a_question_is_asked_unless_it_is_forbidden_told_or_asks_for_reasons(
    language: Language, question: str, verdict: Screening
) -> None:
    assert screen(question, PUZZLES[language], "strict") is verdict


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_whole_story_told_back_is_a_repetition_in_strict(language: Language) -> None:
    assert screen(PUZZLES[language].story, PUZZLES[language], "strict") is Screening.IN_STORY


def test_a_part_of_the_story_beyond_its_keys_may_be_asked_in_strict() -> None:
    assert screen("He had been to the doctor.", ENGLISH, "strict") is Screening.ASK


@pytest.mark.parametrize(("profile", "verdict"), [("compat", Screening.IN_STORY), ("strict", Screening.ASK)])
def test_compat_compares_characters_whatever_they_spell(profile: Profile, verdict: Screening) -> None:
    assert screen("Am I not the oak on the mare?", ENGLISH, profile) is verdict


@pytest.mark.parametrize(
    ("question", "verdict"),
    [
        ("A man took the train home?", Screening.IN_STORY),
        ("The man took the train home?", Screening.IN_STORY),
        ("A man took the train?", Screening.ASK),
        ("took the train home", Screening.ASK),
        ("He jumped?", Screening.ASK),
        ("Did the man have no money to pay for a taxi home, so that he took the train?", Screening.ASK),
    ],
)
def test_compat_asks_questions_that_are_shorter_than_the_fact_or_say_more(question: str, verdict: Screening) -> None:
    assert screen(question, ENGLISH, "compat") is verdict


@pytest.mark.parametrize(("profile", "verdict"), [("compat", Screening.ASK), ("strict", Screening.GUESS)])
def test_a_question_for_a_reason_goes_to_the_host_in_compat_only(profile: Profile, verdict: Screening) -> None:
    assert screen("Why did he jump?", ENGLISH, profile) is verdict


def test_a_forbidden_phrase_comes_before_everything_else() -> None:
    assert screen("Why? Great job", ENGLISH, "strict") is Screening.GO_ON
