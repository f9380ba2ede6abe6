"""Tasks on invented sites, in Mind2Web's official form, with scores of an invented ranker."""

import json
import random
from pathlib import Path
from typing import NamedTuple

from lxml import etree
from pydantic import JsonValue

from environments.mind2web.data.records import OWN
from environments.mind2web.pages.cleaning import clean
from environments.mind2web.pages.page import parse
from tools.datagen.mind2web.element import Node, Numbering, raw_page
from tools.datagen.mind2web.scores import Likeness, likeness, score_lines
from tools.datagen.mind2web.templates import KINDS, Story, story
from tools.datagen.mind2web.widgets import WidgetMove

SECOND_POSITIVE = 0.2
"""Probability that a parent or child of the target is a second right element of a step."""
NO_POSITIVE = 0.05
"""Probability that the right element of a step is not among its candidates."""
CONTAINERS = 0.1
"""Probability that an element that can't be acted on is a candidate."""
_PERIOD = 30
_SMALL = {7: 1, 13: 6}
"""Number of candidates of the second step in some of every 30 tasks, by the task's number among the 30 (from 0)."""


class Pack(NamedTuple):
    """Generated tasks, and the lines of their score file."""

    tasks: tuple[dict[str, JsonValue], ...]
    scores: tuple[dict[str, JsonValue], ...]


def generate(tasks: int, seed: int) -> Pack:
    """Tasks of five kinds in turn; equal arguments give equal packs."""
    recorders = [_recorder(number, seed) for number in range(tasks)]
    records = tuple(recorder.record() for recorder in recorders)
    seen = [step for recorder in recorders for step in recorder.seen]
    return Pack(records, tuple(score_lines(seen)))


def write(pack: Pack, folder: Path, split: str, tasks_a_file: int) -> list[Path]:
    """Writes a pack as `<split>_scores.jsonl` and `<split>_<number>.json`. Returns the paths in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {f"{split}_scores.jsonl": "".join(f"{_json(line)}\n" for line in pack.scores)}
    for number, start in enumerate(range(0, len(pack.tasks), tasks_a_file)):
        texts[f"{split}_{number}.json"] = _json(pack.tasks[start : start + tasks_a_file])
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return [folder / name for name in texts]


def _recorder(number: int, seed: int) -> "_Recorder":
    return _Recorder(number, random.Random(f"{seed} {number}"))


class _Recorder:
    """Solves a task on its site and records every step; `seen` holds the ranker's view of each step."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self._few = _SMALL.get(number % _PERIOD)
        self._dice = dice
        self._story: Story = story(KINDS[number % len(KINDS)], dice)
        self._numbering = Numbering(dice)
        self.seen: list[Likeness] = []

    def record(self) -> dict[str, JsonValue]:
        """The whole task."""
        story, name = self._story, self._name()
        state: dict[str, str] = {}
        actions: list[JsonValue] = []
        for at, move in enumerate(story.moves):
            actions.append(self._step(name, move, state, self._few if at == 1 else None))
            state |= move.changes
        return {
            "annotation_id": name,
            "source": OWN,
            "website": story.site,
            "domain": story.kind.domain,
            "subdomain": story.kind.subdomain,
            "confirmed_task": story.task,
            "action_reprs": [move.repr for move in story.moves],
            "actions": actions,
        }

    def _step(self, task: str, move: WidgetMove, state: dict[str, str], few: int | None) -> JsonValue:
        """Record of a move and the page before it. `few`: its number of candidates, one of them right; None for all."""
        nodes = self._numbering.number(self._story.page(state)).walk()
        positives, negatives = self._candidates(nodes, move.target, few)
        raw, uid = raw_page(nodes[0]), self._name()
        cleaned = clean(parse(raw), frozenset(node.id for node in (*positives, *negatives)))
        query = f"{self._story.task} {move.repr}"
        self.seen.append(likeness(f"{task}_{uid}", query, positives, negatives, self._dice))
        return {
            "action_uid": uid,
            "raw_html": "",
            "cleaned_html": etree.tostring(cleaned, encoding="unicode"),
            "operation": {"op": move.op, "original_op": move.op, "value": move.value},
            "pos_candidates": [_candidate(node, at == 0) for at, node in enumerate(positives)],
            "neg_candidates": [_candidate(node, None) for node in negatives],
        }

    def _candidates(self, nodes: list[Node], key: str, few: int | None) -> tuple[list[Node], list[Node]]:
        """The right elements, and the wrong candidates: all elements that can be acted on, and some that can't."""
        target = next(node for node in nodes if node.element.key == key)
        second = few is None and self._dice.random() < SECOND_POSITIVE
        positives = [target, self._kin(target)] if second else [target]
        chosen = [node for node in nodes[2:] if node.element.interactive or self._dice.random() < CONTAINERS]
        negatives = [node for node in chosen if node not in positives]
        if few is not None:
            return positives, self._dice.sample(negatives, few - 1)
        return [] if self._dice.random() < NO_POSITIVE else positives, negatives

    def _kin(self, target: Node) -> Node:
        """The target's parent or one of its children."""
        kin = [child for child in target.children if isinstance(child, Node)]
        return self._dice.choice([*kin, *([target.parent] if target.parent else [])])

    def _name(self) -> str:
        return f"{self._dice.getrandbits(64):016x}"


def _candidate(node: Node, target: bool | None) -> JsonValue:
    """A candidate in Mind2Web's format. `target`: whether a right one was acted on; None for a wrong one."""
    attributes = _json({"backend_node_id": node.id, **node.element.attributes})
    record: dict[str, JsonValue] = {"tag": node.element.tag, "attributes": attributes, "backend_node_id": node.id}
    return record if target is None else record | {"is_original_target": target, "is_top_level_target": target}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
