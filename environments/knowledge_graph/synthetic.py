"""Synthetic graphs: one in which gold actions reach gold answers, and wrong relations that make it harder.

`python -m environments.knowledge_graph.synthetic DATA ONTOLOGY > graph.nq` writes a graph for each sample of a file.
"""

import argparse
import random
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from environments.knowledge_graph.dataset import QuestionEntry, load
from environments.knowledge_graph.ontology import Ontology, load_ontology
from environments.knowledge_graph.programs import iri

NAME = "type.object.name"
OTHERS = 2
"""Members with other values in each set that argmax or argmin chooses from."""
_XSD = "http://www.w3.org/2001/XMLSchema#"
_ACTION = re.compile(r"(\w+)\((.*)\)")
_VALUES = {
    "type.datetime": ("1990-01-01", "2000-01-01", "2010-01-01", "date"),
    "type.int": ("100", "500", "900", "integer"),
}
_FLOATS = ("100", "500", "900", "float")


class Edge(NamedTuple):
    """A triple between two ids; all three names are without name space."""

    subject: str
    relation: str
    object: str


@dataclass
class _Step:
    """A variable of the gold actions, with the members that it must have."""

    function: str
    arguments: tuple[str, ...]
    members: dict[str, None] = field(default_factory=dict)


def graph(entry: QuestionEntry, ontology: Ontology, number: int) -> list[str]:
    """The triples (`subject predicate object`, as in N-Triples) in which a sample's gold actions give its answers.

    Walks the actions backwards: each variable gets the members that it must have. Each side of an intersection gets
    one more, which the other side lacks; each set that argmax or argmin chooses from gets members with other values.
    `number` is part of new ids.
    """
    steps = _steps(entry)
    invented = (f"m.syn_{number}_{index}" for index in range(1, sys.maxsize))
    triples: dict[str, None] = {}
    if steps:
        steps[-1].members.update(dict.fromkeys(_wanted(entry, steps[-1], invented)))
    for step in reversed(steps):
        for triple in _backwards(step, steps, ontology, invented):
            triples[triple] = None
    names = {identifier: name for name, identifier in entry.entities.items()}
    names |= {identifier: name for identifier, name in entry.answers if name}
    for identifier, name in names.items():
        triples[f'{iri(identifier)} {iri(NAME)} "{_escaped(name)}"@en'] = None
    return list(triples)


def distractors(edges: Iterable[Edge], ontology: Ontology, count: int, seed: str) -> list[Edge]:
    """Wrong relations: for each type in the graph, `count` random ones with this domain, and a new object per member.

    None of them occurs in the graph already, so the sets that its own relations give stay as they are.
    """
    given = list(edges)
    members: dict[str, set[str]] = {}
    for edge in given:
        domain, kind = ontology.roles.get(edge.relation, (None, None))
        if domain is not None and kind is not None and edge.relation in ontology.vocabulary.relations:
            members.setdefault(domain, set()).add(edge.subject)
            members.setdefault(kind, set()).add(edge.object)
    used = {edge.relation for edge in given}
    choices: dict[str, list[str]] = {}
    for relation in sorted(ontology.vocabulary.relations - used):
        domain = ontology.roles[relation][0] if relation in ontology.roles else ""
        if domain in members:
            choices.setdefault(domain, []).append(relation)
    return [
        Edge(member, relation, f"m.syn_wrong_{index}_{at}")
        for kind in sorted(choices)
        for index, relation in enumerate(_drawn(choices[kind], count, f"{seed}:{kind}"))
        for at, member in enumerate(sorted(members[kind]))
    ]


def _drawn(relations: Sequence[str], count: int, seed: str) -> list[str]:
    return random.Random(seed).sample(relations, min(count, len(relations)))


def _steps(entry: QuestionEntry) -> list[_Step]:
    """The actions that make variables; equal actions share one step."""
    steps: list[_Step] = []
    for action in entry.actions:
        match = _ACTION.fullmatch(action)
        if match and match[1] not in ("get_relations", "get_attributes"):
            arguments = tuple(part.strip() for part in match[2].split(","))
            same = next((step for step in steps if (step.function, step.arguments) == (match[1], arguments)), None)
            steps.append(same or _Step(match[1], arguments))
    return steps


def _wanted(entry: QuestionEntry, last: _Step, invented: Iterator[str]) -> list[str]:
    if last.function == "count":
        return [next(invented) for _ in range(int(entry.answers[0][0]))]
    return [answer for answer, _ in entry.answers]


def _backwards(step: _Step, steps: Sequence[_Step], ontology: Ontology, invented: Iterator[str]) -> Iterator[str]:
    """The triples that a variable needs; adds to its source variables the members that they must have."""
    sources = [steps[int(argument[1:])] for argument in step.arguments if argument.startswith("#")]
    if step.function == "get_neighbors":
        yield from _joined(step, sources, invented)
    elif step.function in ("argmax", "argmin"):
        yield from _ranked(step, sources[0], ontology, invented)
    else:
        for source in sources:
            source.members.update(step.members)
            if step.function == "intersection" and sources[0] is not sources[1]:
                source.members[next(invented)] = None


def _joined(step: _Step, sources: Sequence[_Step], invented: Iterator[str]) -> Iterator[str]:
    source, relation = step.arguments
    if sources and not sources[0].members:
        sources[0].members[next(invented)] = None
    subject = next(iter(sources[0].members)) if sources else source
    for member in step.members:
        yield f"{iri(subject)} {iri(relation)} {iri(member)}"


def _ranked(step: _Step, source: _Step, ontology: Ontology, invented: Iterator[str]) -> Iterator[str]:
    attribute = step.arguments[1]
    low, middle, high, kind = _VALUES.get(ontology.range_of(attribute) or "", _FLOATS)
    best, worst = (high, low) if step.function == "argmax" else (low, high)
    others = [next(invented) for _ in range(OTHERS)]
    source.members.update(dict.fromkeys([*step.members, *others]))
    values = [*((member, best) for member in step.members), *zip(others, (worst, middle), strict=True)]
    for member, value in values:
        yield f'{iri(member)} {iri(attribute)} "{value}"^^<{_XSD}{kind}>'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")


def main(data: Path, ontology_folder: Path) -> None:
    """Writes N-Quads with a named graph `urn:sample:<qid>` for each sample of a file."""
    ontology = load_ontology(ontology_folder)
    for number, entry in enumerate(load(data).values()):
        for triple in graph(entry, ontology, number):
            sys.stdout.write(f"{triple} <urn:sample:{entry.id}> .\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m environments.knowledge_graph.synthetic", description=__doc__)
    parser.add_argument("data", type=Path, help="a file of samples with gold actions")
    parser.add_argument("ontology", type=Path, help="the folder of the ontology")
    arguments = parser.parse_args()
    try:
        main(arguments.data, arguments.ontology)
    except ValueError as error:
        parser.error(str(error))
