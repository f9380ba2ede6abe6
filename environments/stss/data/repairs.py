"""Repairs known errors of the published tasks, logs each change, and makes tasks from templates with a drawn cast."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from environments.stss.characters.routine import chance
from environments.stss.dataset import ANY, Category, SocialTask, SubGoal, Target, Template, Town
from environments.stss.town.world import Places
from proctor.types import Value

SHORT = 6
"""Keywords of at most so many letters often occur within other words, so the whole-word match is logged."""
_WANTS = r"(?:.*?\bwants? to )?"
_LEAD = re.compile(
    rf"^{_WANTS}(?:(?:find|invite|meet|gather|recruit|ask|bring|get|look for)\b.*?\b(?:for|to)\b"
    r"|(?:hold|host|organi[sz]e|arrange|give|throw|have|run|start|do)\b)?",
    re.IGNORECASE,
)
_HEAD = re.compile(r"^(?:\s*\b(?:an?|the|some|his|her|their|upcoming|public|go|about|on|of)\b)+", re.IGNORECASE)
_TAIL = re.compile(r"(?:[\s.,;:!]+|\b(?:together|online|with|others?|people|and|in)\b)+$", re.IGNORECASE)
_DOING = re.compile(r"^\w+ing\s+(?=\w)", re.IGNORECASE)


class Repair(Value):
    """One change of a task's field."""

    task: str
    field: str
    was: str
    now: str


class Repaired(NamedTuple):
    """A task as played in `strict`, and its changes."""

    task: SocialTask
    log: tuple[Repair, ...]


def repair(task: SocialTask, town: Town) -> Repaired:
    """The task with existing places, all required characters, fitting keywords, and texts that match its scoring."""
    log: list[Repair] = []
    goals = tuple(_goal(task, index, town, log) for index in range(len(task.task.goal)))
    mended = task.model_copy(update={"task": task.task.model_copy(update={"goal": goals})})
    description = criteria(mended) if _misleads(mended) else _with_places(task.Description, task, mended)
    shown = _goal_text(mended, _with_places(task.FPG, task, mended), town.places)
    _note(log, task, "Description", task.Description, description)
    _note(log, task, "FPG", task.FPG, shown)
    if task.category == "help" or (task.category == "appointment" and task.task.target_num != 2):
        _note(log, task, "task.target_num", str(task.task.target_num), "ignored")
    if any(task.goal.count(goal.start_time) > 1 for goal in goals):
        _note(log, task, "goal", task.goal, "FPG is shown")
    return Repaired(mended.model_copy(update={"Description": description, "FPG": shown}), tuple(log))


def _with_places(text: str, task: SocialTask, mended: SocialTask) -> str:
    for before, after in zip(task.task.goal, mended.task.goal, strict=True):
        text = text.replace(before.location, after.location) if before.location != ANY else text
    return text


