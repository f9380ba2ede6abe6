"""Goals whose own keywords stand in none of their texts get them from the text of the goal."""

from collections.abc import Mapping, Sequence

from environments.stss.data.repairs import Repair, repair
from environments.stss.dataset import SocialTask, shipped
from environments.stss.environment import Stss

DATA = shipped()
QUIZ, BANDAGES, CHESS = "fernmouth_online_quiz", "fernmouth_bandages", "fernmouth_chess"
BAKING = "Invite some friends for baking bread together online at 2023-02-14 20:00"


def with_keywords(sample: str, *words: str, **texts: str) -> SocialTask:
    task = Stss().task(sample)
    goals = tuple(goal.model_copy(update={"keyword": words[0], "alter_kwd": words[1:]}) for goal in task.task.goal)
    return task.model_copy(update={"task": task.task.model_copy(update={"goal": goals}), **texts})


def test_keywords_of_another_activity_give_way_to_the_goals_own_and_the_log_says_so() -> None:
    told = {"FPG": f"Jonas Weber wants to {BAKING[0].lower()}{BAKING[1:]}", "Description": "Six friends bake."}
    task = with_keywords(QUIZ, "welding", "solder", goal=BAKING, **told)
    mended, log = repair(task, DATA.town)
    assert mended.task.goal[0].keywords == ("baking bread", "bread")
    assert mended.Description == "Six friends bake."
    assert Repair(task=QUIZ, field="task.goal.0.keyword", was="welding, solder", now="baking bread, bread") in log
    assert repair(mended, DATA.town).task.task.goal == mended.task.goal


def mended(sample: str, words: Sequence[str], texts: Mapping[str, str] = {}) -> list[tuple[str, ...]]:
    """The keywords of the goals of a task that had these, and texts like these; for tables."""
    return [goal.keywords for goal in repair(with_keywords(sample, *words, **texts), DATA.town).task.task.goal]


def test_no_shipped_task_needs_it() -> None:
    for task in DATA.tasks:
        goals = [goal.keywords for goal in repair(task, DATA.town).task.task.goal]
        assert goals == [goal.keywords for goal in task.task.goal]
