"""Makes games of all six task types: a furnished room, a goal, and a plan that the engine has carried out."""

import random
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from environments.alfworld.engine.game import ReadyGame, names
from environments.alfworld.engine.grammar import Format
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.texts import TASK_TYPES, OwnGame, TaskType
from tools.datagen.alfworld.house import AGENT, House, Thing, facts, furnish
from tools.datagen.alfworld.rooms import LAMP, OBJECTS, RECEPTACLES, Room

LONGEST_PLAN = 9
SIZES = range(15, 61)
"""Objects in a room."""
Verb = Literal["clean", "heat", "cool"]


class GameKind(NamedTuple):
    """The settings of a task type."""

    folder: str
    rooms: tuple[Room, ...]
    sentences: tuple[str, ...]
    verb: Verb | None = None
    state: str | None = None
    """The fact that the goal requires of the object, besides its place."""


ROOM_NUMBERS: dict[Room, int] = {"kitchen": 0, "living room": 2, "bedroom": 3, "bathroom": 4}
"""The hundreds of a room's number, as ALFRED counts its rooms."""
_ANYWHERE = tuple(ROOM_NUMBERS)
KINDS: dict[TaskType, GameKind] = {
    "pick_and_place": GameKind(
        "pick_and_place_simple", _ANYWHERE, ("put a {o} in {r}.", "put some {o} on {r}.", "bring one {o} to {r}.")
    ),
    "pick_clean_then_place": GameKind(
        "pick_clean_then_place_in_recep",
        ("kitchen", "bathroom"),
        ("put a clean {o} in {r}.", "clean some {o} and put it in {r}.", "wash one {o}, then bring it to {r}."),
        "clean",
        "isClean",
    ),
    "pick_heat_then_place": GameKind(
        "pick_heat_then_place_in_recep",
        ("kitchen",),
        ("put a hot {o} in {r}.", "heat some {o} and put it in {r}.", "warm one {o} up, then bring it to {r}."),
        "heat",
        "isHot",
    ),
    "pick_cool_then_place": GameKind(
        "pick_cool_then_place_in_recep",
        ("kitchen",),
        ("put a cool {o} in {r}.", "cool some {o} and put it in {r}.", "chill one {o}, then bring it to {r}."),
        "cool",
        "isCool",
    ),
    "look_at_obj": GameKind(
        "look_at_obj_in_light",
        ("living room", "bedroom"),
        ("look at {o} under the desklamp.", "examine the {o} with the desklamp."),
    ),
    "pick_two_obj": GameKind(
        "pick_two_obj_and_place", _ANYWHERE, ("put two {o} in {r}.", "find two {o} and put them in {r}.")
    ),
}
_MACHINES: dict[Verb, tuple[str, str]] = {
    "clean": ("SinkBasin", "cleanable"),
    "heat": ("Microwave", "heatable"),
    "cool": ("Fridge", "coolable"),
}


class GameGoal(NamedTuple):
    """The goal of a game: objects, perhaps treated, in a receptacle, or one object looked at under the lamp."""

    objects: tuple[Thing, ...]
    target: Thing
    """The receptacle to bring them to, or the lamp."""
    machine: Thing | None = None


def generate(count: int, seed: int = 0) -> Iterator[OwnGame]:
    """Games: the task type changes with each, the command format every six. Equal seeds give equal games."""
    for index in range(count):
        kind: Format = "put" if index // len(TASK_TYPES) % 2 == 0 else "move"
        yield make(TASK_TYPES[index % len(TASK_TYPES)], kind, index, seed)


def make(type_: TaskType, format: Format, index: int, seed: int) -> OwnGame:
    """The game of a type with this index: rooms and goals are drawn until one has a short plan that wins."""
    chance = random.Random(f"{seed} {index} {type_}")
    while True:
        room = chance.choice(KINDS[type_].rooms)
        house = furnish(room, chance, lamp=type_ == "look_at_obj")
        goal = _goal(type_, house, chance) if len(house.objects) + len(house.fixtures) in SIZES else None
        if goal is None:
            continue
        folder = f"{KINDS[type_].folder}-{goal.objects[0].type}-None-{goal.target.type}"
        path = f"{folder}-{100 * ROOM_NUMBERS[room] + 1 + index % 30}/trial_own_{index:05}/game.tw-pddl"
        game = OwnGame(
            path=path,
            format=format,
            task=_sentence(type_, goal, chance),
            problem=_problem(type_, house, goal),
            plan=tuple(_plan(house, goal, KINDS[type_].verb, format)),
        )
        if len(game.plan) <= LONGEST_PLAN and _proven(game):
            return game