def _misleads(task: SocialTask) -> bool:
    """Whether `Description` names another number of people, or for companions none of the keywords."""
    if task.category == "companions":
        words = [keyword.lower() for goal in task.task.goal for keyword in goal.keywords]
        return not any(word in task.Description.lower() for word in words)
    without_dates = re.sub(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?", "", task.Description)
    counts = {int(number) for number in re.findall(r"\d+", without_dates)}
    return task.category in ("public", "online") and counts not in (set(), {task.task.target_num - 1})


def _goal_text(task: SocialTask, shown: str, places: Places) -> str:
    """FPG; if it names another place than the goal, the goal's text in the form of FPG."""
    location, named = task.task.goal[0].location, places.mentions(shown)
    if task.category != "public" or location == ANY or not named or location in named:
        return shown
    time = re.escape(task.task.goal[0].start_time)
    goal = re.sub(rf"( (?:at|on) {time})+$", rf" at {task.task.goal[0].start_time}", task.goal)
    return f"{task.performer} wants to {goal[:1].lower()}{goal[1:]}"


def _goal(task: SocialTask, index: int, town: Town, log: list[Repair]) -> SubGoal:
    goal = task.task.goal[index]
    field = f"task.goal.{index}"
    location = goal.location
    if location != ANY and location not in town.world:
        location = (town.places.find(location) or location).split(":")[0]
    required = goal.required_character
    if task.category == "appointment":
        required = tuple(dict.fromkeys((*task.task.target, *goal.required_character, task.performer)))
    words = goal.keywords
    if task.category != "help" and missing(words, (task.goal, task.FPG, task.Description)):
        words = of_goal(task.goal, goal.location) or words
    _note(log, task, f"{field}.keyword", ", ".join(goal.keywords), ", ".join(words))
    _note(log, task, f"{field}.location", goal.location, location)
    if set(required) != set(goal.required_character):
        _note(log, task, f"{field}.required_character", ", ".join(goal.required_character), ", ".join(required))
    for word in words:
        if word.isalpha() and len(word) <= SHORT:
            _note(log, task, f"{field}.keyword", word, f"{word} as a whole word")
    changes = {"location": location, "required_character": required, "keyword": words[0], "alter_kwd": words[1:]}
    return goal.model_copy(update=changes)


def _note(log: list[Repair], task: SocialTask, field: str, was: str, now: str) -> None:
    if was != now:
        log.append(Repair(task=task.env_name, field=field, was=was, now=now))


def criteria(task: SocialTask) -> str:
    """The scoring rule in words: the text of `Description` in `strict`."""
    goal, target = task.task.goal[0], task.task
    place = "" if goal.location == ANY else f" at {goal.location}"
    time = "on 2023-02-14" if goal.start_time == ANY else f"at {goal.start_time}"
    heads = target.target_num - 1
    texts: Mapping[Category, str] = {
        "public": f"{heads} other people come to the {goal.keyword}{place} {time}; the more of them, the better.",
        "appointment": f"You and {', '.join(target.target)} do this in one room at one time {time}: {goal.keyword}.",
        "companions": f"You and {heads} other people do this{place} at one time {time}: {goal.keyword}.",
        "online": f"{heads} other people take part {time}, from anywhere: {goal.keyword}; the more, the better.",
        "help": "One other person does this on 2023-02-14, in this order: "
        + ", then ".join(f"{each.keyword} ({each.location})" for each in target.goal)
        + ".",
    }
    return texts[task.category]


def missing(keywords: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether no keyword occurs in any of the texts as a whole word; case does not matter."""
    words = "|".join(map(re.escape, keywords))
    return not re.search(rf"(?<!\w)(?:{words})(?!\w)", "\n".join(texts), re.IGNORECASE)


def of_goal(goal: str, location: str) -> tuple[str, ...]:
    """The activity in a goal's text, and the same without a leading `...ing` word; empty if none is found.

    From `Invite some friends for watching movies together online at 2023-02-14 20:30`: `watching movies`, `movies`.
    """
    place = "|".join(map(re.escape, dict.fromkeys((location, location.partition(":")[0]))))
    until = re.split(rf"\s(?:at|on|in)\s(?:some time|any time|20\d\d-|(?:{place})\b)", goal, maxsplit=1)[0]
    phrase = _stripped(_LEAD.sub("", until.strip()))
    return tuple(dict.fromkeys(word for word in (phrase, _stripped(_DOING.sub("", phrase))) if word))


def _stripped(phrase: str) -> str:
    return _TAIL.sub("", _HEAD.sub("", phrase)).strip()


TEXTS = ("goal", "FPG", "Description")
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
    share = {"public": 2, "companions": 3}.get(template.category)
    heads = math.ceil((len(cast) - 1) / share) + 1 if share else template.task.target_num
    target = template.task.model_copy(update={"target_num": heads})
    texts = {field: _filled(getattr(template, field), template.performer, target) for field in TEXTS}
    kept = template.model_dump(exclude={"task", *TEXTS})
    return SocialTask(**kept, **texts, task=target, env_name=f"{name}-{seed}", all_chars=tuple(cast))


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
