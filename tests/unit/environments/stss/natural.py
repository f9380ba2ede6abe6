"""An ideal performer that speaks as people do: each ask is a labelled utterance, fitted to its task."""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import environments.stss
from environments.stss.agent.script import PerformerScript
from environments.stss.characters.routine import chance
from environments.stss.dataset import SocialTask
from proctor.environment import Policy
from proctor.types import Action, Message

FOLDER = Path(environments.stss.__file__).with_name("utterances")
HOURS = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
HOUR = rf"(?:{'|'.join(HOURS)}|1[0-2]|[1-9])"
TIME = (
    rf"(?:a )?(?:half|quarter|twenty|ten|five|twenty-five) (?:past|to) {HOUR}|half {HOUR}|noon"
    rf"|{HOUR} ?(?:o'clock|[ap]m|[ap]\.m\.)"
    rf"|(?<=\bat ){HOUR}|\d\d?[:.]\d\d"
)
PART = r",? ?(?:in the (?:morning|afternoon|evening)|at night|this (?:morning|afternoon|evening)|tonight)"
DAYS = r"tomorrow(?: (?:morning|afternoon|evening|night))?|today|tonight|this (?:morning|afternoon|evening)"
SPOTS = {
    "Anchor Inn": r"(?:the )?Anchor Inn|the Anchor|the inn|the taproom",
    "Harbour Green": r"(?:the )?Harbour Green|the green|the lawn",
    "Fernmouth School": r"(?:the )?Fernmouth School|the school|the reading room",
    "Gull Bakery": r"(?:the )?Gull Bakery|the bakery",
    "Quay Workshop": r"(?:the )?Quay Workshop|the workshop",
    "Tidewater Store": r"(?:the )?Tidewater Store|the Tidewater|the store|the shop",
}


class Wish(NamedTuple):
    """What a task's performer asks for."""

    category: str
    activity: str
    place: str
    start: int


@cache
def utterances(half: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / f"{half}.jsonl").read_text("utf-8").splitlines()]


def in_words(minute: int) -> str:
    """A full or half hour in words, with its part of the day."""
    hour, rest = minute // 60, minute % 60
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    return f"{'half past ' if rest else ''}{HOURS[hour % 12]} {part}"


def fitted(line: dict[str, Any], wish: Wish) -> str | None:
    """The sentence with the task's activity, place and time; None if one of its own cannot be found in it."""
    text, slots = str(line["text"]), line["slots"]
    if slots["end"] or slots["people"] or slots["negated"] or line["unsure"]:
        return None
    if slots["activity"]:
        if wish.place and slots["place"] and re.search(SPOTS.get(slots["place"], "$^"), slots["activity"]):
            return None
        text = text.replace(slots["activity"], "@", 1)
    for wanted, pattern, new in (
        ("place", SPOTS.get(slots["place"], "$^"), wish.place),
        ("start", rf"(?:{TIME})(?:{PART})?", in_words(wish.start)),
        ("day", DAYS, "tomorrow"),
    ):
        found = re.findall(rf"\b(?:{pattern})(?!\w)", text)
        if slots[wanted] is None and not found:
            continue
        if slots[wanted] is None or len(found) != 1:
            return None
        text = re.sub(rf"\b(?:{pattern})(?!\w)", new, text)
    return text.replace("@", wish.activity)


@cache
def asks(wish: Wish, needs: tuple[str, ...], half: str = "test") -> list[str]:
    """The sentences of a half that invite (no `needs`) or answer with the slots needed, fitted to a task."""

    def wanted(line: dict[str, Any]) -> bool:
        if not needs:
            first = line["kind"] == "invitation" and line["category"] == wish.category and line["slots"]["activity"]
            return bool(first and line["meaning"] == "invite")
        return line["kind"] == "answer" and line["meaning"] == "inform" and all(line["slots"][name] for name in needs)

    made = (fitted(line, wish) for line in utterances(half) if wanted(line))
    return [text for text in made if text is not None]


def natural(policy: Policy, task: SocialTask, script: PerformerScript, seed: int) -> Policy:
    """The scripted performer, with a natural sentence in place of each invitation of its own."""
    errand = re.search(r"Could you (.*?)(?: on \d.*?)(?= and then|\?)( and then .*)?\?", script.invitation)
    activity = f"{errand[1]}{errand[2] or ''}" if errand and task.category == "help" else script.activity
    place = "" if task.category == "help" else script.place
    wish = Wish(task.category, activity, place, script.start)

    def drawn(question: str, phase: str) -> str:
        if guess := re.search(r"You mean: (.*?)\?", question):
            named = bool(set(re.findall(r"\w{4,}", guess[1].lower())) & set(re.findall(r"\w{4,}", activity.lower())))
            first = "Yes." if named else one("what", phase)
            return " ".join([first, *(one(word, phase) for word in asked(question) if word != "what")])
        return " ".join(one(word, phase) for word in asked(question) or [""])

    def asked(question: str) -> list[str]:
        """What is asked for: `Gladly, but where and when would that be?`."""
        found = re.search(r"\b(?:but|And) ((?:what|where|when)\b[^?]*?)\?", question)
        return re.findall(r"\b(what|where|when)\b", found[1]) if found else []

    def one(word: str, phase: str) -> str:
        needs = {"what": ("activity",), "when": ("start",), "where": ("place",)}.get(word, ())
        return chance(phase, seed, word).choice(asks(wish, needs) or [script.invitation])

    def act(conversation: str, transcript: Sequence[Message]) -> Action:
        action = policy(conversation, transcript)
        reply = json.loads(action.content)
        if reply.get("utterance") != script.invitation:
            return action
        last = [message.content for message in transcript if message.role == "user"]
        return Action(content=json.dumps(reply | {"utterance": drawn(last[-1], "\n".join(last))}))

    return act