def _goal(type_: TaskType, house: House, chance: random.Random) -> GameGoal | None:
    """A goal that the room allows, or None where the draw failed."""
    movable = [each for each in house.objects if each.type != LAMP]
    item = chance.choice(movable)
    if type_ == "look_at_obj":
        lamps = [each for each in house.objects if each.type == LAMP]
        return GameGoal((item,), lamps[0]) if lamps else None
    fitting = [each for each in house.receptacles if OBJECTS[item.type].kind in RECEPTACLES[each.type].holds]
    target = chance.choice(fitting)
    wanted = 2 if type_ == "pick_two_obj" else 1
    away = [each for each in movable if each.type == item.type and house.receptacle_of(each).type != target.type]
    verb = KINDS[type_].verb
    if len(away) < wanted:
        return None
    if verb is None:
        return GameGoal(tuple(away[:wanted]), target)
    machine_type, needed = _MACHINES[verb]
    if needed not in OBJECTS[item.type].properties or target.type == machine_type:
        return None
    return GameGoal(
        (away[0],), target, chance.choice([each for each in house.receptacles if each.type == machine_type])
    )


def _sentence(type_: TaskType, goal: GameGoal, chance: random.Random) -> str:
    sentence = chance.choice(KINDS[type_].sentences)
    return sentence.format(o=goal.objects[0].type.lower(), r=goal.target.type.lower())


def _problem(type_: TaskType, house: House, goal: GameGoal) -> str:
    known = list(facts(house))
    places = [house.start, *(each.place for each in (*house.receptacles, *house.fixtures))]
    objects = {
        "agent": [AGENT],
        "location": sorted(set(places)),
        "receptacle": [each.identifier for each in house.receptacles],
        "object": [each.identifier for each in (*house.objects, *house.fixtures)],
        "rtype": sorted({fact[2] for fact in known if fact[0] == "receptacleType"}),
        "otype": sorted({fact[2] for fact in known if fact[0] == "objectType"}),
    }
    declared = "\n".join(f"{each} - {kind}" for kind, those in objects.items() for each in those)
    init = "\n".join(f"({' '.join(fact)})" for fact in known)
    return (
        f"(define (problem own)\n(:domain alfred)\n(:objects\n{declared}\n)\n(:init\n{init}\n)\n"
        f"(:goal\n{_condition(type_, goal)}\n)\n)\n"
    )


def _condition(type_: TaskType, goal: GameGoal) -> str:
    item, target, state = f"{goal.objects[0].type}Type", f"{goal.target.type}Type", KINDS[type_].state
    if type_ == "look_at_obj":
        return (
            f"(and (exists (?o - object ?a - agent) (and (objectType ?o {item}) (holds ?a ?o)))\n"
            "(exists (?lamp - object ?r - receptacle ?a - agent ?l - location) (and (atLocation ?a ?l) "
            f"(receptacleAtLocation ?r ?l) (inReceptacle ?lamp ?r) (objectType ?lamp {target}) (isToggled ?lamp))))"
        )
    if type_ == "pick_two_obj":
        return (
            f"(exists (?r - receptacle ?o1 - object ?o2 - object) (and (receptacleType ?r {target})\n"
            f"(objectType ?o1 {item}) (inReceptacle ?o1 ?r) (objectType ?o2 {item}) (inReceptacle ?o2 ?r) "
            "(not (= ?o1 ?o2))))"
        )
    treated = "" if state is None else f" ({state} ?o)"
    return (
        f"(exists (?r - receptacle ?o - object) (and (receptacleType ?r {target})\n"
        f"(objectType ?o {item}) (inReceptacle ?o ?r){treated}))"
    )


def _plan(house: House, goal: GameGoal, verb: Verb | None, format: Format) -> Iterator[str]:
    """The commands that reach a goal; closed receptacles are opened."""
    identifiers = (each.lower() for fact in facts(house) for each in fact[1:])
    display_names = names(identifiers)
    at, opened = house.start, set[str]()

    def approach(receptacle: Thing, open_: bool) -> Iterator[str]:
        nonlocal at
        if at != receptacle.place:
            at = receptacle.place
            yield f"go to {name(receptacle)}"
        if open_ and RECEPTACLES[receptacle.type].openable and receptacle.identifier not in opened:
            opened.add(receptacle.identifier)
            yield f"open {name(receptacle)}"

    def name(thing: Thing) -> str:
        return display_names[thing.identifier.lower()]

    for item in goal.objects:
        source = house.receptacle_of(item)
        yield from approach(source, open_=True)
        yield f"take {name(item)} from {name(source)}"
        if goal.machine is not None:
            yield from approach(goal.machine, open_=False)
            yield f"{verb} {name(item)} with {name(goal.machine)}"
        if goal.target.type == LAMP:
            yield from approach(house.receptacle_of(goal.target), open_=False)
            yield f"use {name(goal.target)}"
            return
        yield from approach(goal.target, open_=True)
        put, to = ("move", "to") if format == "move" else ("put", "in/on")
        yield f"{put} {name(item)} {to} {name(goal.target)}"


def _proven(game: OwnGame) -> bool:
    """Whether each command of the plan is admissible in its turn, and only the last one wins."""
    texts = game.texts()
    world = GameWorld(ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem))
    won: Sequence[bool] = [world.won]
    for command in game.plan:
        if command not in world.admissible():
            return False
        world.step(command)
        won = [*won, world.won]
    return won == [False] * len(game.plan) + [True]
