"""Makes tasks from templates: draws a cast and fills in the placeholders."""

import math
from collections.abc import Sequence

from environments.stss.characters.routine import chance
from environments.stss.dataset import ANY, SocialTask, Target, Template

OTHERS = (10, 12)
"""Minimum and maximum number of background characters."""


def instantiate(template: Template, name: str, people: Sequence[str], seed: int) -> SocialTask:
    """A task of a template. Equal seeds give equal casts, always with performer, targets and required characters."""
    dice = chance(name, seed, "cast")
    goals = template.task.goal
    required = [*template.task.target, *(who for goal in goals for who in goal.required_character)]
    cast = list(dict.fromkeys([template.performer, *required]))
    pool = [person for person in people if person not in cast]
    size = dice.randint(*OTHERS) + 1
    cast += dice.sample(pool, max(0, min(size - len(cast), len(pool))))
    target = template.task.model_copy(update={"target_num": _heads(template, len(cast) - 1)})
    return SocialTask(
        **template.model_dump(exclude={"task", "goal", "FPG", "Description"}),
        goal=_filled(template.goal, template.performer, target),
        FPG=_filled(template.FPG, template.performer, target),
        Description=_filled(template.Description, template.performer, target),
        task=target,
        env_name=f"{name}-{seed}",
        all_chars=tuple(cast),
    )


def _heads(template: Template, others: int) -> int:
    """The number of people that the goal needs, including the performer."""
    if template.category == "public":
        return math.ceil(others / 2) + 1
    if template.category == "companions":
        return math.ceil(others / 3) + 1
    return template.task.target_num


def _filled(text: str, performer: str, target: Target) -> str:
    words = {"#performer": performer, "#target_num": str(target.target_num - 1)}
    for index, name in enumerate(target.target):
        words[f"#target_{index}"] = name
    for index, goal in enumerate(target.goal):
        words[f"#location_{index}"] = goal.location if goal.location != ANY else "any place"
        words[f"#time_{index}"] = goal.start_time if goal.start_time != ANY else "some time"
    for placeholder in sorted(words, key=len, reverse=True):
        text = text.replace(placeholder, words[placeholder])
    return text
